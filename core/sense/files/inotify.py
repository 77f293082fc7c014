"""Events of inotify(7), without delay.

A small checkpoint is written in milliseconds. Only who looks at the open files of the run at once sees who wrote it.
"""

import contextlib
import ctypes
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ...file_walk import entries_of
from ...model.checkpoint_files import is_copy_folder
from ...model.run import is_below
from ...processes import open_files

CREATE, MOVED_TO, CLOSE_WRITE = 0x100, 0x80, 0x8
WRITTEN = CREATE | MOVED_TO | CLOSE_WRITE
ANY_CHANGE = WRITTEN | 0x2 | 0x4 | 0x40 | 0x200
"""Also IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM and IN_DELETE."""
IS_DIRECTORY, OVERFLOW, IGNORED = 0x40000000, 0x4000, 0x8000
_ONLY_DIRECTORY, _NO_LINK = 0x01000000, 0x02000000
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class FileEvent(NamedTuple):
    """``folder``: as it was given to ``watch``. ``overflow``: events were lost, and nothing else is set."""

    folder: str
    name: str
    mask: int

    @property
    def is_directory(self) -> bool:
        return bool(self.mask & IS_DIRECTORY)

    @property
    def overflow(self) -> bool:
        return bool(self.mask & OVERFLOW)


class Inotify:
    """Watches of folders. Raises OSError if the kernel has no instance left."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._folders: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._folders)

    def fileno(self) -> int:
        return self._descriptor

    def watch(self, folder: str, events: int = WRITTEN) -> None:
        """Begin to watch a folder, without those below it. Raises OSError if that is not possible."""
        mask = events | _ONLY_DIRECTORY | _NO_LINK
        self._folders[_checked(self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask))] = folder

    def read(self) -> list[FileEvent]:
        """Events until now; empty if there are none."""
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, at)
            name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length
            if mask & IGNORED:
                self._folders.pop(number, None)
            elif mask & OVERFLOW or number in self._folders:
                found.append(FileEvent(self._folders.get(number, ""), os.fsdecode(name), mask))
        return found

    def close(self) -> None:
        os.close(self._descriptor)


def _checked(answer: int) -> int:
    """What a call of the C library returns. Raises OSError."""
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


# Inotify watches of folders with all that is below them, and of folders that do not exist yet.

FOLDERS_AT_START = 512
"""Most existing folders below one root that are watched. The shallow ones come first; new ones are watched in any
case."""
FOLDERS = 4096
"""Most watches in all; the kernel allows a user 8192 or more (``fs.inotify.max_user_watches``)."""
DEPTH = 8
ENTRIES = 2000
"""Most entries of a new folder that are taken for written."""


class FolderTree:
    """Folders by their real paths."""

    def __init__(self, inotify: Inotify) -> None:
        self._inotify = inotify
        self._folders: set[str] = set()
        self._awaited: set[str] = set()

    def add(self, root: str) -> None:
        """Watch a folder and what is below it; one that does not exist yet as soon as it does."""
        if not Path(root).is_dir():
            self._await(root)
            return
        waiting, taken = deque([(root, 0)]), 0
        while waiting and taken < FOLDERS_AT_START:
            folder, depth = waiting.popleft()
            if not self.add_alone(folder):
                continue
            taken += 1
            if depth < DEPTH:
                waiting.extend((below, depth + 1) for below in _folders_in(folder))

    def add_alone(self, folder: str) -> bool:
        """Watch one folder; False if it is watched already or cannot be."""
        if folder in self._folders or len(self._inotify) >= FOLDERS:
            return False
        with contextlib.suppress(OSError):
            self._inotify.watch(folder)
            self._folders.add(folder)
        return folder in self._folders

    def take(self, events: Iterable[FileEvent]) -> Iterator[str]:
        """Paths of files that were written or renamed, those in new folders included."""
        for event in events:
            if event.overflow:
                for folder in list(self._folders):
                    yield from _files_in(folder)
                continue
            path = os.path.join(event.folder, event.name)  # noqa: PTH118
            if not event.is_directory:
                yield path
            # not each new one beside the way to a folder that is waited for
            elif event.folder in self._folders or any(r == path or is_below(r, path) for r in self._awaited):
                yield from self._take_folder(path)

    def _take_folder(self, path: str) -> Iterator[str]:
        """Watch a new folder first, then list it, so that nothing is missed."""
        if is_copy_folder(os.path.basename(path)):  # noqa: PTH119
            return
        self._folders.discard(path)
        self._awaited.discard(path)
        self.add_alone(path)
        yield from _files_in(path)
        for below in _folders_in(path):
            yield from self._take_folder(below)

    def _await(self, root: str) -> None:
        self._awaited.add(root)
        above = os.path.dirname(root)  # noqa: PTH120
        while not Path(above).is_dir() and above != "/":
            above = os.path.dirname(above)  # noqa: PTH120
        with contextlib.suppress(OSError):
            if above not in self._folders:
                self._inotify.watch(above)


def _folders_in(folder: str) -> list[str]:
    return [e.path for e in entries_of(folder) if e.is_dir(follow_symlinks=False) and not is_copy_folder(e.name)]


def _files_in(folder: str) -> list[str]:
    return [e.path for e in entries_of(folder)[:ENTRIES] if e.is_file(follow_symlinks=False)]


# When a file was made: ``statx``, which Python does not offer on Linux (3.11 to 3.14).

AT_FDCWD = -100
STATX_BTIME = 0x800
_BYTES = 256
"""Size of ``struct statx`` (statx(2))."""
_MASK = slice(0, 4)
_SECONDS = slice(0x50, 0x58)
_NANOSECONDS = slice(0x58, 0x5C)
"""``stx_btime`` behind twelve fields and ``stx_atime``."""
_statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)


def born_ns(path: str | Path) -> int | None:
    """In ns since the epoch; None if the file system, the kernel or the C library does not tell."""
    if _statx is None:
        return None
    buffer = ctypes.create_string_buffer(_BYTES)
    if _statx(ctypes.c_int(AT_FDCWD), os.fsencode(path), 0, ctypes.c_uint(STATX_BTIME), buffer) != 0:
        return None
    data = buffer.raw
    if not int.from_bytes(data[_MASK], "little") & STATX_BTIME:
        return None
    seconds = int.from_bytes(data[_SECONDS], "little", signed=True)
    return seconds * 1_000_000_000 + int.from_bytes(data[_NANOSECONDS], "little")


# Which files processes hold open (proc(5)).

_NO_FILES = ("/dev/", "/proc/", "/sys/")


class OpenFile(NamedTuple):
    """A regular path that a process holds open. ``number``: of its link below ``/proc/PID/fd``."""

    pid: int
    path: str
    number: int = 0
    writable: bool = True


def open_for_writing(pids: Iterable[int], *, reading: bool = False) -> Iterator[OpenFile]:
    """All of them, with ``reading`` also files that are only read; processes that cannot be examined have none."""
    for pid in pids:
        for number, path, writable in open_files(pid, for_writing=not reading):
            if path.startswith("/") and not path.startswith(_NO_FILES) and not path.endswith(" (deleted)"):
                yield OpenFile(pid, path, number, writable)
