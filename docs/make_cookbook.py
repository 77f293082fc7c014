"""Writes docs/cookbook.md: ``python docs/make_cookbook.py``; a test compares.

Commands and files come from the gallery (bench/gallery), what trainwatch says before a start from ``run --dry-run`` in
a folder with these files, versions and results from the tables of docs/frameworks.md, which real runs wrote, and the
last numbers of a log from tests/fixtures/frameworks.
"""

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.gallery.row import Row  # noqa: E402
from bench.gallery.rows import all_rows  # noqa: E402

from trainwatch.cli import main  # noqa: E402
from trainwatch.core.config.shipped import load_presets  # noqa: E402

PAGE = ROOT / "docs" / "cookbook.md"
SCRIPTS = ROOT / "bench" / "gallery" / "scripts"
RECORDED = ROOT / "tests" / "fixtures" / "frameworks"
READ = ("step", "total", "epoch", "loss", "ETA", "checkpoints")
"""Columns of the first table of docs/frameworks.md."""
SHOWN = {"total": "number of steps", "ETA": "time left"}
HEAD = """# Cookbook: the command of each framework

Written by `python docs/make_cookbook.py` from the [gallery](frameworks.md) of real frameworks; a test compares. Each
was installed at the version that stands there and trained, tiny and on the CPU, and its trainer was
killed with `kill -9`. The command is the one of that run, so its sizes are small; of your own command, everything
behind `--` is yours. No section needs a config file unless it says so.

*Before a start* is what `trainwatch run --dry-run` prints in that folder. *Read* is what was compared with the
framework's own files and is the same. *Not told by it* stays unknown, and nothing is decided by it.
*Killed* is how the run with `kill -9` went on. The other faults (hang, out of memory, a torn checkpoint, one rank …)
are in [the tables](frameworks.md#results).

Is yours not here? Most scripts need nothing more: see *argparse script* and the rows that begin with *script*. [What
a resume is found by](how-to/resume.md#how-it-knows-how-to-resume),
[log lines of your own](how-to/own-log-lines.md), [presets](presets.md).
"""


def page() -> str:
    """The text of docs/cookbook.md."""
    table, killed = _tables()
    sections = [_section(row, table[row.title], killed[row.title]) for row in all_rows().values() if row.title in table]
    return HEAD + "\n" + "\n".join(sections)


def _tables() -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """By title: the columns of the first table, and how a run whose trainer was killed went on."""
    text = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    first, second = (
        [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()] for table in tables[:2]
    )
    by_title = {cells[0]: dict(zip(first[0], cells, strict=True)) for cells in first[2:]}
    return by_title, {cells[0]: cells[1] for cells in second[2:]}


def _section(row: Row, cells: dict[str, str], killed: str) -> str:
    command = shlex.join(word.replace("{checkout}", row.checkout) for word in row.command)
    shown = [f"{name}={value}" for name, value in row.env.items() if not name.startswith("GALLERY")]
    notes = [f"Environment: `{' '.join(shown)}`."] if shown else []
    notes += ["A tiny stand-in took the place of its models."] if len(shown) < len(row.env) else []
    toml = f"\n```toml\n{row.toml.strip()}\n```\n" if row.toml else ""
    read = [SHOWN.get(name, name) for name in READ if cells[name] == "✓"]
    silent = [SHOWN.get(name, name) for name in READ if cells[name] == "–"]
    lines = [
        f"- Before a start: {_before(row)}",
        f"- Read: {', '.join(read)}{_at_the_end(row)}.",
        f"- Checkpoints: `{row.checkpoints}`, every {row.save_every} steps here.",
        *([f"- Not told by it: {', '.join(silent)}."] if silent else []),
        f"- Killed: {_went_on(row, killed)}",
        *(f"- Why not every fault was tried: {reason}." for reason in dict.fromkeys(row.cannot.values())),
    ]
    return f"""## {row.title}

{" ".join((f"{row.checkout or row.distribution} {cells['version']}.", *notes))}

```
trainwatch run -- {command}
```
{toml}
{chr(10).join(lines)}
"""


def _before(row: Row) -> str:
    """Preset, output folder and way to resume, as a dry run says them."""
    said = dry_run(row)
    preset = load_presets()[row.preset]
    found = re.search(r"^preset +(\S+): (.*)$", said, re.MULTILINE)
    resume = re.search(r"^Resume: (.*)$", said, re.MULTILINE)
    output = re.search(r"^output +(.*)$", said, re.MULTILINE)
    assert resume is not None, said
    name = "no preset is needed" if preset.name == "generic" else f"preset `{preset.name}`"
    why = f" ({found[2]})" if found and preset.name != "generic" and not row.checkout else ""
    how = resume[1] if row.resumes or not row.checkout else "NO"
    where = f"; output `{output[1]}`" if output and not output[1].startswith("not known") else ""
    return f"{name}{why}{where}; *Resume: {how}*."


def dry_run(row: Row) -> str:
    """What ``run --dry-run`` prints in a folder with the row's files.

    A script of a checkout is not there: its preset is told.
    """
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        folder = Path(place) / "project"
        for name, text in row.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((SCRIPTS / text[1:]).read_text() if text.startswith("@") else text)
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        out, err = io.StringIO(), io.StringIO()
        command = [word.replace("{checkout}", row.checkout) for word in row.command]
        told = ["--preset", row.preset] if row.checkout else []
        before = dict(os.environ)
        os.environ |= row.env | {"TRAINWATCH_HOME": f"{place}/home", "XDG_CACHE_HOME": f"{place}/cache"}
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main(["run", "--dry-run", *told, "--", *command])
        finally:
            os.environ.clear()
            os.environ.update(before)
        return out.getvalue().replace(f"{folder}/", "") + err.getvalue()


def _at_the_end(row: Row) -> str:
    """The last numbers of the recorded log, if one is kept."""
    path = RECORDED / f"{row.name}.toml"
    if not path.exists():
        return ""
    truth = tomllib.loads(path.read_text(encoding="utf-8"))["truth"]
    parts = []
    if "step" in truth:
        total = f" of {truth['total_steps']}" if "total_steps" in truth else ""
        parts.append(f"step {truth['step']}{total}")
    if truth.get("run_step", truth.get("step")) != truth.get("step"):
        parts.append(f"of the whole run {truth['run_step']}")
    if "epoch" in truth:
        parts.append(f"epoch {truth['epoch']:g}")
    if "loss" in truth:
        parts.append(f"loss {truth['loss']:.4g}")
    return f" (at the end {', '.join(parts)})" if parts else ""


def _went_on(row: Row, killed: str) -> str:
    """The cell of the table in words, and the sentence of the recorded resume."""
    step = re.fullmatch(r"✓ from (\d+)", killed)
    text = f"it went on from step {step[1]}" if step else killed.removeprefix("✓ ")
    path = RECORDED / f"{row.name}.resumed.jsonl"
    if path.exists():
        said = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])["resumed"]
        text += f" (*{said}*)"
    if row.exact or not step:
        return f"{text}."
    return (
        f"{text}. It does not restore all that decides the weights (order of the data, random numbers), "
        "so they differ from those of an undisturbed run."
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
