"""A small file that is rewritten in place about once a second: its name is a link to a file in memory.

On a disk, such a file costs a page for each half minute, 12 MB a day. What it holds is of no use after a restart of the
machine. Where there is no memory for it, or no links, it is an ordinary file.
"""

import contextlib
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from .atomic import write_atomically
from .home import make_private, runtime_folder, temporary_beside

STALE_S = 86_400.0


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
        place = memory_place(self.path, data, in_memory=self._in_memory)
        self._place = None if place == self.path else place
        return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def memory_place(path: Path, data: bytes | None = None, *, in_memory: bool = True) -> Path:
    """Where the content of ``path`` is: a file in memory that it is made a link to, or else itself. Raises OSError.

    ``data``: what readers find first; None = what is there.
    """
    folder = runtime_folder(os.environ) if in_memory else None
    if folder is not None:
        with contextlib.suppress(OSError):
            return _linked(path, folder, data)
    if path.is_symlink():
        path.unlink()
    return path


def _linked(path: Path, folder: Path, data: bytes | None) -> Path:
    name = sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]  # noqa: PTH100  no file is touched
    place = make_private(folder / "live") / f"{name}-{path.name}"
    leads_there = _target(path) == str(place)
    for left in place.parent.glob(f"*-{path.name}*") if data is None else ():
        if time.time() - left.stat().st_mtime > STALE_S and left != place:
            left.unlink()  # of a killed writer: a live one writes each minute
    if data is None and not leads_there and path.is_file():
        write_atomically(place, path.read_bytes(), durable=False)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.pwrite(descriptor, data or b"", 0)  # before readers find it
    finally:
        os.close(descriptor)
    if not leads_there:
        link = temporary_beside(path)
        link.symlink_to(place)
        try:
            link.replace(path)
        except OSError:
            link.unlink()
            raise
    return place


def settle(path: Path, place: Path, copy: Callable[[tuple[str]], object]) -> None:
    """Put a file that was in memory on the disk. ``copy`` writes it to a new path. Raises what that raises."""
    if place != path and _target(path) == str(place):
        new = temporary_beside(path)
        try:
            copy((str(new),))
            new.chmod(0o600)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
        _remove(str(place))


def remove_from_memory(path: Path) -> None:
    """Remove what a killed writer left in memory. Raises OSError."""
    if target := _target(path):
        _remove(target)


def _remove(place: str) -> None:
    for suffix in ("", "-wal", "-shm"):  # SQLite's, beside it
        Path(f"{place}{suffix}").unlink(missing_ok=True)


def _target(path: Path) -> str:
    """Where a link leads to; empty if it is none or is missing."""
    try:
        return os.readlink(path)  # noqa: PTH115  once a second
    except OSError:
        return ""
