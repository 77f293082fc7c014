"""The trace: observations in their order, one JSON object per line, compressed and bounded. ``trace_reading`` reads it.

The file is a sequence of gzip members, one for each write, so a torn write costs its own observations only.
"""

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..atomic_files import opened
from ..model.json_line import encode_line
from ..model.observation import Exit, Meta, Observation, Start
from ..processes import status_of
from .home import write_all

LIMIT_BYTES = 16 * 1024 * 1024
"""Two days at 1 Hz with one GPU; a longer run keeps its beginning and its newest days."""
BUFFER_BYTES = 256 * 1024
WRITE_S = 60.0
"""Longest time that an observation waits for its write, in seconds of the run: small writes cost a page each."""
CHUNK_BYTES = 64 * 1024
_LANDMARKS = tuple(f'"kind":"{kind}"'.encode() for kind in ("meta", "learned", "start", "exit"))
"""Always kept: a replay needs them to know the attempt. Quotes within texts are escaped."""


class TraceWriter:
    """Appends observations; over ``limit_bytes`` it drops the older half of them, except meta, start and exit.

    ``wanted``: while this file exists somebody waits for all observations; it is removed once they are written.
    If the trace cannot be written, ``trouble`` is a sentence (None: no problem) and the next flush tries again. Nothing
    is raised but by the constructor's own arguments.
    """

    def __init__(self, path: Path, wanted: Path | None = None, *, limit_bytes: int = LIMIT_BYTES) -> None:
        if limit_bytes <= 0:
            raise ValueError(f"limit_bytes must be more than 0, got {limit_bytes}")
        self.path = path
        self._wanted = wanted
        self.limit_bytes = limit_bytes
        self.trouble: str | None = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._written_t = 0.0
        self._size: int | None = None

    def write(self, observation: Observation) -> None:
        """Take one observation; it is written by the next ``flush``, or when the buffer is full."""
        line = encode_line(observation)
        self._buffer.append(line)
        self._buffered += len(line)
        if isinstance(observation, Meta | Start | Exit) or self._buffered >= BUFFER_BYTES:
            self.flush()

    def flush_if_due(self, t: float) -> None:
        """Write the buffer if that was last done WRITE_S ago, or if it is wanted; ``t``: run seconds."""
        if t - self._written_t >= WRITE_S:
            self._written_t = t
            self.flush()
        if self._wanted is not None and status_of(self._wanted) is not None:
            self.flush()
            with contextlib.suppress(OSError):
                self._wanted.unlink()

    def flush(self) -> None:
        """Write all observations. No fsync: after a power cut the newest may be missing."""
        if not self._buffer:
            return
        data = _compressed(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        try:
            self._append(data)
            self.trouble = None
        except OSError as error:
            self._size = None  # read it again before the next write
            self.trouble = f"{self.path}: {error.strerror or error}; a stretch of the trace is missing"

    close = flush

    def _append(self, data: bytes) -> None:
        if self._size is None:
            self._size = 0
            with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
                self._size = max((end for end, _ in members_of(file)), default=0)  # of whole ones
        if self._size + len(data) > self.limit_bytes:
            self._drop_older_half()
        with opened(self.path, os.O_WRONLY | os.O_CREAT) as descriptor:
            os.ftruncate(descriptor, self._size)  # what a torn write left
            os.lseek(descriptor, self._size, os.SEEK_SET)
            write_all(descriptor, data)
            self._size += len(data)

    def _drop_older_half(self) -> None:
        """Rewrite beside and rename: a reader (or a power cut) in between sees the longer trace.

        A chunk at a time: what a process once had in memory it often keeps.
        """
        temporary = self.path.with_name(f".{self.path.name}.shorter")
        size = self._size or 0
        try:
            older, start = list[bytes](), 0
            with self.path.open("rb") as file, temporary.open("wb") as shorter:
                temporary.chmod(0o600)
                for end, text in members_of(file):
                    if end > size - self.limit_bytes // 2:
                        break
                    older += [
                        line for line in text.splitlines(keepends=True) if any(mark in line for mark in _LANDMARKS)
                    ]
                    start = end
                shorter.write(_compressed(older))
                file.seek(start)
                while (left := size - file.tell()) > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
                    shorter.write(chunk)
                kept = shorter.tell()
            temporary.replace(self.path)
            self._size = kept
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def members_of(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each gzip member: where it ends, and its text. The last one is left out if it is torn. Raises OSError."""
    end, ahead = 0, b""
    while True:
        inflated, parts = zlib.decompressobj(wbits=31), list[bytes]()
        while not inflated.eof:
            ahead = ahead or file.read(CHUNK_BYTES)
            if not ahead:
                return
            try:
                parts.append(inflated.decompress(ahead))
            except zlib.error:
                return
            end += len(ahead) - len(inflated.unused_data)
            ahead = inflated.unused_data
        yield end, b"".join(parts)


def _compressed(lines: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(lines), compresslevel=6, mtime=0)


# Reading of traces, also of damaged ones and of those that other programs wrote.
#
# Any reading may be null or absent. A line without valid content (torn, no JSON, no time, a value of the wrong type) is
# skipped and counted; the first one is kept for the message.

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
KINDS = frozenset(str(kind.__struct_config__.tag) for kind in Observation.__args__)
STAND_INS = {"pid": 0, "attempt": 1}
"""Defaults for fields that a ``start`` must have and a trace of another program may lack."""


def trace_lines(path: Path) -> Iterator[bytes]:
    """The lines of a trace file, compressed or not; none if there is none. Raises other OSErrors."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        if file.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
            file.seek(0)
            yield from file
            return
        file.seek(0)
        for _, text in members_of(file):
            yield from text.splitlines(keepends=True)


class TraceReading:
    """The observations in the order of the lines, read once.

    ``skipped`` counts unreadable lines so far, ``problem`` is ``LINE: why`` of the first; ``foreign`` counts lines of a
    kind that a later version may know.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.skipped = 0
        self.foreign = 0
        self.problem: str | None = None
        self._lines = lines

    def __iter__(self) -> Iterator[Observation]:
        # msgspec types a decoder of a union as the union's type form
        decode = msgspec.json.Decoder[Observation](Observation).decode
        for number, line in enumerate(self._lines, start=1):
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
    """The observation as other programs write it. Raises ValidationError."""
    found = _without_nulls(found)
    if isinstance(found, dict) and isinstance(gpus := found.get("gpus"), list):  # one without an index has its place
        found["gpus"] = [{"index": n, **gpu} if isinstance(gpu, dict) else gpu for n, gpu in enumerate(gpus)]
    if isinstance(found, dict) and found.get("kind") == "start":
        found = {**STAND_INS, **found}
    return msgspec.convert(found, Observation, str_keys=True)  # type: ignore[no-any-return]  # a union's form


def _without_nulls(value: Any) -> Any:
    """Without entries that are null; 9.0 becomes 9: other languages write whole numbers like this."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value
