"""A small file that is rewritten in place about once a second: its name is a link to a file in memory.

On a disk, such a file costs a page for each half minute, 12 MB a day. What it holds is of no use after a restart of the
machine. Where there is no memory for it, or no links, it is an ordinary file.
"""

import contextlib
import os
from hashlib import sha256
from pathlib import Path

from .atomic import write_atomically
from .home import make_private, runtime_folder, temporary_beside


class MemoryFile:
    """``write`` replaces the beginning of the file by ``data``. Raises OSError. One writer at a time.

    ``in_memory`` False: an ordinary file, for readers on other machines.
    """

    def __init__(self, path: Path, *, in_memory: bool = True) -> None:
        self.path = path
        self._in_memory = in_memory
        self._place: Path | None = None
        self._descriptor: int | None = None
        self._data = b""

    def write(self, data: bytes) -> None:
        self._data = data
        if self._descriptor is not None and not self._stands(self._descriptor):
            self._drop()
        if self._descriptor is None:
            self._descriptor = self._open(data)
        os.pwrite(self._descriptor, data, 0)

    def close(self) -> None:
        """Leave an ordinary file with what was written last. Raises nothing."""
        with contextlib.suppress(OSError):
            if self._place is not None and self._descriptor is not None and self._stands(self._descriptor):
                write_atomically(self.path, self._data, durable=False)
                self._place.unlink(missing_ok=True)
        self._drop()

    def _drop(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = self._place = None

    def _stands(self, descriptor: int) -> bool:
        """Whether the name still leads to the open file: folders of ours may be deleted, those in memory at logout."""
        if os.fstat(descriptor).st_nlink == 0:
            return False
        return self._place is None or _target(self.path) == str(self._place)

    def _open(self, data: bytes) -> int:
        folder = runtime_folder(os.environ) if self._in_memory else None
        if folder is not None:
            with contextlib.suppress(OSError):
                return self._open_in_memory(folder, data)
        if self.path.is_symlink():
            self.path.unlink()
        return _opened(self.path)

    def _open_in_memory(self, folder: Path, data: bytes) -> int:
        name = sha256(os.fsencode(os.path.abspath(self.path))).hexdigest()[:16]  # noqa: PTH100  no file is touched
        place = make_private(folder / "live") / f"{name}-{self.path.name}"
        descriptor = _opened(place)
        try:
            os.pwrite(descriptor, data, 0)  # before readers find it
            if _target(self.path) != str(place):
                link = temporary_beside(self.path)
                link.symlink_to(place)
                try:
                    link.replace(self.path)
                except OSError:
                    link.unlink()
                    raise
        except OSError:
            os.close(descriptor)
            raise
        self._place = place
        return descriptor


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _target(path: Path) -> str:
    """Where a link leads to; empty if it is none or is missing."""
    try:
        return os.readlink(path)  # noqa: PTH115  once a second
    except OSError:
        return ""
