"""Writes the pages of docs that are made from the program itself: ``python docs/make_pages.py``; tests compare.

- ``docs/cookbook.md``: commands and files come from the gallery (bench/gallery), what trainwatch says before a start
  from ``run --dry-run`` in a folder with these files, versions from docs/frameworks.md, which real runs wrote.
- the table of failure classes in ``docs/failure-taxonomy.md``: from configs/failures.toml.
- ``docs/trainwatch.1``, the manual page: from the texts of the command line. The wheel installs it.
- ``docs/settings.md``: from core/model/settings.py, where names, defaults and reasons stand.
- ``docs/run-states.md`` and the diagram of ``docs/how-it-decides.md``: from core/judge/run_states.py.

``python docs/make_pages.py requirements`` runs the cases of all requirements and writes docs/requirements.md; words
behind it go to pytest, such as ``-x``. If they leave out a requirement, no page is written.
"""

import argparse
import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT))

from bench.gallery.row import Row  # noqa: E402
from bench.gallery.rows import all_rows  # noqa: E402

from trainwatch.cli import main  # noqa: E402
from trainwatch.cli.parser import SECTIONS, verb, verbs  # noqa: E402
from trainwatch.core.config.shipped import load_failures, load_presets  # noqa: E402
from trainwatch.core.judge import run_states  # noqa: E402
from trainwatch.core.judge.run_states import EVENTS, FROM_ANY_STATE, TRANSITIONS, WORDS, State  # noqa: E402
from trainwatch.core.model import settings  # noqa: E402
from trainwatch.core.model.shipped import FailureCatalogue, FailureClass  # noqa: E402

# Cookbook

SCRIPTS = ROOT / "bench" / "gallery" / "scripts"
COOKBOOK = """# Cookbook: the command of each framework

Written by `python docs/make_pages.py`: the commands of [real frameworks](frameworks.md) that were trained tiny, with
what `run --dry-run` prints before a start. Of your own command, everything behind `--` is yours; no config file is
needed unless a section has one. Is yours not here? See *argparse script*, the rows that begin with *script*, and [how a
script becomes resumable](how-to/resume.md).
"""


def cookbook() -> str:
    """The text of docs/cookbook.md."""
    versions = _framework_versions()
    sections = [_framework(row, versions[row.title]) for row in all_rows().values() if row.title in versions]
    return COOKBOOK + "\n" + "\n".join(sections)


def _framework_versions() -> dict[str, str]:
    """Version by title, of the first table of docs/frameworks.md."""
    text = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    (table, *_) = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
    return {cells[0]: cells[1] for cells in rows[2:]}


def _framework(row: Row, version: str) -> str:
    command = shlex.join(word.replace("{checkout}", row.checkout) for word in row.command)
    shown = [f"{name}={value}" for name, value in row.env.items() if not name.startswith("GALLERY")]
    notes = [f"Environment: `{' '.join(shown)}`."] if shown else []
    differs = row.resumes and not row.exact
    notes += ["After a resume the weights differ from those of an undisturbed run."] if differs else []
    toml = f"\n```toml\n{row.toml.strip()}\n```\n" if row.toml else ""
    about = (f"{row.checkout or row.distribution} {version}.", _before_a_start(row), *notes)
    return f"""## {row.title}

{" ".join(about)}

```
trainwatch run -- {command}
```
{toml}"""


def _before_a_start(row: Row) -> str:
    """Preset, checkpoints and way to resume, as a dry run says them."""
    said = dry_run(row)
    preset = load_presets()[row.preset]
    resume = re.search(r"^Resume: (.*)$", said, re.MULTILINE)
    assert resume is not None, said
    name = "" if preset.name == "generic" else f"Preset `{preset.name}`. "
    how = resume[1] if row.resumes or not row.checkout else "NO"
    return f"{name}Saves `{row.checkpoints}`. *Resume: {how}*."


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


# Failure classes

