"""Copies of checkpoints, to a folder and by a command, with real files."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.checkpoint_layouts import safetensors_file
from trainwatch.core.act import evaluator
from trainwatch.core.act.evaluator import CheckpointCommands
from trainwatch.core.checkpoints.inspection import verify
from trainwatch.core.checkpoints.manage import copies
from trainwatch.core.model.decision import BackUpCheckpoint
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Backup, Settings


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return safetensors_file(tmp_path / "out")


def backup(tmp_path: Path, **settings: object) -> CheckpointCommands:
    found = Settings(backup=Backup(**settings))  # type: ignore[arg-type]
    spec = RunSpec(id="luca-1", name="luca", command=("x",), cwd=str(tmp_path), created_wall=0.0, settings=found)
    return CheckpointCommands(
        spec=spec,
        folders=tmp_path / "evaluations",
        verify=lambda path, deep, progress=None: verify(path, deep=deep, progress=progress),
        base_env={},
        write=lambda _path, _data: None,
        copy=copies.backup,
    )


def order(path: Path) -> BackUpCheckpoint:
    return BackUpCheckpoint(id=1, reason="copy", path=str(path), mtime=path.stat().st_mtime)


@pytest.mark.parametrize("directory", [False, True])
def test_a_copy_is_verified_and_a_second_one_is_not_made(tmp_path: Path, checkpoint: Path, directory: bool) -> None:
    (tmp_path / "disk").mkdir()
    copies = backup(tmp_path, to="disk")
    found = checkpoint.parent.rename(tmp_path / "checkpoint-500") if directory else checkpoint
    os.utime(found, (1000, 1000))
    asked = BackUpCheckpoint(id=1, reason="copy", path=str(found), mtime=verify(found, deep=True).mtime)
    ok, detail, _ = copies.back_up(asked)
    assert ok, detail
    copy = tmp_path / "disk" / "luca-1" / found.name
    whole = [(place / checkpoint.name if directory else place).read_bytes() for place in (copy, found)]
    assert whole[0] == whole[1]
    ok, detail, _ = copies.back_up(asked)
    assert ok
    assert "already" in detail
    assert list(copy.parent.iterdir()) == [copy]


def test_a_checkpoint_written_again_is_kept_beside_the_first_copy(tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "disk").mkdir()
    copies = backup(tmp_path, to="disk")
    os.utime(checkpoint, (1000, 1000))
    assert copies.back_up(order(checkpoint))[0]
    os.utime(checkpoint, (5000, 5000))
    assert copies.back_up(order(checkpoint))[0]
    names = {path.name for path in (tmp_path / "disk" / "luca-1").iterdir()}
    assert len(names) == 2
    assert checkpoint.name in names


def test_a_disk_that_is_not_mounted_and_a_damaged_checkpoint_are_refused(tmp_path: Path, checkpoint: Path) -> None:
    ok, detail, _ = backup(tmp_path, to="gone").back_up(order(checkpoint))
    assert not ok
    assert "is the disk mounted?" in detail
    assert not (tmp_path / "gone").exists()
    (tmp_path / "disk").mkdir()
    checkpoint.write_bytes(checkpoint.read_bytes()[:-3])
    ok, detail, _ = backup(tmp_path, to="disk").back_up(order(checkpoint))
    assert not ok
    assert "not verified" in detail
    assert list((tmp_path / "disk").iterdir()) == []


def test_the_command_gets_the_path_and_its_failure_is_a_sentence(tmp_path: Path, checkpoint: Path) -> None:
    code = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
    command = (sys.executable, "-c", code, "{checkpoint}", "{run}-{name}")
    ok, detail, _ = backup(tmp_path, command=command).back_up(order(checkpoint))
    assert ok, detail
    assert (tmp_path / f"luca-1-{checkpoint.name}").read_bytes() == checkpoint.read_bytes()
    failing = backup(tmp_path, command=("sh", "-c", "echo no route to host; exit 3", "{checkpoint}"))
    assert failing.back_up(order(checkpoint))[:2] == (False, "backup.command returned 3: no route to host")
    slow = backup(tmp_path, command=("sh", "-c", "sleep 60", "{checkpoint}"), timeout_s=0.4)
    assert "backup.command took more than 0.4 s" in slow.back_up(order(checkpoint))[1]


def test_a_copy_that_does_not_go_on_is_left_behind(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: a server that was gone held the command of the end for ever."""
    monkeypatch.setattr(evaluator, "ENDED_S", 0.0)
    (tmp_path / "disk").mkdir()
    answers, copies = threading.Event(), backup(tmp_path, to="disk", timeout_s=1.0)

    def slow(_source: Path, _target: Path, progress: Callable[[int, int], None]) -> None:
        for done in range(4):
            answers.wait(0.4)
            progress(done, 4)

    copies.copy = slow
    assert copies.back_up(order(checkpoint))[0], "it takes longer than that, and goes on"
    copies.copy = lambda _source, _target, **_more: answers.wait()
    for _ in range(3):
        ok, detail, _ = copies.back_up(order(checkpoint))
        assert (ok, "nothing was copied for 1 s" in detail) == (False, True)
    assert [each.name for each in threading.enumerate()].count("copy") == 1, "what fails at once leaves no thread"
    answers.set()
