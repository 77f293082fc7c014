"""Type of the file system of a path, from the text of ``/proc/self/mountinfo`` (proc(5)). Pure."""

import re

NETWORK_TYPES = re.compile(
    r"9p|drvfs|virtiofs|nfs\d*|cifs|smb\d*|fuse(?:blk)?(?:\..+)?|afs|ceph|lustre|gpfs|beegfs|vboxsf"
)
"""File systems that other machines (or, under WSL2, Windows) change: without file events, with unreliable locks and
unsafe memory maps."""

LOCAL_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs"})
"""File systems of this machine's disks and memory. They know their free room without asking a device."""


def filesystem_type(path: str, mountinfo: str) -> str | None:
    """Type of the mount of an absolute ``path`` without symlinks, or None if no mount matches."""
    best, found = -1, None
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5 or not right:
            continue
        point = _unescape(fields[4])
        # Of several mounts on one point the last one is visible.
        if len(point) >= best and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, found = len(point), right.split(" ", 1)[0]
    return found


def is_network_filesystem(path: str, mountinfo: str) -> bool:
    """Whether changes by other machines to ``path`` cause no file events here."""
    kind = filesystem_type(path, mountinfo)
    return kind is not None and NETWORK_TYPES.fullmatch(kind) is not None


def _unescape(text: str) -> str:
    r"""Decode blank, tab, newline and backslash, which are written as ``\040`` etc."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
