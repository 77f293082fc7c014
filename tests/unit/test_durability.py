"""What is written is on the disk (fsync) before it counts as written: each place, in its order."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.checkpoint_layouts import safetensors_file
from trainwatch.core import spool
from trainwatch.core.act.config.trainer_config import write_copy
from trainwatch.core.checkpoints.manage.copies import backup
from trainwatch.core.checkpoints.manage.pruning import apply_prune, plan_prune
from trainwatch.core.model.fact import Note
from trainwatch.core.model.launch import TrialResult
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.story import Look
from trainwatch.core.store.home import write_atomically
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.learned import keep_trial, read_look, trials_folder, write_look
from trainwatch.core.store.run_directory import RunDirectory


class Disk:
    """Records fsync and rename calls: ``("fsync", path, size)``, size None for a folder; ``("rename", new path)``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        fsync, replace, rename = os.fsync, os.replace, os.rename

        def recorded_fsync(descriptor: int) -> None:
            fsync(descriptor)
            status = os.fstat(descriptor)
            size = None if stat.S_ISDIR(status.st_mode) else status.st_size
            self.calls.append(("fsync", Path(f"/proc/self/fd/{descriptor}").readlink(), size))

        def recorded_replace(old: Any, new: Any) -> None:
            replace(old, new)
            self.calls.append(("rename", Path(new)))

        def recorded_rename(old: Any, new: Any) -> None:
            rename(old, new)
            self.calls.append(("rename", Path(new)))

        monkeypatch.setattr(os, "fsync", recorded_fsync)
        monkeypatch.setattr(os, "replace", recorded_replace)
        monkeypatch.setattr(os, "rename", recorded_rename)

    @property
    def kinds(self) -> list[str]:
        """The calls in short: ``file`` and ``folder`` for an fsync, ``rename``."""
        return [call[0] if call[0] == "rename" else "folder" if call[2] is None else "file" for call in self.calls]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_an_atomic_write_is_synced_before_and_after_its_rename(tmp_path: Path, disk: Disk) -> None:
    write_atomically(tmp_path / "run.json", b"content")
    assert disk.kinds == ["file", "rename", "folder"]
    assert disk.calls[0][2] == len(b"content")
    assert disk.calls[1:] == [("rename", tmp_path / "run.json"), ("fsync", tmp_path, None)]


def test_a_runner_file_is_synced_before_and_after_its_rename(tmp_path: Path, disk: Disk) -> None:
    spool.write(str(tmp_path), spool.EXIT, {"code": 0})
    assert disk.kinds == ["file", "rename", "folder"]
    assert disk.calls[0][2] == (tmp_path / spool.EXIT).stat().st_size
    assert disk.calls[1:] == [("rename", tmp_path / spool.EXIT), ("fsync", tmp_path, None)]


def test_a_new_journal_file_has_a_durable_name(tmp_path: Path, disk: Disk) -> None:
    with JournalWriter(tmp_path / "journal.jsonl"):
        assert disk.calls == [("fsync", tmp_path, None)]


def test_records_are_on_the_disk_when_append_returns(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as journal:
        for count in (1, 3):
            disk.calls.clear()
            journal.append_all(1.0, 1001.0, [Note(text="x") for _ in range(count)])
            assert disk.calls == [("fsync", path, path.stat().st_size)]


def test_a_new_run_folder_has_a_durable_name(tmp_path: Path, disk: Disk) -> None:
    spec = RunSpec(id="luca", name="luca", command=("true",), cwd="/", created_wall=0.0)
    run = RunDirectory.create(tmp_path, spec)
    assert ("fsync", run.path.parent, None) in disk.calls


def test_a_derived_config_is_synced_before_its_rename(tmp_path: Path, disk: Disk) -> None:
    original = tmp_path / "train.toml"
    original.write_text("a = 1\n")
    write_copy(tmp_path / "attempt" / "train.toml", "a = 2\n", original)
    assert disk.kinds == ["file", "rename"]
    assert disk.calls[0][2] == len("a = 2\n")


def test_a_trial_result_is_synced(tmp_path: Path, disk: Disk) -> None:
    keep_trial(tmp_path, "luca", TrialResult(profile="safe", wall=1000.0, ran_s=60.0))
    path = trials_folder(tmp_path) / "results" / "luca.jsonl"
    assert disk.calls == [("fsync", path, path.stat().st_size)]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """A folder with two checkpoints, step 10 and step 20."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    for step in (10, 20):
        path = safetensors_file(tmp_path).rename(folder / f"model-step{step:08d}.safetensors")
        os.utime(path, (1000.0 + step, 1000.0 + step))
    return folder


def test_a_backup_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, checkpoints: Path, disk: Disk) -> None:
    newest = checkpoints / "model-step00000020.safetensors"
    (tmp_path / "safe").mkdir()
    backup(newest, tmp_path / "safe" / newest.name)
    assert disk.kinds == ["file", "folder", "rename", "folder"]
    assert disk.calls[0][2] == newest.stat().st_size
    assert disk.calls[2:] == [("rename", tmp_path / "safe" / newest.name), ("fsync", tmp_path / "safe", None)]


def test_a_deletion_of_old_checkpoints_is_synced(checkpoints: Path, disk: Disk) -> None:
    outcome = apply_prune(plan_prune(checkpoints, keep=1))
    assert len(outcome.deleted) == 1
    assert disk.calls == [("fsync", checkpoints, None)]


def test_when_a_person_looked_is_not_waited_for_on_a_slow_disk(tmp_path: Path, disk: Disk) -> None:
    look = Look(wall=1.0, needs=("held:1",))
    write_look(tmp_path / "look.json", look)
    assert read_look(tmp_path / "look.json") == look
    assert disk.kinds == ["rename"]
