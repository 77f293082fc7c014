"""Both ends of copying a journal by byte ranges: what a file gained, and a copy that is resumed where it ended.

A copy is continued only if the original begins with the same bytes (length and SHA-256); another journal is read
anew, into a new file, so that readers of the copy see that it was replaced.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..atomic import write_all
from ..temporary_files import temporary_beside

PIECE_BYTES = 256 << 10
_BLOCK = 1 << 20


class Part(NamedTuple):
    """``anew``: the copy begins again with this one."""

    offset: int
    data: bytes
    anew: bool


def digest_of(path: Path, size: int) -> bytes:
    """SHA-256 of the first ``size`` bytes; empty if there are fewer, or none is asked for."""
    left = size
    found = hashlib.sha256()
    with contextlib.suppress(OSError), path.open("rb") as file:
        while left and (block := file.read(min(_BLOCK, left))):
            found.update(block)
            left -= len(block)
    return found.digest() if size and not left else b""


class GrowingFile:
    """What a file gained, for a copy that has ``size`` bytes with this digest."""

    def __init__(self, path: Path, size: int, digest: bytes) -> None:
        self.path = path
        same = not size or (bool(digest) and digest_of(path, size) == digest)
        self._offset = size if same else 0
        self._anew = not same
        self._identity = _identity(path)

    def new(self, most: int = 8) -> Iterator[Part]:
        """At most ``most`` pieces; a file that was replaced or shortened begins anew. A missing one has none."""
        try:
            status = self.path.stat()
            identity = (status.st_dev, status.st_ino)
            if self._identity is None:
                self._identity = identity
            if identity != self._identity or status.st_size < self._offset:
                self._identity, self._offset, self._anew = identity, 0, True
            if status.st_size == self._offset and not self._anew:
                return
            file = self.path.open("rb")
        except OSError:
            return
        with file:
            file.seek(self._offset)
            for _ in range(most):
                data = file.read(PIECE_BYTES)
                if not data and not self._anew:
                    return
                yield Part(self._offset, data, self._anew)
                self._offset += len(data)
                self._anew = False

    @property
    def behind(self) -> bool:
        """Whether the file has more than was read."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_size > self._offset
        return False


class CopiedFile:
    """The copy. Pieces that do not follow on what is there are refused: the sender has to be asked anew."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def size(self) -> int:
        with contextlib.suppress(OSError):
            return self.path.stat().st_size
        return 0

    def have(self) -> tuple[int, bytes]:
        """Length and digest of what is there."""
        size = self.size
        return size, digest_of(self.path, size)

    def add(self, part: Part) -> bool:
        """Write a piece; False if it does not follow on what is there. Raises OSError."""
        if part.anew:
            replace_copy(self.path, part.data)
            return True
        if part.offset != self.size:
            return False
        _write(self.path, part.offset, part.data)
        return True


def replace_copy(path: Path, data: bytes) -> None:
    """Another content for a small file. Not flushed to the disk: what is lost is asked for again. Raises OSError."""
    fresh = temporary_beside(path)
    _write(fresh, 0, data)
    fresh.replace(path)


def _write(path: Path, offset: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
