"""Events of inotify(7) without delay: watchdog delays every event by half a second.

A small checkpoint is written in milliseconds. Only who looks at the open files of the run at once sees who wrote it.
"""

import ctypes
import os
import select
import struct
from typing import NamedTuple

from ..wakeup import Wakeup

CREATE, MOVED_TO, CLOSE_WRITE = 0x100, 0x80, 0x8
MODIFY, ATTRIBUTES, MOVE_SELF, DELETE_SELF = 0x2, 0x4, 0x800, 0x400
IS_DIRECTORY, OVERFLOW, IGNORED = 0x40000000, 0x4000, 0x8000
_ONLY_DIRECTORY, _NO_LINK = 0x01000000, 0x02000000
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class FileEvent(NamedTuple):
    """``folder``: as it was given to ``watch``, or the path given to ``watch_file``.

    ``overflow``: events were lost, and nothing else is set.
    """

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
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        self._folders: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._folders)

    def watch(self, folder: str) -> bool:
        """Begin to watch a folder, without those below it; False if that is not possible."""
        return self._watch(folder, CREATE | MOVED_TO | CLOSE_WRITE | _ONLY_DIRECTORY | _NO_LINK)

    def watch_file(self, path: str) -> bool:
        """Begin to watch one file for writes, a new name and its removal; False if that is not possible."""
        return self._watch(path, MODIFY | ATTRIBUTES | MOVE_SELF | DELETE_SELF)

    def unwatch(self, path: str) -> None:
        """End a watch, if there is one."""
        for number in [number for number, watched in self._folders.items() if watched == path]:
            del self._folders[number]
            self._libc.inotify_rm_watch(self._descriptor, number)

    def _watch(self, path: str, mask: int) -> bool:
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
        if number < 0:
            return False
        self._folders[number] = path
        return True

    def wait(self, timeout_s: float, wakeup: Wakeup | None = None) -> list[FileEvent]:
        """Events within this time, or until somebody wakes it; empty if there are none."""
        waited = [self._descriptor] if wakeup is None else [self._descriptor, wakeup.fileno()]
        if self._descriptor not in select.select(waited, [], [], max(0.0, timeout_s))[0]:
            return []
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
