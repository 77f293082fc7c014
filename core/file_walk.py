"""Files below folders, within bounds: an output or working folder may hold a data set of millions of files."""

import contextlib
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def walk(
    folders: Iterable[str],
    *,
    depth: int,
    most: int = sys.maxsize,
    into: Callable[[os.DirEntry[str]], bool] = lambda _folder: True,
    links: bool = False,
    end_s: float = math.inf,
) -> Iterator[os.DirEntry[str]]:
    """Entries that are no folders, breadth first, by name. ``links``: those behind links to folders, too, last, once.

    ``depth``: levels of folders below each that are looked into. ``most``: entries that are read. ``into``: folders to
    look into. ``end_s``: monotonic seconds at which it ends. What cannot be read is left out.
    """
    waiting = deque((os.path.realpath(folder) if links else folder, 0) for folder in folders)
    linked: deque[tuple[str, int]] = deque()
    seen: set[str] = set()
    while waiting or linked:
        folder, level = (waiting or linked).popleft()
        if time.monotonic() > end_s:
            return
        for entry in () if folder in seen else entries_of(folder):
            most -= 1
            if most < 0:
                return
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=links):
                    yield entry
                elif level < depth and into(entry):
                    later = linked if entry.is_symlink() else waiting
                    later.append((os.path.realpath(entry.path) if entry.is_symlink() else entry.path, level + 1))
        seen.add(folder)


def leaves(link: Path, folder: Path) -> bool:
    """Whether a link in ``folder`` (a real path) leads out of it, to all of it, or to nothing."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # the second: a link that leads to itself
        return True
    return target == folder or not target.is_relative_to(folder)


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """By name; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
