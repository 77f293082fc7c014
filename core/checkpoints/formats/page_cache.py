"""The pages of a file that is read once: those that were not cached before are given back behind the reader.

Without this a verification of 4 GB would leave 4 GB in the cache in place of what the trainer's loader needs. Which
pages were there before is known from mincore(2), on a mapping that is never touched: a file that is cut meanwhile does
no harm. If it cannot be known (no mapping, not our file), nothing is given back.

The kernel's own reading ahead suffices: asking it for more (POSIX_FADV_WILLNEED) took 2.5 times as long, on a disk that
reads 8 MB ahead and on one that reads 128 KB, because it fills the cache with single pages.
"""

import mmap
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP_BYTES = 4 << 20
"""Least number of bytes that are given back at once."""
LOOK_BYTES = 1 << 30
"""Bytes that are mapped at once to ask which of their pages are cached (one byte of answer a page)."""


class ReadOnce:
    """Follows one reader through ``size`` bytes of an open file, front to back. Made before the first read.

    ``behind(offset)`` when all bytes up to there were read; ``close`` at the end. Raises nothing.
    """

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._size = size
        self._fresh = list(_not_cached(fd, size))
        """Ranges that were not cached before, in order."""
        self._next = 0
        self._given_back = 0

    def behind(self, offset: int) -> None:
        """Give back what lies before ``offset``."""
        if offset - self._given_back >= STEP_BYTES:
            self._give_back(offset // mmap.PAGESIZE * mmap.PAGESIZE)

    def close(self) -> None:
        """Give back the rest, also what the kernel read ahead in vain."""
        self._give_back(self._size)

    def _give_back(self, to: int) -> None:
        while self._next < len(self._fresh) and self._fresh[self._next][0] < to:
            begin, end = self._fresh[self._next]
            begin = max(begin, self._given_back)
            with suppress(OSError):  # some file systems do not support it; reading works without it
                os.posix_fadvise(self._fd, begin, min(end, to) - begin, os.POSIX_FADV_DONTNEED)
            if end > to:
                break
            self._next += 1
        self._given_back = to


def _not_cached(fd: int, size: int) -> "Iterator[tuple[int, int]]":
    """The ranges of a file whose pages are not in the cache; none where that cannot be known."""
    begun: int | None = None
    for start in range(0, size, LOOK_BYTES):
        length = min(LOOK_BYTES, size - start)
        cached = cached_pages(fd, start, length)
        if cached is None:
            cached = b"\1" * -(-length // mmap.PAGESIZE)
        at = 0
        while at < len(cached):
            if begun is None:
                at = cached.find(b"\0", at)
                if at < 0:
                    break
                begun = start + at * mmap.PAGESIZE
            at = cached.find(b"\1", at)
            if at < 0:
                break
            yield begun, start + at * mmap.PAGESIZE
            begun = None
    if begun is not None:
        yield begun, size


def cached_pages(fd: int, start: int, length: int) -> bytes | None:
    """One byte for each page from ``start`` (a multiple of the page size): 1 if it is cached, else 0. None: not known.

    The kernel says that all are cached if the file is neither ours nor writable for us.
    """
    import ctypes  # slow to import

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, ctypes.c_size_t(length), mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(start))
    if place in {None, ctypes.c_void_p(-1).value}:
        return None
    try:
        answer = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
        if libc.mincore(ctypes.c_void_p(place), ctypes.c_size_t(length), answer) != 0:
            return None
        return bytes(answer).translate(_LOWEST_BIT)
    finally:
        libc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(length))


_LOWEST_BIT = bytes(value & 1 for value in range(256))
"""The other bits of an answer are reserved (mincore(2))."""
