"""The trace: observations in their order, one JSON object per line, bounded in size. ``trace_reading`` reads it."""

import contextlib
import os
from pathlib import Path

from ..model.observation import Exit, Meta, Observation, Start
from ..model.text.json_line import encode_line
from .atomic import write_all

LIMIT_BYTES = 64 * 1024 * 1024
"""A day at 1 Hz with one GPU is about 40 MB; a week of a chatty run keeps its beginning and its newest days."""
_BUFFER_BYTES = 64 * 1024
_LANDMARKS = tuple(f'"kind":"{kind}"'.encode() for kind in ("meta", "learned", "start", "exit"))
"""Always kept: a replay needs them to know the attempt. Quotes within texts are escaped."""


class TraceWriter:
    """Appends observations; over ``limit_bytes`` it drops the older half of them, except meta, start and exit.

    If the trace cannot be written, ``trouble`` is a sentence (None: no problem) and the next flush tries again. Nothing
    is raised but by the constructor's own arguments.
    """

    def __init__(self, path: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        if limit_bytes <= 0:
            raise ValueError(f"limit_bytes must be more than 0, got {limit_bytes}")
        self.path = path
        self.limit_bytes = limit_bytes
        self.trouble: str | None = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._size: int | None = None

    def write(self, observation: Observation) -> None:
        """Take one observation; it is written by the next ``flush``, or when the buffer is full."""
        line = encode_line(observation)
        self._buffer.append(line)
        self._buffered += len(line)
        if self._buffered >= _BUFFER_BYTES or isinstance(observation, Meta | Start | Exit):
            self.flush()

    def flush(self) -> None:
        """Write the buffer. No fsync: after a power cut the newest seconds may be missing."""
        if not self._buffer:
            return
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        try:
            self._append(data)
            self.trouble = None
        except OSError as error:
            self._size = None  # how much was written is unknown: read the size again before the next write
            self.trouble = f"{self.path}: {error.strerror or error}; a stretch of the trace is missing"

    def close(self) -> None:
        self.flush()

    def _append(self, data: bytes) -> None:
        if self._size is not None and self._size + len(data) > self.limit_bytes:
            self._drop_older_half()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if self._size is None:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    data = b"\n" + data  # a torn line stays one line, which readers skip
            write_all(descriptor, data)
            self._size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def _drop_older_half(self) -> None:
        """Rewrite beside and rename: a reader (or a power cut) in between sees the longer trace."""
        temporary = self.path.with_name(f".{self.path.name}.shorter")
        try:
            with self.path.open("rb") as old, temporary.open("wb") as new:
                temporary.chmod(0o600)
                kept_from = (self._size or 0) - self.limit_bytes // 2
                position = 0
                for line in old:
                    position += len(line)
                    if position > kept_from or any(mark in line for mark in _LANDMARKS):
                        new.write(line)
            temporary.replace(self.path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
