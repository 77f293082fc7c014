"""The metric history: what is kept how finely, how large it grows, what happens to a damaged file."""

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest

from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample, MetricValues, ProcessSample, Tick
from trainwatch.core.model.progress import Progress
from trainwatch.core.store.history_reader import HistoryReader, each_moment, found_recent
from trainwatch.core.store.history_schema import TIERS, recent_in_memory, recent_path
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.latest import ProgressPoint, latest_of

HOUR, DAY = 3600, 86_400


Open = Callable[[Path], HistoryReader]


@pytest.fixture
def read() -> Iterator[Open]:
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(closing(HistoryReader(path)))


def gpus(t: float, *utils: float | None) -> GpuSample:
    return GpuSample(t=t, gpus=tuple(GpuReading(index=i, util_pct=u, name="G") for i, u in enumerate(utils)))


def tables(path: Path) -> sqlite3.Connection:
    """All tiers of a history, the finest one from its own file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("ATTACH ? AS recent", (str(found_recent(path)),))
    return connection


def is_well(writer: HistoryWriter) -> bool:
    return writer.trouble is None


def test_the_newest_history_samples_are_read_back_complete(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    writer.add(gpus(1, 10.0))
    newest = GpuSample(t=2, gpus=(), trouble="driver gone")
    writer.add(newest)
    writer.add(HostSample(t=3, ram_used_bytes=5.0))
    writer.add(ProgressPoint(t=4, progress=Progress(phase="train", step=7)))
    writer.add(Tick(t=5))
    writer.commit()
    latest = read(tmp_path / "h").latest()
    assert latest.gpu == newest
    assert latest.host == HostSample(t=3, ram_used_bytes=5.0)
    assert latest.process is None
    assert latest.progress is not None
    assert latest.progress.progress.step == 7
    writer.close()


@pytest.mark.parametrize("network", [False, True])
def test_a_series_has_min_mean_max_and_gaps(tmp_path: Path, read: Open, network: bool) -> None:
    writer = HistoryWriter(tmp_path / "h", network=network)
    for t in [*range(10), *range(20, 30)]:
        writer.add(gpus(t, float(t), None))
        writer.add(ProcessSample(t=t, cpu_cores=2.0))
    writer.commit()
    reader = read(tmp_path / "h")
    assert reader.series("gpu0.util", 0, 30, 3) == [(5, 0, 4.5, 9), (25, 20, 24.5, 29)]
    assert reader.series("gpu1.util", 0, 30, 3) == [], "unknown is not zero"
    assert reader.series("gpu7.util", 0, 30, 3) == []
    assert reader.series("process.cpu", 0, 30, 1) == [(15, 2, 2, 2)]
    assert reader.series("process.cpu", 5, 5, 1) == []
    assert reader.gpus() == (0, 1)
    with pytest.raises(ValueError, match=r"no metric 'gpu.util'"):
        reader.series("gpu.util", 0, 1, 1)
    writer.close()


def test_samples_of_the_same_second_share_one_bucket(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    for t, util in ((1.1, 50.0), (1.5, 100.0), (1.9, None), (2.2, 7.0)):
        writer.add(gpus(t, util))
    writer.commit()
    writer.add(gpus(1.95, 0.0))
    writer.close()
    assert read(tmp_path / "h").series("gpu0.util", 0, 10, 10) == [(1.5, 0, 37.5, 100), (2.5, 7, 7, 7)]


def test_old_history_is_thinned_but_keeps_minimum_and_maximum(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    spike_t = 1234
    for t in range(2 * HOUR):
        writer.add(gpus(t, 100.0 if t == spike_t else 50.0))
    writer.commit()
    reader = read(tmp_path / "h")
    connection = tables(tmp_path / "h")
    assert connection.execute("SELECT COUNT(*), MIN(t) FROM gpu_1").fetchone() == (HOUR + 10, HOUR - 10)
    assert connection.execute("SELECT COUNT(*), MIN(t) FROM gpu_10").fetchone() == (2 * HOUR // 10 - 1, 0)
    assert connection.execute("SELECT COUNT(*), MIN(t) FROM gpu_600").fetchone() == (2 * HOUR // 600 - 1, 0)
    assert max(high for _, _, _, high in reader.series("gpu0.util", 0, 2 * HOUR, 20)) == 100
    [(_, low, mean, high)] = reader.series("gpu0.util", 0, 2 * HOUR, 1)
    assert (low, high) == (50, 100)
    assert mean == pytest.approx(50 + 50 / (2 * HOUR))
    writer.add(gpus(3 * DAY, 50.0))
    writer.close()
    assert len(reader.series("gpu0.util", 3 * DAY - HOUR, 3 * DAY + 10, 5000)) == 1
    assert connection.execute("SELECT COUNT(*) FROM gpu_60").fetchone() == (2 * HOUR // 60,)
    connection.close()
    [(_, low, mean, high)] = reader.series("gpu0.util", 0, 2 * HOUR, 1)
    assert (low, high) == (50, 100)
    assert mean == pytest.approx(50 + 50 / (2 * HOUR))


def test_every_moment_is_read_from_one_tier_and_a_week_from_the_coarsest(tmp_path: Path, read: Open) -> None:
    """Points of every width agree with all samples, also near the ends of the tiers."""
    writer = HistoryWriter(tmp_path / "h")
    times = [*range(0, 9 * DAY, 700), *range(9 * DAY, 10 * DAY, 40), *range(10 * DAY, 10 * DAY + 2 * HOUR, 7)]
    for number, t in enumerate(times):
        writer.add(HostSample(t=t, ram_used_bytes=float(t)))
        if number % 97 == 0:
            writer.commit()
    writer.close()
    reader = read(tmp_path / "h")
    end = times[-1] + 1
    for since in (0, 8 * DAY, 9 * DAY - 1234, 10 * DAY + 500, end - HOUR, end - 600):
        for points in (1, 7, 300):
            found = reader.series("host.ram_used", since, end, points)
            assert found == list(reader.charts(["host.ram_used"], since, end, points)["host.ram_used"])
            assert found[0][1] == pytest.approx(since, abs=700 + 600)
            assert found[-1][3] == times[-1]
            assert [p[3] for p in found] == sorted(p[3] for p in found)
            assert all(b[1] > a[3] for a, b in pairwise(found)), "no sample is in two points"
            assert max((b[1] - a[3] for a, b in pairwise(found)), default=0) <= 700, "no sample is missing"
    kept = [t for t, *_ in reader.rows("host.ram_used")]
    assert kept == sorted(set(kept))
    assert sum(1 for t in kept if t >= end - HOUR) == sum(1 for t in times if t >= end - HOUR)
    connection = tables(tmp_path / "h")
    every = each_moment("host", len(TIERS) - 1, "{span} AS span")
    bounds = {"since": 0, "until": end}
    assert connection.execute(f"SELECT MAX(span), COUNT(*) < 1600 FROM ({every})", bounds).fetchone() == (600, 1)
    connection.close()


def test_a_value_that_is_logged_late_is_in_every_tier(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    for t in range(0, 2 * HOUR, 50):
        writer.add(MetricValues(t=t, values={"f1": 1.0}))
        writer.commit()
    writer.add(MetricValues(t=2 * HOUR, at_t=HOUR + 1805, values={"f1": 9.0}))
    writer.close()
    for points in (7200, 720, 120, 12, 1):
        highs = [high for *_, high in read(tmp_path / "h").series("metric.f1", 0, 2 * HOUR, points)]
        assert max(highs) == 9.0


def test_bytes_clocks_and_fans_are_whole_in_every_tier_and_shares_are_not(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    for t in range(0, DAY, 9):
        gpu = GpuReading(index=0, util_pct=40 + t % 2, clock_mhz=1500 + t % 7, pcie_received=1e9 + t % 7 + 0.5)
        writer.add(GpuSample(t=t, gpus=(gpu,)))
        if t % 9000 == 0:
            writer.commit()
    writer.close()
    assert is_well(writer)
    with closing(tables(tmp_path / "h")) as connection:
        for tier in TIERS:
            rows = connection.execute(f"SELECT clock, pcie_in, pcie_in_max, util FROM gpu_{tier.span_s}").fetchall()
            assert rows
            assert all(clock == int(clock) and rate == int(rate) for clock, rate, _, _ in rows)
            assert all(highest is None or highest >= rate for _, rate, highest, _ in rows)
        means = connection.execute("SELECT util FROM gpu_600").fetchall()
    assert any(mean != int(mean) for (mean,) in means)
    (point, *_) = read(tmp_path / "h").series("gpu0.clock", 0, DAY, 4)
    assert 1500 <= point[2] <= 1506


def test_missing_damaged_and_unrelated_files_are_read_as_an_empty_history(tmp_path: Path, read: Open) -> None:
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    (tmp_path / "damaged").write_bytes(b"this is no database, and never was one" * 100)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for name in ("missing", "newer", "damaged", "empty", "folder"):
        reader = read(tmp_path / name)
        assert reader.latest().gpu is None
        assert reader.series("gpu0.util", 0, 100, 10) == []
        assert reader.gpus() == ()
    assert not (tmp_path / "missing").exists()


def test_a_damaged_history_file_is_renamed_and_a_new_one_started(tmp_path: Path, read: Open) -> None:
    garbage = b"this is no database, and never was one" * 100
    path = tmp_path / "h"
    path.write_bytes(garbage)
    writer, reader = HistoryWriter(path), read(path)
    writer.add(gpus(1, 10.0))
    assert reader.series("gpu0.util", 0, 10, 10) == []
    writer.commit()
    assert writer.trouble is not None
    assert (tmp_path / "h.damaged").read_bytes() == garbage
    writer.commit()
    assert is_well(writer)
    assert reader.series("gpu0.util", 0, 10, 10) == [(1.5, 10, 10, 10)], "nothing was lost, and the reader goes along"
    writer.close()


def test_a_history_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "h"
    newer = sqlite3.connect(path)
    newer.execute("CREATE TABLE later (x)")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = path.read_bytes()
    writer = HistoryWriter(path)
    writer.add(gpus(1, 10.0))
    writer.commit()
    writer.close()
    assert writer.trouble is not None
    assert "another version of trainwatch" in writer.trouble
    assert path.read_bytes() == before


@pytest.mark.parametrize("network", [False, True])
def test_rows_are_written_later_if_the_history_file_is_locked(tmp_path: Path, read: Open, network: bool) -> None:
    path = tmp_path / "h"
    writer = HistoryWriter(path, network=network)
    writer.add(gpus(1, 10.0))
    writer.commit()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    writer.add(gpus(2, 20.0))
    writer.commit()
    assert writer.trouble is not None
    reader = read(path)
    assert len(reader.series("gpu0.util", 0, 10, 10)) == 1
    blocker.execute("ROLLBACK")
    blocker.close()
    writer.commit()
    assert is_well(writer)
    assert len(reader.series("gpu0.util", 0, 10, 10)) == 2
    writer.close()
    assert read(path).latest().gpu == gpus(2, 20.0), "the writer is gone, its file is not"


def test_a_history_without_wal_files_is_read_in_immutable_mode(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    writer.add(gpus(1, 10.0))
    writer.close()
    reader = read(tmp_path / "h")
    assert reader._query_still("SELECT COUNT(*) FROM gpu_1", ()) == [(1,)]


def test_nan_in_the_history_is_unknown(tmp_path: Path, read: Open) -> None:
    writer = HistoryWriter(tmp_path / "h")
    for t, loss in ((1, float("nan")), (2, float("inf")), (3, 0.5)):
        writer.add(ProgressPoint(t=t, progress=Progress(loss=loss)))
    writer.close()
    assert read(tmp_path / "h").series("progress.loss", 0, 10, 10) == [(3.5, 0.5, 0.5, 0.5)]


def test_newest_samples_are_seen_before_the_history_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    writer = HistoryWriter(path)
    with closing(HistoryReader(path)) as reader:
        for t in range(50):
            writer.add(HostSample(t=t, cpu_pct=t))
            writer.show(t)
            latest = reader.latest().host
            assert latest is not None
            assert latest.t == t
        assert [t for t, *_ in reader.series("host.cpu", 0, 60, 60)] == [0.5], "written at once, then once a minute"
        writer.add(HostSample(t=50, cpu_pct=50))
        writer.show(50)
        assert len(reader.series("host.cpu", 0, 60, 60)) == 51, "somebody reads charts now"
    writer.close()


def test_newest_samples_of_an_earlier_supervisor_are_in_the_file_of_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "h"
    with closing(HistoryWriter(path)) as first:
        first.add(HostSample(t=1, ram_used_bytes=5.0))
        first.add(ProgressPoint(t=2, progress=Progress(phase="train", step=7)))
        first.show(2)
    with closing(HistoryWriter(path)) as second:
        second.add(HostSample(t=9, ram_used_bytes=6.0))
        second.show(9)
        second.show(10)
        path.rename(tmp_path / "elsewhere")  # the file alone answers
        latest = latest_of(path)
    assert latest.host == HostSample(t=9, ram_used_bytes=6.0)
    assert latest.progress is not None
    assert latest.progress.progress.step == 7


def test_what_changes_each_second_is_in_memory_and_survives_a_kill(tmp_path: Path, read: Open) -> None:
    path = tmp_path / "history.sqlite"
    writer = HistoryWriter(path)
    charts = read(path)
    for second in range(700):
        writer.add(HostSample(t=second, cpu_pct=float(second)))
        writer.add(MetricValues(t=second, values={"f1": float(second)}))
        if second % 10 == 0:
            charts.series("host.cpu", 0, 700, 700)
        writer.show(second)
        if second == 610:
            committed = path.stat().st_mtime_ns
    assert path.stat().st_mtime_ns == committed, "nothing reaches the disk between two commits"
    place = recent_in_memory(path)
    assert place is not None
    assert place.exists()
    assert not recent_path(path).exists()
    latest = read(path).latest().metrics
    assert latest is not None
    assert latest.values == {"f1": 699.0}
    continued = HistoryWriter(path)  # the first was killed
    continued.add(HostSample(t=800, cpu_pct=800.0))
    continued.close()
    assert is_well(continued)
    assert recent_path(path).exists()
    assert not place.exists()
    for points in (900, 90):
        values = [mean for _, _, mean, _ in read(path).series("host.cpu", 0, 900, points)]
        assert values == sorted(values)
        assert len(values) >= points * 0.77
    recent_path(path).unlink()
    assert len(read(path).series("host.cpu", 0, 900, 900)) == 70, "without it, ten seconds each"


def test_a_disk_that_became_read_only_does_not_stop_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordered end of a supervisor looked like a crash: its lock kept its pid."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    writer = HistoryWriter(tmp_path / "history.db")
    writer.add(gpus(1.0, 50.0))
    writer.commit()
    for name in ("chmod", "replace", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    writer.close()
