"""Trainers that nobody started with trainwatch and that write where a live attempt writes."""

from typing import Literal

import msgspec

from ..outcome import Base


class OtherTrainer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them, the topmost process. ``began``: its start as a time of day; "" = not known.

    ``same``: "training" if its command is that of the run, "script" if only the script is. ``folder``: where both
    write; "" = not known. ``files``: what it has open for writing in the run's output folders, bounded; ``shared``:
    those of them that the attempt has open for writing, too.
    """

    pid: int
    start_ticks: int
    command: str
    cwd: str
    began: str = ""
    same: Literal["training", "script"] = "training"
    folder: str = ""
    files: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """The identity of the process within this boot."""
        return self.pid, self.start_ticks


class OtherTrainersSeen(Base, frozen=True, kw_only=True, tag="other_trainers"):
    """All that run beside the live attempt now, lowest pid first; none: there is none, or none any more."""

    trainers: tuple[OtherTrainer, ...] = ()
