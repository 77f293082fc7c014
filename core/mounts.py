"""Mounts, from the text of ``/proc/self/mountinfo`` (proc(5)), and disks that belong to a path by ``/etc/fstab``."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NETWORK_TYPES = re.compile(
    r"9p|drvfs|virtiofs|nfs\d*|cifs|smb\d*|fuse(?:blk)?(?:\..+)?|afs|ceph|lustre|gpfs|beegfs|vboxsf"
)
"""File systems that other machines (or, under WSL2, Windows) change: without file events, with unreliable locks and
unsafe memory maps."""


class MountPoint(NamedTuple):
    """A line of ``/proc/self/mountinfo``. ``root``: the part of the file system that is mounted.

    ``options``: of the file system; ``writable``: at this point.
    """

    root: str
    point: str
    kind: str
    options: str
    writable: bool


def mount_points(mountinfo: str) -> Iterator[MountPoint]:
    """In their order: of several on one point the last one is visible."""
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields, of = left.split(" "), (*right.split(" "), "", "")
        if separator and len(fields) > 5 and right:
            yield MountPoint(fields[3], unescaped(fields[4]), of[0], of[2], "rw" in fields[5].split(","))


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


FIELDS = 3
"""Device, mount point, type (fstab(5))."""
NO_PLACE = frozenset({"none", "swap", "/"})


def unmounted_place(path: Path, fstab: str, mountinfo: str) -> str | None:
    """The innermost mount point of fstab at or above ``path`` that has no mount; None if there is none."""
    real = path.resolve()
    mounted = {each.point for each in mount_points(mountinfo)}
    places = [
        unescaped(fields[1])
        for line in fstab.splitlines()
        if len(fields := line.split()) >= FIELDS and not line.lstrip().startswith("#")
    ]
    above = [place for place in places if place not in NO_PLACE and real.is_relative_to(place)]
    innermost = max(above, key=len, default=None)
    return None if innermost is None or innermost.rstrip("/") in mounted else innermost
