"""Files that were written since a moment, in folders and in what is below them."""

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator

from ....model.checkpoints.other_files import is_copy_folder, is_other_file

DEPTH = 8
FILES = 4096
"""Most files that are taken."""


def written_since(folders: Iterable[str], since_wall: float, limit_s: float) -> Iterator[str]:
    """Files that were written or put there since, but logs, samples and the like; links to folders are followed once.

    A copy may keep the modification time of its original; the time of its last change is that of the copying.

    Ends after ``limit_s``: the working folder of a training may hold a data set of millions of files.
    """
    end = time.monotonic() + limit_s
    waiting = deque((os.path.realpath(folder), 0) for folder in folders)
    linked: deque[tuple[str, int]] = deque()
    seen: set[str] = set()
    found = 0
    while waiting or linked:
        folder, depth = waiting.popleft() if waiting else linked.popleft()
        if folder in seen:
            continue
        if time.monotonic() > end or found >= FILES:
            return
        seen.add(folder)
        for entry in _entries(folder):
            try:
                if entry.is_dir():
                    if depth < DEPTH and not is_copy_folder(entry.name):
                        later = linked if entry.is_symlink() else waiting
                        later.append((os.path.realpath(entry.path) if entry.is_symlink() else entry.path, depth + 1))
                elif not is_other_file(entry.name) and entry.is_file() and _written(entry) >= since_wall:
                    found += 1
                    yield entry.path
            except OSError:
                continue


def _written(entry: os.DirEntry[str]) -> float:
    status = entry.stat()
    return max(status.st_mtime, status.st_ctime)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
