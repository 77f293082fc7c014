"""Growth of a log: a point of (time, size) at most once a second, so that a screen can show when a line was written.

``log.index`` in an attempt's folder: records of 16 bytes, little-endian: run seconds as a double, and the log's size
with its highest bit set if a watch began there (the text before such a point was written at an unknown time). It serves
the screen only, so faults of disk and file are not raised. Points are written in batches; a reader leaves a mark, and
while that is young each is written at once. A killed supervisor loses its last batch: that text has an unknown time.
"""

import contextlib
import os
import struct
import threading
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

from .latest import MARK_S, is_looked_at, leave_mark

FILE_NAME = "log.index"
POINT = struct.Struct("<dQ")
BEGIN = 1 << 63
Point = tuple[float, int]
"""Run seconds, and the size of the log."""
EVERY_S = 1.0
"""Least time between two points: 1.4 MB for a day in which the log grows in every second."""
BATCH_S = 600.0
"""Period of writes while no screen reads the index, in run seconds: as often as charts are written then."""
MOST_PENDING = 7200
"""Points that are kept while the disk is full: two hours."""


class LogIndexWriter:
    """Watches the size of one log. ``path``: the index; continues after an earlier supervisor.

    ``empty_t``: run seconds at which the log was empty for certain (its attempt was launched then); None = unknown.
    """

    def __init__(self, path: Path, log: str, *, empty_t: float | None = None) -> None:
        self._path, self._log, self._empty_t = path, log, empty_t
        self._t = -EVERY_S
        self._size: int | None = None
        self._pending: list[tuple[float, int]] = []
        self._written_t = -BATCH_S
        self._cut = False
        self._joined = False
        self._lock = threading.Lock()

    def look(self, t: float) -> None:
        """Note the log's size at ``t`` if it changed, at most once in ``EVERY_S``."""
        if t - self._t < EVERY_S:
            return
        self._t = t
        with contextlib.suppress(OSError):
            try:
                size = os.stat(self._log).st_size  # noqa: PTH116
            except FileNotFoundError:
                size = 0
            with self._lock:
                if self._size is None and self._empty_t is not None and not self._path.exists():
                    self._note(self._empty_t, 0)
                if size != self._size:
                    self._note(t, size)
                if self._pending and (t - self._written_t >= BATCH_S or is_looked_at(self._path)):
                    self._write(t)

    def close(self) -> None:
        """Write what was noted."""
        with contextlib.suppress(OSError), self._lock:
            if self._pending:
                self._write(self._t)

    def _note(self, t: float, size: int) -> None:
        if len(self._pending) >= MOST_PENDING:  # it cannot be written: text until here has an unknown time
            self._pending.clear()
            self._size, self._empty_t, self._joined = None, None, False
        begins = self._size is None
        if self._size is not None and size < self._size:
            self._pending.clear()
            self._cut = begins = True
        self._pending.append((t, size | (BEGIN if begins else 0)))
        self._size = size

    def _write(self, t: float) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if self._cut else 0), 0o600)
        try:
            known = os.fstat(fd).st_size // POINT.size
            if not self._joined and known:
                # The log was truncated while no supervisor ran: the old points do not apply to it.
                newest = POINT.unpack(os.pread(fd, POINT.size, (known - 1) * POINT.size))[1] & ~BEGIN
                known = 0 if newest > self._pending[0][1] & ~BEGIN else known
            if known == 0:
                os.ftruncate(fd, 0)
            points = b"".join(POINT.pack(*point) for point in self._pending)
            written = os.pwrite(fd, points, known * POINT.size)
        finally:
            os.close(fd)
        del self._pending[: written // POINT.size]
        self._cut, self._joined, self._written_t = False, True, t


class LogIndex:
    """Reads an index by bisection, without loading it. A missing or damaged one has no points."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def time_of(self, offset: int) -> float | None:
        """Run seconds at which the line at ``offset`` was there, to about a second; None = no supervisor ran."""
        _, found = self._around(lambda _t, size: size & ~BEGIN > offset)
        return None if found is None or found[1] & BEGIN else found[0]

    def offset_at(self, t: float) -> int | None:
        """The last known size of the log at ``t`` (run seconds); None before the first reading."""
        found, _ = self._around(lambda at, _size: at > t)
        return None if found is None else found[1] & ~BEGIN

    def _around(self, beyond: Callable[[float, int], bool]) -> tuple[Point | None, Point | None]:
        """The last point that is not ``beyond``, and the first one that is."""
        self._leave_mark()
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            fd, count = file.fileno(), os.fstat(file.fileno()).st_size // POINT.size
            first = bisect_left(range(count), True, key=lambda number: beyond(*_point(fd, number)))
            return _point(fd, first - 1) if first else None, _point(fd, first) if first < count else None
        return None, None

    def _leave_mark(self) -> None:
        if self._path.exists() and not is_looked_at(self._path, MARK_S):
            leave_mark(self._path)


def _point(fd: int, number: int) -> Point:
    t, size = POINT.unpack(os.pread(fd, POINT.size, number * POINT.size))
    return t, size
