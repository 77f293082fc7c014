"""Growth of a log: a point of (time, size) at most once a second, so that a screen can show when a line was written.

``log.index`` in an attempt's folder: records of 16 bytes, little-endian: run seconds as a double, and the log's size
with its highest bit set if a watch began there (the text before such a point was written at an unknown time). It serves
the screen only, so faults of disk and file are not raised.
"""

import contextlib
import os
import struct
from pathlib import Path

FILE_NAME = "log.index"
POINT = struct.Struct("<dQ")
BEGIN = 1 << 63
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
            if self._size is None and self._empty_t is not None and not self._path.exists():
                self._write(self._empty_t, 0)
                self._size = 0
            if size != self._size:
                self._write(t, size)
                self._size = size

    def _write(self, t: float, size: int) -> None:
        begins = self._size is None
        cut = self._size is not None and size < self._size
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if cut else 0), 0o600)
        try:
            known = os.fstat(fd).st_size // POINT.size
            if begins and known:
                # The log was truncated while no supervisor ran: the old points do not apply to it.
                newest = POINT.unpack(os.pread(fd, POINT.size, (known - 1) * POINT.size))[1] & ~BEGIN
                known = 0 if newest > size else known
            if known == 0:
                os.ftruncate(fd, 0)
            os.pwrite(fd, POINT.pack(t, size | (BEGIN if begins or cut else 0)), known * POINT.size)
        finally:
            os.close(fd)


class LogIndex:
    """Reads an index by bisection, without loading it. A missing or damaged one has no points."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def time_of(self, offset: int) -> float | None:
        """Run seconds at which the line at ``offset`` was there, to about a second; None = no supervisor ran."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            count = os.fstat(file.fileno()).st_size // POINT.size
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                if _point(file.fileno(), middle)[1] & ~BEGIN > offset:
                    high = middle
                else:
                    low = middle + 1
            if low < count:
                t, size = _point(file.fileno(), low)
                return None if size & BEGIN else t
        return None

    def offset_at(self, t: float) -> int | None:
        """The last known size of the log at ``t`` (run seconds); None before the first reading."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size // POINT.size
            while low < high:
                middle = (low + high) // 2
                if _point(file.fileno(), middle)[0] > t:
                    high = middle
                else:
                    low = middle + 1
            if low:
                return _point(file.fileno(), low - 1)[1] & ~BEGIN
        return None


def _point(fd: int, number: int) -> tuple[float, int]:
    t, size = POINT.unpack(os.pread(fd, POINT.size, number * POINT.size))
    return t, size
