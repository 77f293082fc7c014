"""What verbs say of all logs and checkpoints of the tests, and what is planned for a command of each preset."""

import json
import os
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import checkpoint_layouts as layouts
from tests.fakes.hostile_pickles import archives, broken_streams, tricks, write_archive
from tests.goldens.asking import ask
from tests.goldens.commands import lay_out, plans
from tests.goldens.facts import check, check_keys, facts, keys
from tests.shipped import progress_cases, rows_of

TESTS = Path(__file__).resolve().parents[1]
MTIME = 1_700_000_000
LAYOUTS: tuple[Callable[[Path], Path], ...] = (
    layouts.safetensors_file, layouts.zip_file, layouts.legacy_file, layouts.training_state, layouts.transformers,
    layouts.sharded, layouts.accelerate, layouts.dcp, layouts.deepspeed,
)  # fmt: skip
OF_THE_MACHINE = frozenset({"disk", "imports"})
"""Checks whose results are those of the machine that the tests run on."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def compare(name: str, verb: str, answers: dict[str, Any], **how: Any) -> None:
    check_keys(verb, {key for answer in answers.values() for key in keys(answer, verb)})
    check(name, {key: facts(answer, **how) for key, answer in answers.items()}, verb=verb)


def logs() -> Iterator[tuple[str, str, int | None]]:
    """Name, text and exit code of each log. The name changes with the text only."""
    for name in ("failures", "traps"):
        for row in tomllib.loads((TESTS / "logs" / f"{name}.toml").read_text(encoding="utf-8"))["log"]:
            text = row["text"].strip("\n")
            yield f"{row['label']} {zlib.crc32(text.encode()):08x}", text, row.get("exit")
    for path in sorted((TESTS / "fixtures" / "frameworks").glob("*.log")):
        yield path.stem, path.read_text(encoding="utf-8"), 0


def test_diagnose_of_all_logs() -> None:
    said = {}
    for name, text, code in logs():
        Path("train.log").write_text(text, encoding="utf-8")
        said[name] = ask("diagnose", "train.log", *([] if code is None else ["--exit-code", str(code)]))
    compare("diagnose", "diagnose", said)


def test_progress_of_all_logs() -> None:
    texts = {row["id"]: row["text"] for row in rows_of("texts.jsonl")}
    said = {}
    for name, text in {**texts, **{name: text for name, text, _ in logs()}, **progress_cases()}.items():
        Path("train.log").write_text(text, encoding="utf-8")
        said[name] = ask("progress", "train.log")
    compare("progress", "progress", said)


def dated(folder: Path) -> None:
    """All below the folder was written at the same time, each checkpoint a second later."""
    for number, top in enumerate(sorted(folder.iterdir())):
        for path in (top, *top.rglob("*")):
            os.utime(path, (MTIME + number, MTIME + number))


def cut(path: Path, size: int | None) -> None:
    """Cut the biggest file of a checkpoint: its end, or all but ``size`` bytes."""
    biggest = max((p for p in (path, *path.rglob("*")) if p.is_file()), key=lambda p: (p.stat().st_size, p.name))
    raw = biggest.read_bytes()
    biggest.write_bytes(raw[:-9] if size is None else raw[:size])


def test_checkpoints_of_all_layouts_whole_cut_and_empty() -> None:
    listed: dict[str, Any] = {}
    verified: dict[str, Any] = {}
    for build in LAYOUTS:
        for name, size in (("whole", -1), ("cut", None), ("empty", 0)):
            path = build(Path(f"{build.__name__}-{name}"))
            if size != -1:
                cut(path, size)
            dated(path.parent)
            listed[path.parent.name] = ask("checkpoints", "list", str(path.parent))
            code = 0 if name == "whole" else 1
            verified[path.parent.name] = ask("checkpoints", "verify", str(path), "--deep", code=code)
    root = f"{Path.cwd()}/"
    compare("checkpoints_list", "list", listed, wall0=MTIME, root=root)
    compare("checkpoints_verify", "verify", verified, wall0=MTIME, root=root)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_checkpoints() -> None:
    marker = Path("executed")
    Path("scratch").mkdir()
    found = {**{f"{name}, alone": raw for name, raw in {**tricks(marker), **broken_streams(marker)}.items()}}
    found |= archives(Path("scratch"))
    said = {}
    for name, raw in found.items():
        Path("model_1.pt").write_bytes(raw)
        said[name] = ask("checkpoints", "verify", "model_1.pt", "--deep", code=1)["verdict"]
    for name, raw in tricks(marker).items():
        write_archive(Path("model_1.pt"), raw)
        said[name] = ask("checkpoints", "verify", "model_1.pt", "--deep", code=1)["verdict"]
    assert not marker.exists()
    check("checkpoints_hostile", said)


def test_run_dry_run_of_each_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {}
    for name, (options, words, files) in plans().items():
        folder = tmp_path / "plans" / name.replace(" ", "-")
        lay_out(folder, words, files)
        monkeypatch.chdir(folder)
        plan = ask("run", "--dry-run", *options, "--", sys.executable, *words.split())
        plan["checks"] = [each for each in plan["checks"] if each["name"] not in OF_THE_MACHINE]
        plan["problem"] = ""
        said[name] = json.loads(json.dumps(plan).replace(f"{folder}", "/here").replace(sys.executable, "python"))
    compare("dry_run", "run", said)
