"""Inotify watches of folders with all that is below them, and of folders that do not exist yet."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from ....model.checkpoints.other_files import is_copy_folder
from ....model.launch.output_place import is_below
from ..inotify import FileEvent, Inotify

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
        if folder in self._folders or len(self._inotify) >= FOLDERS or not self._inotify.watch(folder):
            return False
        self._folders.add(folder)
        return True

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
            elif self._is_wanted(event.folder, path):
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

    def _is_wanted(self, parent: str, path: str) -> bool:
        """Whether a new folder is watched: not each one beside the way to a folder that is waited for."""
        if parent in self._folders:
            return True
        return any(root == path or is_below(root, path) for root in self._awaited)

    def _await(self, root: str) -> None:
        self._awaited.add(root)
        above = os.path.dirname(root)  # noqa: PTH120
        while not Path(above).is_dir() and above != "/":
            above = os.path.dirname(above)  # noqa: PTH120
        if above not in self._folders:
            self._inotify.watch(above)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for e in entries if e.is_dir(follow_symlinks=False) and not is_copy_folder(e.name)]
    except OSError:
        return []


def _files_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for _, e in zip(range(ENTRIES), entries, strict=False) if e.is_file(follow_symlinks=False)]
    except OSError:
        return []
