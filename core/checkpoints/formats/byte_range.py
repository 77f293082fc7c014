"""A range of a file, read with ``pread``.

Never mapped: truncating a mapped file kills its reader with SIGBUS, and trainers rotate checkpoints at any time.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .damage import Corrupt, Opaque, Torn
from .page_cache import ReadOnce


class ByteRange:
    """``size`` bytes of an open file from ``start``. Offsets in all methods are relative to ``start``.

    ``once``: the file's pages, if it is read through once.
    """

    __slots__ = ("fd", "once", "size", "start")

    def __init__(self, fd: int, start: int, size: int, once: ReadOnce | None = None) -> None:
        self.fd = fd
        self.start = start
        self.size = size
        self.once = once

    def part(self, offset: int, size: int) -> "ByteRange":
        """A range inside this one. Raises Torn when it reaches beyond the end."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise Torn(f"bytes {offset} to {offset + size} are needed, but there are only {self.size}")
        return ByteRange(self.fd, self.start + offset, size, self.once)

    def read(self, offset: int, size: int) -> bytes:
        """Exactly ``size`` bytes.

        Raises Torn when there are fewer, Corrupt when the disk cannot read them, OSError when that cannot be told.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            raise Torn(f"bytes {offset} to {offset + size} are needed, but there are only {self.size}")
        try:
            data = os.pread(self.fd, size, self.start + offset)
        except OSError as error:
            raise unreadable(error, f"byte {offset}") from error
        if len(data) == size:
            return data
        buffer = bytearray(size)  # a short read: large sizes, or the end moved
        self.fill(memoryview(buffer), offset)
        return bytes(buffer)

    def fill(self, buffer: memoryview, offset: int) -> None:
        """Fill the whole buffer from ``offset``. Raises as ``read``."""
        done, wanted = 0, len(buffer)
        while done < wanted:
            try:
                got = os.preadv(self.fd, [buffer[done:]], self.start + offset + done)
            except OSError as error:
                raise unreadable(error, f"byte {offset + done}") from error
            if got == 0:
                raise Torn(f"ends at byte {offset + done} while it is being read: it was cut just now")
            done += got

    def is_read_to(self, offset: int) -> None:
        """Nothing before ``offset`` is read again (``once``)."""
        if self.once is not None:
            self.once.behind(self.start + offset)

    def expect_sequential(self) -> None:
        """Announce to the kernel that the whole file is read in order, so that it reads ahead."""
        with suppress(OSError):  # some filesystems do not support it; reading works without it
            os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)


@contextmanager
def open_bytes(path: Path, *, once: bool = False) -> Iterator[ByteRange]:
    """Open a regular file for reading.

    A named pipe or device is refused before it is opened, because opening may block or have an effect. Raises
    FileNotFoundError, Opaque (no permission, not a regular file), Corrupt (the disk cannot read it), OSError (the mount
    does not answer). ``once``: it is read through, and its pages are given back that were not cached before.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(error, "the start") from error
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise Opaque("is not a regular file")
        pages = ReadOnce(fd, before.st_size) if once else None
        try:
            yield ByteRange(fd, 0, before.st_size, pages)
        finally:
            if pages is not None:
                pages.close()
    finally:
        os.close(fd)


NOT_THE_FILE = frozenset(
    getattr(errno, name)
    for name in (
        "ESTALE", "ETIMEDOUT", "ENOTCONN", "ECONNRESET", "ECONNABORTED", "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH",
        "ENETDOWN", "ENETUNREACH", "EREMOTEIO", "ENODEV", "EINTR", "EAGAIN", "ENOMEM", "EMFILE", "ENFILE",
    )
)  # fmt: skip
"""Errors of a mount or of this process. They say nothing about the file."""


def unreadable(error: OSError, where: str) -> Corrupt | Opaque | OSError:
    """The damage for a read that the system refused; the error itself if it is not the file's."""
    if error.errno in NOT_THE_FILE:
        return error
    if error.errno in {errno.EACCES, errno.EPERM, errno.ENXIO, errno.EISDIR, errno.ELOOP}:
        return Opaque(f"cannot be opened: {error.strerror}")
    return Corrupt(f"cannot be read at {where}: {error.strerror}")
