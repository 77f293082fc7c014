"""Whether a run wrote an entry of its output folder: the one answer to that question.

Source: trainers that give their saves an older modification time (``os.utime``, ``cp -p``, ``rsync -a``, an archive
that is unpacked), clocks that were set back, and file systems with a clock of their own. By the modification time alone
such saves were of an earlier training, and a restart began anew over them.

What stood in the folder before the first attempt is known: it was listed (``FolderList``). For a folder that became
known later the times tell it: the modification time can be set by anybody, that of the last change only by writing,
renaming or changing rights, the time of birth by nobody. What cannot be told is unknown, and nothing that destroys
follows from it. Known false alarm: a person copies an older checkpoint into the folder while the run trains.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Origin = Literal["run", "earlier", "unknown"]
"""run: it was written since the run began. earlier: it stood there before. unknown: nothing tells which."""

Made = Literal["before", "since", "unclear"]
"""What the list of a folder tells of an entry."""

Whose = Literal["other", "unsure"]
"""What speaks against the run in its own folder: a process outside the run was seen writing it, or may have."""

OF_LISTED: dict[Made, Origin] = {"before": "earlier", "since": "run", "unclear": "unknown"}
SECOND_NS = 1_000_000_000


class EntryState(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An entry as it is: all bytes and files in it, newest modification and change (ns), inode, birth (ns) of the top.

    ``born_ns`` None: the file system does not tell.
    """

    size_bytes: int
    mtime_ns: int
    files: int
    inode: int
    changed_ns: int
    born_ns: int | None = None


class FolderList(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of an output folder by name, as they were when it became known.

    ``before_launch``: that was before the first attempt. ``place``: the folder, or if it did not exist, the one above
    it that did; ``place_inode``: its inode.
    """

    entries: dict[str, EntryState]
    before_launch: bool = False
    place: str = "/"
    place_inode: int = 0

    def made(self, name: str, now: EntryState) -> Made | None:
        """When the entry that has this name now was written, as far as the list tells; None: it does not tell."""
        made = _made(self.entries, name, now)
        return made if made == "since" or self.before_launch else None


def _made(listed: Mapping[str, EntryState], name: str, now: EntryState) -> Made:
    before = listed.get(name)
    if before == now:
        return "before"
    if before is not None and _content(before) == _content(now) and not _is_another_file(before, now):
        return "unclear"  # its rights were changed, or it was written again in place and given its former time
    if any(_is_same_file(other, now) for other in listed.values()):
        return "before"  # renamed
    if now.mtime_ns % SECOND_NS and any(_content(other) == _content(now) for other in listed.values()):
        return "unclear"  # a copy of what stood there, or a save that was given its time
    return "since"


def _is_another_file(one: EntryState, other: EntryState) -> bool:
    """Whether another file took its place. Inodes alone do not tell: some network disks number anew at each mount."""
    return one.inode != other.inode and None not in {one.born_ns, other.born_ns} and one.born_ns != other.born_ns


def _content(entry: EntryState) -> tuple[int, int, int]:
    return entry.size_bytes, entry.mtime_ns, entry.files


def _is_same_file(one: EntryState, other: EntryState) -> bool:
    """Whether both are the same file, unchanged. Inodes are used again, so its birth must be known."""
    same = (one.inode, one.born_ns) == (other.inode, other.born_ns)
    return same and one.born_ns is not None and _content(one) == _content(other)


def origin_of(
    begun_wall: float,
    *,
    mtime: float | None,
    changed: float | None = None,
    born: float | None = None,
    made: Made | None = None,
    whose: Whose | None = None,
) -> Origin:
    """Whether a run that began then (seconds since the epoch) wrote an entry with these times.

    None: not known. Without any time it is the run's: it was seen to appear.
    """
    if whose == "unsure" and made != "before":
        return "unknown"
    if made is not None:
        return OF_LISTED[made]
    if mtime is None or mtime >= begun_wall or (born is not None and born >= begun_wall):
        return "run"
    return "unknown" if changed is not None and changed >= begun_wall else "earlier"
