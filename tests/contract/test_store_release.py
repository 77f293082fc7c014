"""Journal and metric history of 0.1.0 stay readable, and are continued (tests/fixtures/release)."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from trainwatch.core.model.decision import Decision
from trainwatch.core.model.fact import Fact, Note
from trainwatch.core.model.observation import HostSample
from trainwatch.core.store import history_schema
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter, latest_snapshot, load_story, read_journal

RELEASE = Path(__file__).parent.parent / "fixtures" / "release"

KINDS = {
    "attempt_ended", "attempt_started", "budget", "checkpoint", "command", "health", "incident_opened",
    "incident_updated", "note", "phase", "profile", "progress", "run_created", "snapshot", "state_changed",
    "supervisor_ended", "supervisor_started",
    "capture_stacks", "clear_gpu", "end_watch", "give_up", "notify", "pause_attempt", "start_attempt", "stop_attempt",
    "unpause_attempt", "verify_checkpoint",
}  # fmt: skip


def tag(body: object) -> str:
    return str(type(body).__struct_config__.tag)  # type: ignore[attr-defined]


def test_the_journal_has_every_kind_and_is_read_without_loss() -> None:
    reading = read_journal(RELEASE / "every_kind.jsonl")
    records = list(reading)
    assert reading.skipped == 0
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    assert {tag(r.fact or r.decision) for r in records if r.outcome is None} == KINDS
    known = {str(kind.__struct_config__.tag) for kind in (*get_args(Fact), *get_args(Decision))}
    assert known >= KINDS, "a kind was renamed or removed: journals of the release would lose it"


def test_the_journal_gives_the_recorded_story() -> None:
    story = load_story(RELEASE / "every_kind.jsonl")
    assert story.run is not None
    assert (story.run.name, story.state, story.wall0) == ("luca", "given_up", 1_700_000_000.0)
    assert [(a.number, a.how, a.code, a.signal, a.last_step) for a in story.attempts] == [
        (1, "crashed", 1, None, 431),
        (2, "killed", None, "SIGKILL", None),
    ]
    assert story.attempts[1].resume_step == 400
    assert [c.name for c in story.checkpoints] == ["model-000004.safetensors"]
    [incident] = story.incidents
    assert (incident.class_, incident.open, incident.lost_steps, incident.evidence[0].line) == (
        "cuda_oom",
        False,
        31,
        812,
    )
    assert (story.progress.step, story.budget_used, story.budget_max) == (1, 1, 3)
    assert story.health["gpu0.temp"].level == "warning"
    snapshot = latest_snapshot(RELEASE / "every_kind.jsonl")
    assert snapshot is not None
    assert snapshot.state == {"step": 430, "nested": {"deadline_s": 90.0}}


def test_a_journal_with_power_cuts_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    shutil.copy(RELEASE / "power_cut.jsonl", path)
    before = path.read_bytes()
    reading = read_journal(path)
    assert [r.seq for r in reading] == [*range(1, 13), 14]
    assert reading.skipped == 3
    with JournalWriter(path) as writer:
        assert writer.append_all(94.0, 1_700_000_094.0, [Note(text="on")])[0].seq == 15
    assert path.read_bytes().startswith(before)
    assert load_story(path).notices[-2:] == ("after the power cut", "on")


def test_serialised_names_are_those_of_the_release() -> None:
    first = (RELEASE / "every_kind.jsonl").read_bytes().splitlines()[0]
    assert set(msgspec.json.decode(first)) == {"v", "seq", "t", "wall", "fact"}


TWO_HOURS = 7200.0


@pytest.fixture
def old(tmp_path: Path) -> Path:
    for file in RELEASE.glob("history.sqlite*"):
        shutil.copy(file, tmp_path)
    return tmp_path / "history.sqlite"


def host_at(t: float) -> HostSample:
    return HostSample(t=t, ram_used_bytes=13e9, ram_total_bytes=32e9)


def columns_of(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            (name, str(column[1])) for name in tables for column in connection.execute(f"PRAGMA table_info({name})")
        }


def test_the_history_is_read(old: Path) -> None:
    with HistoryReader(old) as history:
        latest = history.latest()
        assert latest.progress is not None
        assert (latest.progress.t, latest.progress.progress.step) == (7140.0, 2380)
        assert latest.gpu is not None
        assert latest.gpu.gpus[0].power_w == 290.0
        for metric, value in (("gpu0.util", 97.0), ("host.cpu", 20.0), ("process.rss", 8e9), ("progress.loss", 0.1)):
            assert [point[2] for point in history.series(metric, 0.0, TWO_HOURS, 2)] == pytest.approx([value, value])


def test_the_history_is_continued(old: Path) -> None:
    writer = HistoryWriter(old)
    writer.add(host_at(TWO_HOURS))
    writer.close()
    assert writer.trouble is None
    with HistoryReader(old) as history:
        [before, after] = history.series("host.ram_used", TWO_HOURS - 60, TWO_HOURS + 60, 2)
    assert (before[2], after[2]) == (12e9, 13e9)


def test_a_raised_schema_version_adds_a_metric_to_it(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_schema, "SCHEMA_VERSION", history_schema.SCHEMA_VERSION + 1)
    host = (*history_schema.COLUMNS["host"], ("ram_total", "ram_total_bytes"))
    monkeypatch.setitem(history_schema.COLUMNS, "host", host)
    with HistoryReader(old) as history:
        assert history.series("host.ram_total", 0.0, TWO_HOURS, 1) == []
        assert len(history.series("host.ram_used", 0.0, TWO_HOURS, 1)) == 1
    for t in (TWO_HOURS, TWO_HOURS + 5.0):  # the second writer finds the new version
        writer = HistoryWriter(old)
        writer.add(host_at(t))
        writer.close()
        assert writer.trouble is None
    with HistoryReader(old) as history:
        assert [point[2] for point in history.series("host.ram_total", 0.0, 2 * TWO_HOURS, 1)] == [32e9]
        assert [point[2] for point in history.series("host.ram_used", 0.0, TWO_HOURS, 1)] == [12e9]
        assert [point[2] for point in history.series("gpu0.util", 0.0, TWO_HOURS, 1)] == [97.0]


def test_the_history_has_the_columns_of_a_new_one_once_it_is_continued(old: Path, tmp_path: Path) -> None:
    for path in (old, tmp_path / "new.sqlite"):
        writer = HistoryWriter(path)
        writer.add(host_at(TWO_HOURS))
        writer.close()
    assert columns_of(old) >= columns_of(tmp_path / "new.sqlite"), "raise SCHEMA_VERSION"


@pytest.mark.parametrize("version", [history_schema.OLDEST_VERSION - 1, history_schema.SCHEMA_VERSION + 1])
def test_a_history_of_another_format_is_refused_with_what_to_do_and_not_changed(old: Path, version: int) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = columns_of(old)
    writer = HistoryWriter(old)
    writer.add(host_at(TWO_HOURS))
    writer.close()
    assert "move the file away" in str(writer.trouble)
    assert columns_of(old) == before
    with HistoryReader(old) as history:
        assert history.series("host.ram_used", TWO_HOURS, TWO_HOURS + 60, 1) == []
