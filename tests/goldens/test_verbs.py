"""What ``status``, ``report``, ``events`` and ``runs`` say of recorded journals."""

import os
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.goldens.asking import ask
from tests.goldens.facts import check, check_keys, facts, keys
from tests.goldens.journals import laid_out, recordings
from tests.goldens.stories import WALL0
from trainwatch.cli import main
from trainwatch.core.model.launch import Queue, QueueEntry

RECORDINGS = {each.name: each for each in recordings()}
REPEATED = frozenset({"health", "phase", "progress"})
"""Facts that all journals have many of: of these the events are compared in one journal only."""


@cache
def answers(name: str) -> dict[str, Any]:
    """By verb."""
    recording = RECORDINGS[name]
    run, here = recording.spec.id, Path.cwd()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with laid_out(recording, Path(folder) / "home", patch):
            said = {
                "exit_code": main(["status", run, "--exit-code"]),
                "status": ask("status", run),
                "report": ask("report", run),
                "events": ask("events", run, lines=True),
            }
        os.chdir(here)
    return said


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_journal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = dict(answers(name))
    if name != "healthy":
        said["events"] = [each for each in said["events"] if each.get("fact", {}).get("fact") not in REPEATED]
    check(name, facts(said, wall0=WALL0))


@pytest.mark.parametrize("verb", ["status", "report", "events"])
def test_no_key_of_a_verb_is_gone(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_keys(verb, {key for name in RECORDINGS for key in keys(answers(name)[verb], verb)})


def test_all_runs_and_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    waiting = tuple(
        QueueEntry(
            id=n, key=str(n), name=f"e{n}", cwd="/golden", added_wall=WALL0, words=("--", "x"), why="GPU 0: full"
        )
        for n in (1, 2)
    )
    with ExitStack() as stack:
        for recording in RECORDINGS.values():
            stack.enter_context(laid_out(recording, tmp_path / "home", monkeypatch))
        (tmp_path / "home" / "queue").mkdir()
        (tmp_path / "home" / "queue" / "queue.json").write_bytes(msgspec.json.encode(Queue(next_id=3, entries=waiting)))
        runs = ask("runs")
    check("runs", {key: sorted(facts(rows, wall0=WALL0), key=lambda row: str(row["id"])) for key, rows in runs.items()})
    check_keys("runs", set(keys(runs, "runs")))
