"""The trace: bounded, and always replayable from its first line."""

import io
from pathlib import Path

import pytest

from trainwatch.core.model.observation import Exit, GpuReading, GpuSample, LogChunk, Meta, Observation, Start, Tick
from trainwatch.core.store.trace import TraceReading, TraceWriter, members_of, trace_lines


def is_well(writer: TraceWriter) -> bool:
    return writer.trouble is None


def read(path: Path) -> TraceReading:
    return TraceReading(trace_lines(path))


def test_trace_observations_are_read_back_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    seen: list[Observation] = [
        Meta(t=0, command=("python", "train.py")),
        Start(t=0, attempt=1, pid=4),
        GpuSample(t=1, gpus=(GpuReading(index=0, util_pct=None, mem_used_bytes=1e9),)),
        LogChunk(t=1.4, text="50%|█▏| \r\n\x1b[0m"),
        Exit(t=2, code=1),
    ]
    writer = TraceWriter(path)
    for observation in seen:
        writer.write(observation)
    writer.close()
    assert list(read(path)) == seen
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_trace_over_its_size_limit_keeps_starts_ends_and_the_newest_half(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    limit = 20_000
    writer = TraceWriter(path, limit_bytes=limit)
    writer.write(Meta(t=0, command=("x",)))
    writer.write(Start(t=0, attempt=1, pid=1))
    for number in range(1, 3000):
        writer.write(LogChunk(t=number, text=f'line {number} with "kind":"start" in it'))
        if number == 1000:
            writer.write(Exit(t=number, code=1))
            writer.write(Start(t=number, attempt=2, pid=2))
        writer.flush()
    writer.close()
    assert path.stat().st_size <= limit + 200
    kept = list(read(path))
    assert [type(o).__name__ for o in kept[:4]] == ["Meta", "Start", "Exit", "Start"]
    chunks = [o.t for o in kept if isinstance(o, LogChunk)]
    assert chunks == list(range(int(chunks[0]), 3000)), "one unbroken stretch up to the newest"
    assert len(chunks) * 70 > limit / 2 - 1000
    assert [o.t for o in kept] == sorted(o.t for o in kept)
    assert [p.name for p in tmp_path.iterdir()] == ["trace.jsonl"]


def test_a_torn_write_costs_its_own_observations_only(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    for t in (1, 2):
        writer = TraceWriter(path)
        writer.write(Tick(t=t))
        writer.close()
        whole = path.read_bytes()
        first = next(end for end, _ in members_of(io.BytesIO(path.read_bytes())))
        for cut in range(1, first):
            path.write_bytes(whole + whole[:cut])
            assert [o.t for o in read(path)] == list(range(1, t + 1))
    writer = TraceWriter(path)
    writer.write(Tick(t=3))
    writer.close()
    assert [o.t for o in read(path)] == [1, 2, 3]
    assert path.stat().st_size < 3 * len(whole)


def test_observations_are_written_once_a_minute_or_when_somebody_waits_for_them(tmp_path: Path) -> None:
    path, wanted = tmp_path / "trace.jsonl.gz", tmp_path / "wanted"
    writer = TraceWriter(path, wanted)
    for t in range(200):
        writer.write(LogChunk(t=t, text="step"))
        if t == 150:
            wanted.touch()
        writer.flush_if_due(t)
        if t == 150:
            assert not wanted.exists()
            assert [o.t for o in read(path)][-1] == 150
    assert sum(1 for _ in members_of(io.BytesIO(path.read_bytes()))) == 4, "at 60, 120, 150 and 180 s"


def test_a_trace_that_cannot_be_written_reports_trouble_and_does_not_raise(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "trace.jsonl"
    writer = TraceWriter(path)
    writer.write(Tick(t=1))
    writer.flush()
    assert writer.trouble is not None
    assert "a stretch of the trace is missing" in writer.trouble
    path.parent.mkdir()
    writer.write(Tick(t=2))
    writer.close()
    assert is_well(writer)
    assert [o.t for o in read(path)] == [2]


def test_size_limit_of_a_trace_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than 0"):
        TraceWriter(tmp_path / "t", limit_bytes=0)
