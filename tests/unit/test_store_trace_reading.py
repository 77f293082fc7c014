"""A trace is read however whole it is: unknown is not zero, and one bad line is not the end of the record."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.core.model.observation import GpuSample, Meta, Observation, ProcessSample, Start, Tick
from trainwatch.core.store.trace import TraceReading


def read(*lines: Any) -> tuple[list[Observation], TraceReading]:
    reading = TraceReading(line if isinstance(line, bytes) else msgspec.json.encode(line) + b"\n" for line in lines)
    return list(reading), reading


@pytest.mark.parametrize(
    ("gpus", "indices"),
    [
        ([{"util": 3}], [0]),
        ([{"index": None, "util": 3}, {"index": None}], [0, 1]),
        ([{"index": 1.0, "util": 3.0, "own": None}], [1]),
        (None, []),
    ],
)
def test_any_gpu_field_of_a_trace_may_be_missing_or_null(gpus: Any, indices: list[int]) -> None:
    (seen,), reading = read({"t": 1, "kind": "gpu", "gpus": gpus})
    assert isinstance(seen, GpuSample)
    assert [g.index for g in seen.gpus] == indices
    assert reading.skipped == 0


def test_nulls_and_whole_numbers_with_a_point_are_read() -> None:
    (seen,), _ = read({"t": 1, "kind": "process", "cpu": None, "procs": 9.0, "states": {"R": None}, "read_bytes": 7})
    assert seen == ProcessSample(t=1, procs=9, read_bytes=7, states={})


def test_a_start_without_a_pid_is_read_as_a_start() -> None:
    (seen,), _ = read({"t": 0, "kind": "start", "attempt": 2})
    assert seen == Start(t=0, attempt=2, pid=0)


def test_nulls_in_the_first_trace_line_are_defaults() -> None:
    (seen,), _ = read({"t": 0, "kind": "meta", "version": None, "settings": None, "command": None})
    assert seen == Meta(t=0)


def test_a_trace_with_a_byte_order_mark_and_windows_line_ends_is_read() -> None:
    seen, reading = read(b'\xef\xbb\xbf{"t":0,"kind":"tick"}\r\n', b"\r\n", b'{"t":1,"kind":"tick"}\r\n')
    assert seen == [Tick(t=0), Tick(t=1)]
    assert reading.skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":2,"kind":"ti',
        b"\x00\xff\xfe binary",
        b"[1]",
        b"[" * 5000,
        {"t": None, "kind": "tick"},
        {"kind": "tick"},
        {"t": 1},
        {"t": 1, "kind": "log", "text": None},
        {"t": 1, "kind": "checkpoint", "path": "a", "event": "melted"},
    ],
)
def test_invalid_trace_lines_are_counted_and_listed(line: Any) -> None:
    seen, reading = read({"t": 0, "kind": "tick"}, line, {"t": 3, "kind": "tick"})
    assert [o.t for o in seen] == [0, 3]
    assert reading.skipped == 1
    assert reading.problem is not None
    assert reading.problem.startswith("2: ")


def test_trace_kinds_of_a_later_version_are_skipped_silently() -> None:
    seen, reading = read({"t": 0, "kind": "weather", "sky": "grey"}, {"t": 1, "kind": "tick"})
    assert seen == [Tick(t=1)]
    assert (reading.foreign, reading.skipped) == (1, 0)


VALUES = st.recursive(
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
FIELDS = [
    "t",
    "pid",
    "attempt",
    "gpus",
    "states",
    "cpu",
    "text",
    "path",
    "event",
    "size",
    "code",
    "signal",
    "changes",
    "settings",
]


@given(
    st.sampled_from(
        ["meta", "start", "gpu", "host", "process", "log", "checkpoint", "kernel", "exit", "tick", "learned"]
    ),
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
)
def test_every_trace_line_is_read_or_counted_as_invalid(kind: str, fields: dict[str, Any]) -> None:
    seen, reading = read({**fields, "kind": kind})
    assert len(seen) + reading.skipped == 1
