"""Room on the file system of a directory, which may be stuck."""

import os
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
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
        self._questions: SimpleQueue[Path | None] = SimpleQueue()
        self._answers: SimpleQueue[Room | None] = SimpleQueue()
        self._begun = self._asked = False

    def room(self) -> Room | None:
        """The room; None if unknown, or if the file system does not answer within ``timeout_s``."""
        if self._directory is None:
            return None
        if not self._begun:
            queues = self._questions, self._answers  # not this object: the thread ends with it
            threading.Thread(target=_answer, args=queues, name="sense-disk", daemon=True).start()
            self._begun = True  # not if no thread can be started at the moment
        if self._asked and not self._answers.empty():  # it came too late
            self._answers.get()
            self._asked = False
        if not self._asked:  # else the last question still waits
            self._questions.put(self._directory)
        try:
            answer = self._answers.get(timeout=self._timeout_s)
        except Empty:
            self._asked = True
            return None
        self._asked = False
        return answer

    def __del__(self) -> None:
        self._questions.put(None)


def _answer(questions: SimpleQueue[Path | None], answers: SimpleQueue[Room | None]) -> None:
    while (directory := questions.get()) is not None:
        answers.put(room_of(directory))
