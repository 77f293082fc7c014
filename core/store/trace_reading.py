"""Reading of traces, also of damaged ones and of those that other programs wrote.

Any reading may be null or absent; a value of the wrong type counts as unknown. A line without any valid content (torn,
no JSON, no time) is skipped and counted; the first one is kept for the message.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..model.observation import Observation
from .run_directory import RunDirectory
from .trace import members_of

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
KINDS = frozenset(str(kind.__struct_config__.tag) for kind in Observation.__args__)
MOST_REPAIRS = 64
"""A line with more wrong values than this (several for each of 16 GPUs) is skipped."""
STAND_INS = {"pid": 0, "attempt": 1}
"""Defaults for fields that a ``start`` must have and a trace of another program may lack."""

_PATH = re.compile(r" - at `(?P<path>\$[^`]*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>\w+)`")
_PART = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+|\.\.\.)\]")


def run_trace_lines(run: RunDirectory) -> Iterator[bytes]:
    """The lines of a run's trace, oldest first. Raises OSError."""
    if run.trace.exists():
        yield from trace_lines(run.trace)


def trace_lines(path: Path) -> Iterator[bytes]:
    """The lines of a trace file, compressed or not. Raises OSError."""
    with path.open("rb") as file:
        if file.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
            file.seek(0)
            yield from file
            return
        file.seek(0)
        for _, text in members_of(file):
            yield from text.splitlines(keepends=True)


class TraceReading:
    """An iterator over observations in the order of the lines.

    ``skipped`` counts unreadable lines so far, ``problem`` is ``LINE: why`` of the first; ``foreign`` counts lines of a
    kind that a later version may know.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.skipped = 0
        self.foreign = 0
        self.problem: str | None = None
        self._observations = self._read(lines)

    def __iter__(self) -> Iterator[Observation]:
        return self._observations

    def __next__(self) -> Observation:
        return next(self._observations)

    def _read(self, lines: Iterable[bytes]) -> Iterator[Observation]:
        # msgspec types a decoder of a union as the union's type form
        decode = msgspec.json.Decoder[Observation](Observation).decode
        for number, line in enumerate(lines, start=1):
            try:
                yield decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                seen = self._repaired(line, number)
                if seen is not None:
                    yield seen

    def _repaired(self, line: bytes, number: int) -> Observation | None:
        line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.strip():
            return None
        try:
            found = msgspec.json.decode(line)
            if isinstance(found, dict) and isinstance(found.get("kind"), str) and found["kind"] not in KINDS:
                self.foreign += 1
                return None
            return _converted(found)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.skipped += 1
            why = str(error) if isinstance(error, msgspec.ValidationError) else f"no JSON object: {error}"
            self.problem = self.problem or f"{number}: {why}"
            return None


def _converted(found: Any) -> Observation:
    """The observation without its invalid values. Raises ValidationError if required ones are missing."""
    found = _whole_numbers(found)
    for _ in range(MOST_REPAIRS):
        try:
            return msgspec.convert(found, Observation, str_keys=True)  # type: ignore[no-any-return]  # a union's form
        except msgspec.ValidationError as error:
            if not _without_wrong_value(found, str(error)):
                raise
    return msgspec.convert(found, Observation, str_keys=True)  # type: ignore[no-any-return]  # a union's form


def _whole_numbers(value: Any) -> Any:
    """9.0 becomes 9: other languages write whole numbers like this."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(inner) for inner in value]
    return value


def _without_wrong_value(found: Any, error: str) -> bool:
    """Remove the value that ``error`` names from ``found``, or add a missing one. False: not possible."""
    at = _PATH.search(error)
    way = [m["key"] or m["index"] for m in _PART.finditer(at["path"])] if at else []
    if (missing := _MISSING.match(error)) is None:
        return _take_out(found, way)
    if missing["field"] == "index":  # a GPU without an index has its place in the list
        found["gpus"][int(way[-1])]["index"] = int(way[-1])
        return True
    if not way and missing["field"] in STAND_INS:
        found[missing["field"]] = STAND_INS[missing["field"]]
        return True
    return _take_out(found, way)


def _take_out(found: Any, way: list[str]) -> bool:
    if "..." in way:  # an entry of a mapping: the whole mapping is removed
        way = way[: way.index("...")]
    if not way:
        return False
    *outer, last = way
    for part in outer:
        found = found[int(part)] if isinstance(found, list) else found[part]
    del found[int(last) if isinstance(found, list) else last]
    return True
