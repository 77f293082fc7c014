"""What a state of the run follows from, as a value. The sentence beside it is for people; nothing is decided by it."""

from typing import Literal, get_args

import msgspec

HoldKind = Literal[
    "disk_full", "no_inodes", "no_room", "read_only", "no_resources", "program_gone", "other_trainer", "gpu_lost",
    "gpu_memory", "not_listed", "not_understood", "unclear_output", "not_copied", "refused_checkpoint",
    "checkpoints_fine", "signal", "act",
]  # fmt: skip
"""What the next attempt waits for, and the run cannot do by itself. ``no_room``: a disk or a quota that is not watched;
``act``: ``restart.act`` leaves it to a person; ``signal``: nobody knows who ended it; ``checkpoints_fine``: an older
checkpoint ends in the same way."""
WhyKind = Literal["", "person", "ordered", "unproven", HoldKind]
"""``person``: stopped with trainwatch. ``ordered``: ended on purpose in another way, or at its end time. ``unproven``:
finished, and nothing showed that it was the end. Empty: the state tells it all, or the journal does not tell."""


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """``incident``: it is about this one. ``need_bytes``, ``free_bytes``: of a full disk, when it began.

    ``until_t``: run time at which a held attempt is launched again by itself; None: when what it waits for is there.
    """

    kind: WhyKind = ""
    incident: int | None = None
    need_bytes: float | None = None
    free_bytes: float | None = None
    until_t: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the next attempt waits."""
        return self.kind in get_args(HoldKind)

    @property
    def waits_for_room(self) -> bool:
        """Whether it ends by itself when the disk has room, also under a supervisor that takes the run over."""
        return self.kind in {"disk_full", "no_inodes"}


PLAIN = Why()
