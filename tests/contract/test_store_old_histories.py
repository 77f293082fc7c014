"""Metric histories of earlier schema versions are read and continued (tests/fixtures/history, never rewritten)."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trainwatch.core.model.observation import HostSample
from trainwatch.core.store.metrics import history_schema
from trainwatch.core.store.metrics.history import HistoryReader, HistoryWriter

FIXTURES = Path(__file__).parent.parent / "fixtures" / "history"
HISTORIES = sorted(FIXTURES.glob("v*.sqlite"), key=lambda path: int(path.stem[1:]))
TWO_HOURS = 7200.0


@pytest.fixture(params=HISTORIES, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    copied = tmp_path / "history.sqlite"
    shutil.copy(request.param, copied)
    return copied


def host_at(t: float) -> HostSample:
    return HostSample(t=t, ram_used_bytes=13e9, ram_total_bytes=32e9)


def columns_of(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            (name, str(column[1])) for name in tables for column in connection.execute(f"PRAGMA table_info({name})")
        }


def test_a_history_of_an_older_version_is_read(old: Path) -> None:
    with HistoryReader(old) as history:
        latest = history.latest()
        assert latest.progress is not None
        assert (latest.progress.t, latest.progress.progress.step) == (7140.0, 2380)
        assert latest.gpu is not None
        assert latest.gpu.gpus[0].power_w == 290.0
        for metric, value in (("gpu0.util", 97.0), ("host.cpu", 20.0), ("process.rss", 8e9), ("progress.loss", 0.1)):
            assert [point[2] for point in history.series(metric, 0.0, TWO_HOURS, 2)] == pytest.approx([value, value])


def test_readings_that_came_later_make_no_series_of_an_old_history(old: Path) -> None:
    with HistoryReader(old) as history:
        kept = history.series("gpu0.fan", 0.0, TWO_HOURS, 1), history.series("host.net_in", 0.0, TWO_HOURS, 1)
    if version_of(old) < 4:
        assert kept == ([], [])
    else:
        assert [point[2] for series in kept for point in series] == [45.0, 3e6]


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_history_of_an_older_version_is_continued(old: Path) -> None:
    writer = HistoryWriter(old)
    writer.add(host_at(TWO_HOURS))
    writer.close()
    assert writer.trouble is None
    with HistoryReader(old) as history:
        [before, after] = history.series("host.ram_used", TWO_HOURS - 60, TWO_HOURS + 60, 2)
    assert (before[2], after[2]) == (12e9, 13e9)


def test_a_raised_schema_version_adds_a_metric_to_an_old_history(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_old_history_has_the_same_columns_as_a_new_one_after_migration(old: Path, tmp_path: Path) -> None:
    for path in (old, tmp_path / "new.sqlite"):
        writer = HistoryWriter(path)
        writer.add(host_at(TWO_HOURS))
        writer.close()
    assert columns_of(old) >= columns_of(tmp_path / "new.sqlite")


def test_the_newest_history_fixture_has_the_current_columns(tmp_path: Path) -> None:
    newest = tmp_path / HISTORIES[-1].name
    shutil.copy(HISTORIES[-1], newest)  # opening a file in WAL mode makes files beside it
    assert newest.stem == f"v{history_schema.SCHEMA_VERSION}", "add the file of this version"
    writer = HistoryWriter(tmp_path / "new.sqlite")
    writer.add(host_at(0.0))
    writer.close()
    assert columns_of(newest) == columns_of(tmp_path / "new.sqlite"), "raise SCHEMA_VERSION and add a fixture"
