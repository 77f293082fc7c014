"""One growing file, followed by name through late creation, rotation and truncation."""

import os
import stat
from pathlib import Path
from typing import NamedTuple

FINGERPRINT_BYTES = 32
"""Bytes before the reading position that are looked at again: a file that was cut and has already grown past the
position (``logrotate copytruncate``) differs there."""
ROTATION_LOOKS = 2
"""Looks at which a renamed file must stand at its end before the new one is taken: its writer may not know yet."""
ALIGN_BYTES = 65536
"""How far a beginning inside the file looks for the end of a line."""


class Look(NamedTuple):
    """What ``refresh`` saw: bytes that wait to be read, and at a new beginning how many were left out before them.

    ``left_out`` None: the file goes on where it was. A number: another file, a cut one, or the first look; what was
    read before is complete.
    """

    waiting: int
    left_out: int | None


class FollowedFile:
    """Bytes of the file that is called ``path``, each exactly once and in order.

    ``begin_within_bytes``: begin at most so many bytes before the end of what is there at the first look (0: at its
    end; None: at its start); a file that appears later is read from its start. Faults of the file system are raised
    as OSError by ``refresh`` and ``read``; a missing file is none.
    """

    def __init__(self, path: str, *, begin_within_bytes: int | None = None) -> None:
        self.path = path
        self._begin_within_bytes = begin_within_bytes
        self._first_look = True
        self._fd: int | None = None
        self._key = (0, 0)
        self._offset = 0
        self._fingerprint = b""
        self._ended_looks = 0

    def refresh(self) -> Look:
        """Look at the file."""
        first, self._first_look = self._first_look, False
        if self._fd is None:
            return self._open(first=first)
        waiting = os.fstat(self._fd).st_size - self._offset
        if waiting < 0 or (waiting > 0 and self._was_rewritten()):
            return self._restart()
        if waiting == 0 and self._was_replaced():
            self._ended_looks += 1
            if self._ended_looks >= ROTATION_LOOKS:
                self.close()
                return self._open(first=False)
        else:
            self._ended_looks = 0
        return Look(waiting, None)

    def read(self, size: int) -> bytes:
        """The next at most ``size`` bytes; b"" at the end (or when the file was cut meanwhile)."""
        if self._fd is None:
            return b""
        data = os.pread(self._fd, size, self._offset)
        self._offset += len(data)
        self._fingerprint = (self._fingerprint + data[-FINGERPRINT_BYTES:])[-FINGERPRINT_BYTES:]
        return data

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, *, first: bool) -> Look:
        try:
            # A pipe or terminal of that name must not block us.
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except FileNotFoundError:
            return Look(0, None)
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise OSError("it is not a regular file")
        self._fd, self._key = fd, (status.st_dev, status.st_ino)
        waiting = self._restart().waiting
        if first and self._begin_within_bytes is not None and waiting > self._begin_within_bytes:
            return self._skip(waiting - self._begin_within_bytes, waiting)
        return Look(waiting, 0)

    def _restart(self) -> Look:
        self._offset, self._fingerprint, self._ended_looks = 0, b"", 0
        return Look(os.fstat(self._fd).st_size if self._fd is not None else 0, 0)

    def _skip(self, size: int, waiting: int) -> Look:
        """Begin after the first line that ends behind ``size``."""
        self._offset = size
        if size < waiting:
            ahead = os.pread(self._fd or 0, ALIGN_BYTES, size)
            self._offset += ahead.find(b"\n") + 1
        before = max(0, self._offset - FINGERPRINT_BYTES)
        self._fingerprint = os.pread(self._fd or 0, self._offset - before, before)
        return Look(waiting - self._offset, self._offset)

    def _was_rewritten(self) -> bool:
        size = len(self._fingerprint)
        return os.pread(self._fd or 0, size, self._offset - size) != self._fingerprint

    def _was_replaced(self) -> bool:
        try:
            status = Path(self.path).stat()
        except FileNotFoundError:
            return False  # renamed, and the new one is not there yet
        return (status.st_dev, status.st_ino) != self._key
