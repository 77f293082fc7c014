"""Disks that belong to a path by /etc/fstab and are not mounted."""

from pathlib import Path

FIELDS = 3
"""Device, mount point, type (fstab(5))."""
NO_PLACE = frozenset({"none", "swap", "/"})


def unmounted_place(path: Path, fstab: str, mountinfo: str) -> str | None:
    """The innermost mount point of fstab at or above ``path`` that has no mount; None if there is none."""
    real = path.resolve()
    mounted = {_unescaped(fields[4]) for line in mountinfo.splitlines() if len(fields := line.split()) > FIELDS + 1}
    places = [
        _unescaped(fields[1])
        for line in fstab.splitlines()
        if len(fields := line.split()) >= FIELDS and not line.lstrip().startswith("#")
    ]
    above = [place for place in places if place not in NO_PLACE and real.is_relative_to(place)]
    innermost = max(above, key=len, default=None)
    return None if innermost is None or innermost.rstrip("/") in mounted else innermost


def _unescaped(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t")
