"""Growth of a log: a point of (time, size) at most once a second, so that a screen can show when a line was written.

``log.index`` in an attempt's folder: records of 16 bytes, little-endian: run seconds as a double, and the log's size
with its highest bit set if a watch began there (the text before such a point was written at an unknown time). It serves
the screen only, so faults of disk and file are not raised: text of that time has an unknown one.
"""

import contextlib
import os
import struct
from bisect import bisect_left
from pathlib import Path

from ..atomic_files import opened

FILE_NAME = "log.index"
POINT = struct.Struct("<dQ")
BEGIN = 1 << 63
Point = tuple[float, int]
"""Run seconds, and the size of the log."""
EVERY_S = 1.0
"""Least time between two points: 1.4 MB for a day in which the log grows in every second."""


class LogIndexWriter:
    """Watches the size of one log. ``path``: the index; continues after an earlier supervisor.

    ``empty_t``: run seconds at which the log was empty for certain (its attempt was launched then); None = unknown.
    """

    def __init__(self, path: Path, log: str, *, empty_t: float | None = None) -> None:
        self._path, self._log, self._empty_t = path, log, empty_t
        self._t = -EVERY_S
        self._size: int | None = None
        """None: text from before the next point has an unknown time."""

    def look(self, t: float) -> None:
        """Note the log's size at ``t`` if it changed, at most once in ``EVERY_S``."""
        if t - self._t < EVERY_S:
            return
        self._t = t
        try:
            with contextlib.suppress(FileNotFoundError):
                size = os.stat(self._log).st_size  # noqa: PTH116
                if size != self._size:
                    self._write(t, size)
                self._size = size
        except OSError:
            self._size = None

    def _write(self, t: float, size: int) -> None:
        before = self._size
        with opened(self._path, os.O_RDWR | os.O_CREAT) as fd:
            known = os.fstat(fd).st_size // POINT.size
            newest = _point(fd, known - 1)[1] & ~BEGIN if known else 0
            if size < newest:  # the log was truncated: the old points do not apply to it
                os.ftruncate(fd, 0)
                known, before = 0, None
            points = POINT.pack(t, size | (BEGIN if before is None else 0))
            if known == 0 and self._size is None and self._empty_t is not None:
                points = POINT.pack(self._empty_t, BEGIN) + POINT.pack(t, size)
            os.pwrite(fd, points, known * POINT.size)


class LogIndex:
    """Reads an index by bisection, without loading it. A missing or damaged one has no points."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def time_of(self, offset: int) -> float | None:
        """Run seconds at which the line at ``offset`` was there, to about a second; None = no supervisor ran."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            fd, count = file.fileno(), os.fstat(file.fileno()).st_size // POINT.size
            first = bisect_left(range(count), True, key=lambda number: _point(fd, number)[1] & ~BEGIN > offset)
            if first < count:
                t, size = _point(fd, first)
                return None if size & BEGIN else t
        return None

    def size_at(self, t: float) -> int:
        """Bytes of the log that were there at ``t``, in run seconds; 0 if it is not known."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            fd, count = file.fileno(), os.fstat(file.fileno()).st_size // POINT.size
            later = bisect_left(range(count), True, key=lambda number: _point(fd, number)[0] > t)
            return _point(fd, later - 1)[1] & ~BEGIN if later else 0
        return 0


def _point(fd: int, number: int) -> Point:
    t, size = POINT.unpack(os.pread(fd, POINT.size, number * POINT.size))
    return t, size
