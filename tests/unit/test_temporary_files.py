"""Temporary files that a killed process left are removed by the next writer; those of a living one stay."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainwatch.core.store.home import STALE_S, clear_leftovers, temporary_beside, write_atomically
from trainwatch.core.store.journal import JournalWriter

KILLED = """
import os, signal, sys
from pathlib import Path
from trainwatch.core.store.home import temporary_beside
temporary_beside(Path(sys.argv[1])).write_text("half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def leave_one(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


def with_owner(own: Path, **changed: str) -> Path:
    """The name of a temporary file of this process, with another PID, START or PLACE."""
    head, owner, number, suffix = own.name.rsplit(".", 3)
    fields = dict(zip(("pid", "start", "place"), owner.split("-"), strict=True)) | changed
    return own.with_name(f"{head}.{'-'.join(fields.values())}.{number}.{suffix}")


def test_the_next_writer_of_a_journal_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    leave_one(tmp_path / "story.bin")
    assert [name.endswith(".tmp") for name in names_in(tmp_path)] == [True]
    with JournalWriter(tmp_path / "journal.jsonl"):
        pass
    assert names_in(tmp_path) == ["journal.jsonl"]


def test_a_file_of_a_living_writer_stays(tmp_path: Path) -> None:
    own = temporary_beside(tmp_path / "run.json")
    own.touch()
    os.utime(own, (0, 0))
    clear_leftovers(tmp_path)
    assert own.exists()


def test_a_file_of_another_process_with_that_pid_is_removed(tmp_path: Path) -> None:
    other = with_owner(temporary_beside(tmp_path / "run.json"), start="1")
    other.touch()
    clear_leftovers(tmp_path)
    assert not other.exists()


@pytest.mark.parametrize(("age_s", "stays"), [(60.0, True), (STALE_S + 60.0, False)])
def test_a_file_whose_writer_cannot_be_looked_at_goes_after_a_day(age_s: float, stays: bool, tmp_path: Path) -> None:
    """Of another boot, machine or container."""
    file = tmp_path / ".run.json.999999999-5-00000000.0a1b2c3d.tmp"
    file.touch()
    wall = file.stat().st_mtime - age_s
    os.utime(file, (wall, wall))
    clear_leftovers(tmp_path)
    assert file.exists() is stays


def test_other_files_stay_however_old_they_are(tmp_path: Path) -> None:
    names = ["train.log", "notes.tmp", ".notes.tmp", ".run.json.tmp", "run.json.12.tmp", ".run.json.0a1b2c3d.tmp"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    clear_leftovers(tmp_path)
    assert names_in(tmp_path) == sorted(names)
    clear_leftovers(tmp_path / "nowhere")


def test_a_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "run.json", b"{}")
    assert names_in(tmp_path) == ["run.json"]
