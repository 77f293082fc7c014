"""What kind of file system a path lies on, from the text of ``/proc/self/mountinfo`` (proc(5)). Pure."""

import re

NETWORK_TYPES = re.compile(
    r"9p|drvfs|virtiofs|nfs\d*|cifs|smb\d*|fuse(?:blk)?(?:\..+)?|afs|ceph|lustre|gpfs|beegfs|vboxsf"
)
"""File systems that other machines (or, under WSL2, Windows) change behind the kernel's back: no file events, odd
locks, no safe memory maps."""


def filesystem_type(path: str, mountinfo: str) -> str | None:
    """Type of the mount that an absolute ``path`` without symlinks lies on, or None where no mount matches."""
    best, found = -1, None
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5 or not right:
            continue
        point = _unescape(fields[4])
        # Of several mounts on one point the last one is seen.
        if len(point) >= best and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, found = len(point), right.split(" ", 1)[0]
    return found


def is_network_filesystem(path: str, mountinfo: str) -> bool:
    """Whether changes made elsewhere to ``path`` fire no events here."""
    kind = filesystem_type(path, mountinfo)
    return kind is not None and NETWORK_TYPES.fullmatch(kind) is not None


def _unescape(text: str) -> str:
    r"""Blank, tab, newline and backslash stand as ``\040`` etc."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
