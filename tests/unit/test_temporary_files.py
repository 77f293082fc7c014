"""Temporary files that a killed process left are removed by a later writer; other files stay."""

import os
from pathlib import Path

from trainwatch.core.store.home import STALE_S, clear_leftovers, temporary_beside, write_atomically
from trainwatch.core.store.journal import JournalWriter


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_writer_of_a_journal_removes_what_was_left_a_day_ago(tmp_path: Path) -> None:
    for name, age_s in (("old", STALE_S + 60.0), ("young", 60.0)):
        file = temporary_beside(tmp_path / name)
        file.touch()
        wall = file.stat().st_mtime - age_s
        os.utime(file, (wall, wall))
    with JournalWriter(tmp_path / "journal.jsonl"):
        pass
    assert [name.split(".")[1] for name in names_in(tmp_path)] == ["young", "jsonl"]


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
