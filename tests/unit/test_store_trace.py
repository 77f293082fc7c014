"""The trace: bounded, and always replayable from its first line."""

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.core.model.observation import (
    Exit,
    GpuReading,
    GpuSample,
    LogChunk,
    Meta,
    Observation,
    ProcessSample,
    Start,
    Tick,
)
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


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ({"kind": "gpu", "gpus": [{"util": 3}]}, GpuSample(t=1, gpus=(GpuReading(index=0, util_pct=3),))),
        (
            {"kind": "gpu", "gpus": [{"index": None, "util": 3}, {"index": None}]},
            GpuSample(t=1, gpus=(GpuReading(index=0, util_pct=3), GpuReading(index=1))),
        ),
        ({"kind": "gpu", "gpus": [{"index": 1.0, "own": None}]}, GpuSample(t=1, gpus=(GpuReading(index=1),))),
        ({"kind": "gpu", "gpus": None}, GpuSample(t=1)),
        (
            {"kind": "process", "cpu": None, "procs": 9.0, "states": {"R": None}, "read_bytes": 7},
            ProcessSample(t=1, procs=9, read_bytes=7, states={}),
        ),
        ({"kind": "start", "attempt": 2}, Start(t=1, attempt=2, pid=0)),
        ({"kind": "meta", "version": None, "settings": None, "command": None}, Meta(t=1)),
    ],
)
def test_what_is_missing_or_null_in_a_trace_is_unknown_and_not_zero(line: dict[str, Any], seen: Observation) -> None:
    reading = TraceReading([msgspec.json.encode({"t": 1, **line})])
    assert list(reading) == [seen]
    assert reading.skipped == 0


KINDS = ["meta", "start", "gpu", "host", "process", "log", "checkpoint", "kernel", "exit", "tick", "learned"]
FIELDS = ["t", "pid", "attempt", "gpus", "states", "cpu", "text", "path", "event", "size", "code", "signal", "changes", "settings"]  # fmt: skip
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["index", "util", "own", "R"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), ANY))
def test_every_trace_line_is_read_or_counted_as_invalid(kind: str, fields: dict[str, Any]) -> None:
    reading = TraceReading([msgspec.json.encode({**fields, "kind": kind})])
    assert len(list(reading)) + reading.skipped == 1
