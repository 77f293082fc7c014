"""Follows one growing file by name through late creation, rotation and truncation."""

import os
import stat
from typing import NamedTuple

FINGERPRINT_BYTES = 32
"""Bytes before the reading position that are compared at each poll. They differ if the file was truncated and has
grown past the position again (``logrotate copytruncate``)."""
ROTATION_POLLS = 2
"""Polls without new data after which a renamed file is left for the new one. Its writer may still have it open."""
ALIGN_BYTES = 65536
"""Most bytes in which a beginning inside the file is moved to the next line end."""


class Refresh(NamedTuple):
    """Result of ``refresh``: bytes that wait to be read, and at a new beginning how many were skipped before them.

    ``left_out`` None: the file continues. A number: another file, a truncated one, or the first poll; the text that was
    read before is complete.
    """

    waiting: int
    left_out: int | None


class FollowedFile:
    """Returns the bytes of the file ``path``, each once and in order.

    ``begin_within_bytes``: begin at most so many bytes before the end of a file that exists at the first poll (0: at
    its end; None: at its start); a file that appears later is read from its start. ``refresh`` and ``read`` raise
    OSError, but not for a missing file.
    """

    def __init__(self, path: str, *, begin_within_bytes: int | None = None) -> None:
        self.path = path
        self._begin_within_bytes = begin_within_bytes
        self._scan_first = True
        self._fd: int | None = None
        self._key = (0, 0)
        self._offset = 0
        self._fingerprint = b""
        self._ended_looks = 0

    @property
    def key(self) -> tuple[int, int] | None:
        """Device and inode of the file that is open."""
        return None if self._fd is None else self._key

    @property
    def is_leaving(self) -> bool:
        """Whether the file was renamed, and is looked at again before the new one is read."""
        return self._ended_looks > 0

    def refresh(self) -> Refresh:
        first, self._scan_first = self._scan_first, False
        if self._fd is None:
            return self._open(first=first)
        waiting = os.fstat(self._fd).st_size - self._offset
        if waiting < 0 or (waiting > 0 and self._was_rewritten()):
            return self._restart()
        if waiting == 0 and self._was_replaced():
            self._ended_looks += 1
            if self._ended_looks >= ROTATION_POLLS:
                self.close()
                return self._open(first=False)
        else:
            self._ended_looks = 0
        return Refresh(waiting, None)

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; b"" at the end, or if the file was truncated meanwhile."""
        if self._fd is None:
            return b""
        data = os.pread(self._fd, size, self._offset)
        self._offset += len(data)
        self._fingerprint = (self._fingerprint + data[-FINGERPRINT_BYTES:])[-FINGERPRINT_BYTES:]
        return data

    def waiting(self) -> int:
        """Bytes that wait to be read. Raises OSError."""
        return 0 if self._fd is None else max(0, os.fstat(self._fd).st_size - self._offset)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, *, first: bool) -> Refresh:
        try:
            # A pipe or terminal with that name must not block.
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except FileNotFoundError:
            return Refresh(0, None)
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise OSError("it is not a regular file")
        self._fd, self._key = fd, (status.st_dev, status.st_ino)
        waiting = self._restart().waiting
        if first and self._begin_within_bytes is not None and waiting > self._begin_within_bytes:
            return self._skip(waiting - self._begin_within_bytes, waiting)
        return Refresh(waiting, 0)

    def _restart(self) -> Refresh:
        self._offset, self._fingerprint, self._ended_looks = 0, b"", 0
        return Refresh(os.fstat(self._fd).st_size if self._fd is not None else 0, 0)

    def _skip(self, size: int, waiting: int) -> Refresh:
        """Begin after the first line end after ``size``."""
        self._offset = size
        if size < waiting:
            ahead = os.pread(self._fd or 0, ALIGN_BYTES, size)
            self._offset += ahead.find(b"\n") + 1
        before = max(0, self._offset - FINGERPRINT_BYTES)
        self._fingerprint = os.pread(self._fd or 0, self._offset - before, before)
        return Refresh(waiting - self._offset, self._offset)

    def _was_rewritten(self) -> bool:
        size = len(self._fingerprint)
        return os.pread(self._fd or 0, size, self._offset - size) != self._fingerprint

    def _was_replaced(self) -> bool:
        try:
            status = os.stat(self.path)  # noqa: PTH116  (10 Hz)
        except FileNotFoundError:
            return False  # renamed, and the new one does not exist yet
        return (status.st_dev, status.st_ino) != self._key
