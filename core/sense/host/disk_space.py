"""Room on the file system of a directory, which may be stuck."""

import os
import re
import threading
from collections.abc import Iterator
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


# Type of the file system of a path, from the text of ``/proc/self/mountinfo`` (proc(5)). Pure.

NETWORK_TYPES = re.compile(
    r"9p|drvfs|virtiofs|nfs\d*|cifs|smb\d*|fuse(?:blk)?(?:\..+)?|afs|ceph|lustre|gpfs|beegfs|vboxsf"
)
"""File systems that other machines (or, under WSL2, Windows) change: without file events, with unreliable locks and
unsafe memory maps."""


class MountPoint(NamedTuple):
    """A line of ``/proc/self/mountinfo``. ``root``: the part of the file system that is mounted."""

    root: str
    point: str
    kind: str
    options: str


def mount_points(mountinfo: str) -> Iterator[MountPoint]:
    """In their order: of several on one point the last one is visible."""
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields, of = left.split(" "), (*right.split(" "), "", "")
        if separator and len(fields) > 4 and right:
            yield MountPoint(fields[3], unescaped(fields[4]), of[0], of[2])


def filesystem_type(path: str, mountinfo: str) -> str | None:
    """Type of the mount of an absolute ``path`` without symlinks, or None if no mount matches."""
    best, found = -1, None
    for each in mount_points(mountinfo):
        if len(each.point) >= best and (path == each.point or path.startswith(each.point.rstrip("/") + "/")):
            best, found = len(each.point), each.kind
    return found


def is_network_filesystem(path: str, mountinfo: str) -> bool:
    """Whether changes by other machines to ``path`` cause no file events here."""
    kind = filesystem_type(path, mountinfo)
    return kind is not None and NETWORK_TYPES.fullmatch(kind) is not None


def unescaped(text: str) -> str:
    r"""Decode blank, tab, newline and backslash, which are written as ``\040`` etc."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