FAILURES = "| class | what happened | if it never trained |\n|---|---|---|\n"
WAITS = {
    "person": "waits for a person, always",
    "network": "waits longer each time (`network_wait_s`), without a charge, always",
    "disk": "waits for room, always",
    "gpu": "waits for a usable GPU, always",
}
"""``waits_for`` of a class, in words."""


def failure_table(catalogue: FailureCatalogue) -> str:
    """One row per class, in the order of ``configs/failures.toml``."""
    return FAILURES + "".join(f"| `{c.name}` | {c.explanation} | {_at_start(c)} |\n" for c in catalogue.classes)


def _at_start(known: FailureClass) -> str:
    if known.name == "success":
        return "–"
    if known.waits_for is not None:
        return WAITS[known.waits_for]
    return "restart" if known.retryable else "given up"


# Manual page

MANUAL = r""".\" Written by docs/make_pages.py.
.TH TRAINWATCH 1 "" "trainwatch" "User Commands"
.SH NAME
trainwatch \- supervise a long training run
.SH SYNOPSIS
.B trainwatch
[\fIVERB\fR] [\fIOPTIONS\fR] [\fIRUN\fR] [\-\- \fICOMMAND\fR ...]
.SH DESCRIPTION
Launches a training, shows it, detects when it hangs or crashes, says why with evidence, and restarts it from a verified
checkpoint. The training script stays as it is. Without a verb, the screen of this project's run opens; it starts
nothing without a key press. \fBtrainwatch \-\-headless\fR does the same without a screen.
.PP
\fBtrainwatch\fR \fIVERB\fR \fB\-\-help\fR shows the options of a verb, with an example.
\fBtrainwatch \-\-on\fR \fIHOST\fR [\fIVERB\fR] does the same on another machine, through ssh.
"""
MANUAL_END = r""".SH EXIT STATUS
.TP
.B 0
done, or healthy
.TP
.B 1
the thing asked about failed: run given up, checkpoint bad, check not passed
.TP
.B 2
usage or config error
.TP
.B 3
no such run, file or directory
.TP
.B 4
a supervisor already owns this run, the folder holds a run of this command or checkpoints of an unknown run, or another
training uses it
.TP
.B 5
no supervisor is running
.TP
.B 6
the run needs a person: it is held, stopped or paused, or a question is open
.TP
.B 7
the run goes on (\fBstatus \-\-exit\-code\fR)
.TP
.B 124
the time limit of \fBwait\fR passed
.TP
.B 130
interrupted
.PP
As PID 1 of a container, and in a job of a scheduler, \fBrun\fR and \fB\-\-headless\fR end with the exit status of the
trainer.
.SH ENVIRONMENT
.TP
.B TRAINWATCH_HOME
the folder of all state (default: $XDG_STATE_HOME/trainwatch, else ~/.local/state/trainwatch)
.TP
.B NO_COLOR
plain text
.SH FILES
.TP
.I ~/.config/trainwatch/config.toml
other machines: [hosts.NAME] with ssh = "user@machine"
.TP
.I trainwatch.toml
command and settings of a project; \fBtrainwatch init\fR writes one with a comment on each key
.SH SEE ALSO
The pages of the documentation are in the package's folder \fIdocs\fR.
"""


def manual() -> str:
    """The text of docs/trainwatch.1 (roff)."""
    return MANUAL + "".join(_commands()) + MANUAL_END


def _commands() -> Iterator[str]:
    yield ".SH COMMANDS\n"
    for section, (title, _) in SECTIONS.items():
        yield f".SS {_roff(title[0].upper() + title[1:])}\n"
        for name in sorted(verbs()):
            one = verb(name)
            if one.help is not None and verbs()[name][0] == section:
                example = f"trainwatch {name} {one.example}".strip()
                text = re.sub(r"\s+", " ", one.description).strip()
                yield f".TP\n.B {name}\n{_roff(text)}\n.br\nExample: {_roff(example)}\n"


def _roff(text: str) -> str:
    """The text with what roff reads as commands made plain."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{text}" if text.startswith((".", "'")) else text


# Settings

SETTINGS = """# All settings of trainwatch.toml

