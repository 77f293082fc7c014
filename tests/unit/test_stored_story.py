"""The stored story is used only where it fits the journal, and the judge's states only where the journal names them."""

from pathlib import Path

import pytest

from trainwatch.core.model.decision import Entry
from trainwatch.core.model.fact import JudgeSnapshot, Note
from trainwatch.core.store import journal as stored_story
from trainwatch.core.store.journal import (
    NAME,
    NAMES,
    JournalWriter,
    fold_whole_lines,
    latest_snapshot,
    load_story,
    read_journal,
    read_stored,
    store,
)
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.supervision import SafeJournal


def write(path: Path, *texts: str) -> None:
    with JournalWriter(path) as writer:
        writer.append_all(1.0, 2.0, [Note(text=text) for text in texts])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.jsonl"
    write(path, "one", "two")
    store(path, fold_whole_lines(path))
    assert read_stored(path).story.notices == ("one", "two")
    return path


@pytest.mark.parametrize("damage", [b"", b"\0" * 400, b"xxxx" * 100])
def test_damaged_file_is_not_used(journal: Path, damage: bytes) -> None:
    journal.with_name(NAME).write_bytes(damage)
    assert read_stored(journal).offset == 0
    assert load_story(journal).notices == ("one", "two")


def test_journal_that_was_replaced_is_folded_anew(journal: Path) -> None:
    journal.unlink()
    write(journal, "uno", "due", "tre", "quattro")
    assert load_story(journal).notices == ("uno", "due", "tre", "quattro")


def test_journal_that_was_cut_is_folded_anew(journal: Path) -> None:
    first = journal.read_bytes().splitlines(keepends=True)[0]
    journal.write_bytes(first)
    assert load_story(journal).notices == ("one",)


def test_story_of_another_fold_is_not_used(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_story, "_fold", lambda: 1)
    assert read_stored(journal).offset == 0


def test_long_journal_is_stored_by_its_first_reader_and_by_its_writer(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    write(run.journal, *(["x" * 1000] * 100))
    load_story(run.journal)
    stored = read_stored(run.journal).offset
    assert stored == run.journal.stat().st_size
    journal = SafeJournal(run)
    journal.append_all(1.0, 2.0, [*([Note(text="y" * 1000)] * 100), snapshot(1)])
    journal.close()
    assert read_stored(run.journal).offset == run.journal.stat().st_size > stored


def snapshot(number: int) -> JudgeSnapshot:
    return JudgeSnapshot(version=3, state={"number": number, "learned": "x" * 5000})


def newest(run: RunDirectory) -> int | None:
    found = latest_snapshot(run.journal)
    return None if found is None else int(str(found.state["number"]))


def test_states_of_the_judge_stand_beside_the_journal(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for number in range(5):
        journal = SafeJournal(run)
        journal.append_all(1.0, 2.0, [Note(text="more"), snapshot(number)])
        journal.append_all(1.0, 2.0, [snapshot(number + 10)])
        journal.close()
        assert newest(run) == number + 10
    assert run.journal.stat().st_size < 4000
    assert {each.name for each in tmp_path.glob("judge*")} == set(NAMES)


def test_kill_between_the_state_and_its_record_leaves_the_older_pair(tmp_path: Path) -> None:
    """The story and the judge's state must always be of the same moment: else a stop becomes a restart."""
    run = RunDirectory(tmp_path)
    journal = SafeJournal(run)
    journal.append_all(1.0, 2.0, [snapshot(1)])
    journal.append_all(1.0, 2.0, [snapshot(2)])
    before = run.journal.read_bytes()
    for number in (3, 4):  # one supervisor after the other is killed before its record is written
        journal.append_all(1.0, 2.0, [snapshot(number)])
        journal.close()
        run.journal.write_bytes(before)
        assert newest(run) == 2
        journal = SafeJournal(run)
    journal.append_all(1.0, 2.0, [snapshot(5)])
    assert newest(run) == 5


def test_state_that_cannot_be_written_stays_in_the_journal(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    journal = SafeJournal(run)
    for name in NAMES:
        (tmp_path / name).mkdir()
    journal.append_all(1.0, 2.0, [snapshot(1)])
    assert newest(run) == 1
    for name in NAMES:
        (tmp_path / name).rmdir()
    journal.append_all(1.0, 2.0, [snapshot(2)])
    assert newest(run) == 2
    bodies: list[Entry | None] = [r.fact for r in read_journal(run.journal)]
    assert [isinstance(body, JudgeSnapshot) and bool(body.state) for body in bodies] == [True, False]


def test_lost_state_is_no_snapshot(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    journal = SafeJournal(run)
    journal.append_all(1.0, 2.0, [snapshot(1)])
    for each in tmp_path.glob("judge*"):
        each.write_bytes(each.read_bytes()[:-1])
    assert latest_snapshot(run.journal) is None
