"""Room on the file system of a directory, which may be stuck."""

import os
import threading
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """``free_bytes``: what an ordinary user may still write; ``total_bytes``: size of the file system.

    ``free_inodes``: files that may still be created, None if the file system has no such limit (btrfs).
    """

    free_bytes: float
    total_bytes: float
    free_inodes: float | None


def room_of(path: Path) -> Room | None:
    """The room for ``path`` or its nearest existing parent; None if the file system does not report it."""
    try:
        # The output directory does not exist before the trainer makes it.
        space = os.statvfs(next((each for each in (path, *path.parents) if each.exists()), "/"))
    except OSError:
        return None
    inodes = float(space.f_favail) if space.f_files else None
    return Room(float(space.f_bavail * space.f_frsize), float(space.f_blocks * space.f_frsize), inodes)


class DiskSpace:
    """Reads the room in a thread of its own, because a dead network mount blocks the call forever."""

    def __init__(self, directory: Path | None, *, timeout_s: float = 0.2) -> None:
        self._directory = directory
        self._timeout_s = timeout_s
        self._question: threading.Thread | None = None
        self._answer: Room | None = None

    def room(self) -> Room | None:
        """The room; None if unknown, or if the file system does not answer within ``timeout_s``."""
        if self._directory is None:
            return None
        if self._question is None or not self._question.is_alive():  # else the last question still waits
            self._answer = None
            self._question = threading.Thread(target=self._ask, args=(self._directory,), name="sense-disk", daemon=True)
            self._question.start()
        self._question.join(self._timeout_s)
        return None if self._question.is_alive() else self._answer

    def _ask(self, directory: Path) -> None:
        self._answer = room_of(directory)