Written by `python docs/make_pages.py`; `trainwatch init` writes a file with those that people change most. A key
that is left out has its default; a wrong one is named with file, line and the nearest valid one. `[run]` (or several
`[runs.NAME]`) says what to start: see that file. `trainwatch run -- COMMAND` does not use it.
[`[hosts.NAME]`](how-to/several.md#other-machines) names another machine, here or in `~/.config/trainwatch/config.toml`.
"""


def settings_page() -> str:
    """The text of docs/settings.md."""
    return SETTINGS + "".join(f"\n{part}" for part in _setting_tables())


def _setting_tables() -> Iterator[str]:
    source = ast.parse(Path(settings.__file__).read_text("utf-8"))
    classes = {node.name: node for node in source.body if isinstance(node, ast.ClassDef)}
    defaults = settings.Settings()
    for section in settings.Settings.__struct_fields__:
        value = getattr(defaults, section)
        node = classes[type(value).__name__]
        told = re.sub(r"^``\[\w+\]``[:.]?\s*", "", _flowing(ast.get_docstring(node) or "")).replace("``", "`")
        rows = [f"| `{name}` | `{_toml(default)}` | {why} |" for name, default, why in _setting_rows(node, value)]
        intro = f"{told[0].upper()}{told[1:]}\n\n" if told else ""
        yield f"## [{section}]\n\n{intro}| key | default | why |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _setting_rows(node: ast.ClassDef, value: Any) -> Iterator[tuple[str, Any, str]]:
    for place, statement in enumerate(node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        name = statement.target.id
        after = node.body[place + 1] if place + 1 < len(node.body) else None
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        why = _flowing(str(said)).replace("``", "`").replace("|", "\\|")
        names = [f"`{_toml(choice)}`" for choice in _choices(statement.annotation)]
        choices = "" if all(name.replace('"', "") in why for name in names) else ", ".join(names)
        if not names and not re.search(r"`\w+`: ", why):
            why = re.split(r"(?<=[.])\s+(?=[A-Z`])", why)[0]  # the rest is for who reads the source
        yield name, getattr(value, name), " ".join(part for part in (choices and f"One of {choices}.", why) if part)


def _choices(annotation: ast.expr) -> list[Any]:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        return list(ast.literal_eval(annotation.slice))
    return []


def _flowing(text: str) -> str:
    return " ".join(text.split())


def _toml(value: Any) -> str:
    match value:
        case None:
            return "(none)"
        case float():
            return f"{value:g}" if abs(value) >= 1e6 else f"{value}"
        case _:
            return msgspec.json.encode(value).decode()


# States of a run

DECIDES = Path(__file__).parent / "how-it-decides.md"
MARKS = ("<!-- diagram: begin (written by docs/make_pages.py) -->\n", "<!-- diagram: end -->\n")
BOXES: dict[str, tuple[str, tuple[State, ...]]] = {
    "trainer": ("a trainer exists", ("starting", "running", "hung", "paused", "suspended", "queued")),
    "ending": ("it is being ended", ("stopping",)),
    "next": (
        "the next attempt is prepared",
        ("preparing", "backing_off"),
    ),
}
"""Boxes of the short diagram; every other state is a box of its own."""
ENDED: tuple[State, ...] = ("stopped", "interrupted", "finished", "ended_early", "given_up")
STATES = """# The states of a run

Written by `python docs/make_pages.py` from the table in `core/judge/run_states.py`. `StepBuilder.move(event, state,
reason)` is the only way to another state; a pair without a row is a bug and raises `ImpossibleTransitionError`.

A restart goes `stopping` → `preparing` → `backing_off` → `starting`. Each stage of `preparing` waits for the outcome of
one decision: GPU memory is released, the folders are listed, the resume point is verified; what is not needed is left
out. [The diagram](how-it-decides.md#the-states-of-a-run) has the main way.
"""


def run_states_page() -> str:
    """The text of docs/run-states.md."""
    return f"{STATES}\n{_state_rows()}\n{_event_rows()}\n{_transitions()}"


def decides() -> str:
    """docs/how-it-decides.md with the short diagram of today between its marks."""
    text = DECIDES.read_text("utf-8")
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}{_short_diagram()}{MARKS[1]}{after}"


def _short_diagram() -> str:
    """The transitions between the boxes. What happens inside a box, or leads out of an end, is left out."""
    box_of = {state: box for box, (_, members) in BOXES.items() for state in members}
    arrows: dict[tuple[str, str], list[str]] = {}
    for before, row in TRANSITIONS.items():
        for event, after in () if before in ENDED else row.items():
            pair = box_of.get(before, before), box_of.get(after, after)
            if pair[0] != pair[1] and event not in FROM_ANY_STATE and event not in arrows.setdefault(pair, []):
                arrows[pair].append(event)
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    lines += [f'    state "{title}" as {box}' for box, (title, _) in BOXES.items()]
    lines += [f"    {before} --> {after}: {', '.join(events)}" for (before, after), events in arrows.items() if events]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _state_rows() -> str:
    variants = {variant.__struct_config__.tag: variant for variant in run_states.Variant.__subclasses__()}
    rows = [f"| `{state}` | {_first_line(variants[state])}{_word(state)} |" for state in WORDS]
    return "## States\n\n| state | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _word(state: State) -> str:
    return "" if WORDS[state] == state else f" Shown as *{WORDS[state]}*."


def _first_line(variant: type) -> str:
    return (variant.__doc__ or "").partition("\n")[0].replace("``", "`")


def _event_rows() -> str:
    rows = [f"| `{event}` | {meaning} |" for event, (_, meaning) in EVENTS.items()]
    return "## Events\n\n| event | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _transitions() -> str:
    always = " and ".join(f"`{event}` to `{EVENTS[event][0]}`" for event in FROM_ANY_STATE)
    alike: dict[str, list[State]] = {}
    for state in TRANSITIONS:
        alike.setdefault("; ".join(_follows(state)), []).append(state)
    rows = [f"| {', '.join(f'`{state}`' for state in states)} | {follows} |" for follows, states in alike.items()]
    head = f"## Transitions\n\nFrom every state {always}.\n\n| in state | event → state that follows |\n|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _follows(state: State) -> Iterator[str]:
    by_state: dict[State, list[str]] = {}
    for event, after in TRANSITIONS[state].items():
        if event not in FROM_ANY_STATE:
            by_state.setdefault(after, []).append(f"`{event}`")
    for after, events in by_state.items():
        yield f"{', '.join(events)} → `{after}`"


def write_all() -> None:
    """Write each page but the one of the requirements."""
    (DOCS / "cookbook.md").write_text(cookbook(), "utf-8")
    taxonomy = DOCS / "failure-taxonomy.md"
    rows = re.escape(FAILURES) + r"(?:\|.*\n)+"
    taxonomy.write_text(re.sub(rows, lambda _: failure_table(load_failures()), taxonomy.read_text("utf-8")), "utf-8")
    (DOCS / "trainwatch.1").write_text(manual(), "utf-8")
    (DOCS / "settings.md").write_text(settings_page(), "utf-8")
    (DOCS / "run-states.md").write_text(run_states_page(), "utf-8")
    DECIDES.write_text(decides(), "utf-8")


def write_requirements(words: list[str]) -> int:
    """Run the cases of all requirements; returns pytest's exit status."""
    from tests.requirements.shown import PAGE_VARIABLE

    argv = [sys.executable, "-m", "pytest", "tests/requirements", *words]
    env = os.environ | {PAGE_VARIABLE: str(DOCS / "requirements.md"), "TRAINWATCH_MATRIX": "all"}
    return subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", choices=["requirements"], help="this page alone")
    page, words = parser.parse_known_args()
    if page.page is not None:
        sys.exit(write_requirements(words))
    if words:
        parser.error(f"not understood: {' '.join(words)}")
    write_all()
