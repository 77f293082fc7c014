"""Which folders an overlay has to cover, so that nothing of the user's is written."""

import os
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

NO_FILES = frozenset(
    [
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "ramfs",
        "rpc_pipefs",
        "securityfs",
        "sysfs",
        "tracefs",
    ]
)
"""Types of mounts that hold no files of a user."""
OF_THE_SYSTEM = frozenset(
    f"/{name}"
    for name in [
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "lost+found",
        "proc",
        "run",
        "sbin",
        "snap",
        "swapfile",
        "sys",
        "usr",
        "var",
    ]
)
"""Folders that hold programs and devices. ``/run`` and ``/dev`` hold sockets and shared memory, which an overlay would
hide; ``/var/tmp`` may hold the scratch folder."""


class Mount(NamedTuple):
    """One line of ``/proc/self/mountinfo``."""

    place: str
    kind: str
    writable: bool


def read_mounts(mountinfo: str) -> list[Mount]:
    """The mounts in their order; of several at one place the last, which is the one that is seen."""
    found: dict[str, Mount] = {}
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if "-" not in fields[6:]:
            continue
        at = fields.index("-", 6)
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        found.pop(place, None)
        found[place] = Mount(place, fields[at + 1], "rw" in fields[5].split(","))
    return list(found.values())


def folders_to_cover(
    mounts: Collection[Mount], scratch: str, wanted: Collection[str], *, each: bool = False
) -> list[str]:
    """The folders for an overlay each, outer ones first. All paths are real and absolute.

    These are all places where a user's files may be, without those that contain ``scratch`` (an overlay cannot write
    into its own lower folder; of such a folder its entries are covered). ``wanted``: folders that are covered wherever
    they are; ``each``: with an overlay of its own, because one further out cannot copy folders of others on the way.
    """
    places = {mount.place for mount in mounts}
    found: list[str] = []
    for mount in mounts:
        if mount.kind in NO_FILES or not mount.writable or not os.path.isdir(mount.place):  # noqa: PTH112
            continue
        if mount.place == "/":
            tops = [top for top in _entries("/", places) if top not in OF_THE_SYSTEM]
            found += [part for top in tops for part in _cover(top, scratch, places)]
        elif not any(_within(mount.place, system) for system in OF_THE_SYSTEM):
            found += _cover(mount.place, scratch, places)
    for folder in wanted:
        if (each or not any(_within(folder, covered) for covered in found)) and os.path.isdir(folder):  # noqa: PTH112
            found += _cover(folder, scratch, places)
    return sorted(dict.fromkeys(found), key=lambda place: (place.count("/"), place))


def _cover(folder: str, scratch: str, mounts: Collection[str]) -> Iterator[str]:
    if not _within(scratch, folder):
        yield folder
    elif folder != scratch:
        for entry in _entries(folder, mounts):
            yield from _cover(entry, scratch, mounts)


def _entries(folder: str, mounts: Collection[str]) -> list[str]:
    """The folders in a folder; other mounts come by themselves."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(path for path in found if path not in mounts)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
