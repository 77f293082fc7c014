"""Where a run's output is, and the room that a launch needs there."""

import msgspec

FLOOR_BYTES = 64e6
"""For logs and small files; all that is needed if no checkpoint of the run has been measured."""
FLOOR_SHARE = 0.01
"""Share of a small disk that is enough for them."""
COPIES = 2.0
"""x the largest checkpoint of the run: the old one is deleted only when the new one is complete."""
USABLE_SHARE = 0.9
"""Share of a file system that a user can fill: some blocks are reserved, some hold its own tables."""
LEAST_INODES = 64
"""Free inodes (files that can still be created) that a launch needs: its log, its state, a checkpoint folder."""


class OutputPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folder that the run saves checkpoints to. ``why``: how it is known, for people."""

    folder: str
    why: str = ""


def is_below(path: str, folder: str) -> bool:
    """Whether a path is inside a folder, by their text. Both absolute and without links."""
    return path.startswith(folder.rstrip("/") + "/")


def need_bytes(largest_bytes: float, disk_bytes: float | None) -> float:
    """Free bytes that a launch needs.

    ``largest_bytes``: what the largest checkpoint of this run takes on the disk, 0 = none was measured.
    ``disk_bytes``: size of the file system, None = unknown. The result can be free there beside that checkpoint.
    """
    if disk_bytes is None:
        return COPIES * largest_bytes + FLOOR_BYTES
    floor = min(FLOOR_BYTES, FLOOR_SHARE * disk_bytes)
    return min(COPIES * largest_bytes + floor, max(floor, USABLE_SHARE * disk_bytes - largest_bytes))


def has_inodes(free_inodes: float | None) -> bool:
    """Whether enough files can be created; unknown counts as yes."""
    return free_inodes is None or free_inodes >= LEAST_INODES
