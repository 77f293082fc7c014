"""When a line was written: sampled by the log's growth."""

from pathlib import Path

import pytest

from trainwatch.core.store.log_index import POINT, LogIndex, LogIndexWriter


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_bytes(b"")
    return path


def grow(log: Path, size: int) -> None:
    with log.open("ab") as file:
        file.write(b"x" * (size - log.stat().st_size))


def test_log_index_gives_the_time_at_which_a_line_was_first_seen(tmp_path: Path, log: Path) -> None:
    writer, index = LogIndexWriter(tmp_path / "log.index", str(log)), LogIndex(tmp_path / "log.index")
    for t, size in ((10.0, 0), (11.0, 100), (12.0, 250), (13.0, 250), (700.0, 300)):
        grow(log, size)
        writer.look(t)
    assert [index.time_of(o) for o in (0, 99, 100, 249, 250, 299, 300)] == [11, 11, 12, 12, 700, 700, None]
    assert (tmp_path / "log.index").stat().st_size == 4 * POINT.size


def test_log_index_has_at_most_one_point_per_second(tmp_path: Path, log: Path) -> None:
    writer = LogIndexWriter(tmp_path / "log.index", str(log))
    for i in range(100):
        grow(log, i + 1)
        writer.look(i / 10)
    assert (tmp_path / "log.index").stat().st_size == 10 * POINT.size


def test_log_lines_written_without_a_supervisor_have_no_time(tmp_path: Path, log: Path) -> None:
    index = LogIndex(tmp_path / "log.index")
    first = LogIndexWriter(tmp_path / "log.index", str(log))
    grow(log, 100)
    first.look(5)
    grow(log, 200)
    first.look(6)
    grow(log, 900)
    second = LogIndexWriter(tmp_path / "log.index", str(log))
    second.look(100)
    grow(log, 1000)
    second.look(101)
    assert [index.time_of(o) for o in (50, 150, 500, 950)] == [None, 6, None, 101]


def test_a_truncated_log_starts_a_new_index(tmp_path: Path, log: Path) -> None:
    writer, index = LogIndexWriter(tmp_path / "log.index", str(log)), LogIndex(tmp_path / "log.index")
    for t, size in ((1, 0), (2, 500)):
        grow(log, size)
        writer.look(t)
    log.write_bytes(b"y" * 50)
    writer.look(3)
    grow(log, 80)
    writer.look(4)
    assert [index.time_of(o) for o in (10, 60, 400)] == [None, 4, None]
    log.write_bytes(b"z" * 10)
    LogIndexWriter(tmp_path / "log.index", str(log)).look(5)
    assert index.time_of(60) is None


def test_a_torn_index_point_is_overwritten(tmp_path: Path, log: Path) -> None:
    writer, index = LogIndexWriter(tmp_path / "log.index", str(log)), LogIndex(tmp_path / "log.index")
    writer.look(1)
    with (tmp_path / "log.index").open("ab") as file:
        file.write(b"torn")
    grow(log, 10)
    writer.look(2)
    assert index.time_of(5) == 2


def test_log_index_that_cannot_be_written_or_read_gives_no_times(tmp_path: Path, log: Path) -> None:
    writer = LogIndexWriter(tmp_path / "no" / "such" / "folder", str(log))
    writer.look(1)
    assert LogIndex(tmp_path / "none").time_of(0) is None


def test_log_index_of_a_launched_trainer_starts_with_an_empty_log(tmp_path: Path, log: Path) -> None:
    grow(log, 60)
    LogIndexWriter(tmp_path / "log.index", str(log), empty_t=4.0).look(5.0)  # the first points are written at once
    index = LogIndex(tmp_path / "log.index")
    assert index.time_of(0) == 5.0
