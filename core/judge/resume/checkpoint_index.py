"""The known checkpoints of a run: looking one up, changing it, and how many are remembered."""

from collections.abc import Container
from typing import Any

import msgspec

from .known_checkpoint import KnownCheckpoint, age_of, is_verified

AT_MOST = 4096
"""Checkpoints remembered. Beyond it those go first that no launch can choose, then weights alone, then the oldest."""
SLACK = 256
"""Checkpoints beyond AT_MOST before some are forgotten: to sort at each event would be slow."""
IN_SNAPSHOT = 64
"""Checkpoints in a snapshot, the newest ones. The journal has a record of every complete one."""


class Doubt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What trainers said of checkpoints that are complete (doubt.py).

    ``paths``: those with which a trainer did not start, passed over if there is another one. ``open``: no resume took
    effect since. ``said``: the last line of the trainer. ``cleared``: another one ended with the same line, so none is
    to blame.
    """

    paths: tuple[str, ...] = ()
    open: bool = False
    said: str = ""
    cleared: bool = False


class CheckpointIndex(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All known checkpoints, oldest first by the time they became known.

    ``went_back``: modification time (-inf: from the beginning) of the older one that the run went back to, run time of
    that launch, and why what was written in between does not count. ``doubt``: see doubt.py.
    ``looked_t``: run time at which the supervisor before this one still watched, None = there was none.
    ``looked_from``: run time of the first thing that this one saw.
    """

    known: tuple[KnownCheckpoint, ...] = ()
    went_back: tuple[float, float, str] | None = None
    doubt: Doubt = Doubt()
    looked_t: float | None = None
    looked_from: float | None = None


def with_entry(index: CheckpointIndex, entry: KnownCheckpoint) -> CheckpointIndex:
    """Return the index with this entry as the one that became known last, in place of an earlier one of its path."""
    return msgspec.structs.replace(index, known=_bounded((*without(index, entry.path).known, entry)))


def without(index: CheckpointIndex, path: str) -> CheckpointIndex:
    """Return the index without this path: it does not exist any more."""
    return msgspec.structs.replace(index, known=tuple(k for k in index.known if k.path != path))


def _bounded(known: tuple[KnownCheckpoint, ...]) -> tuple[KnownCheckpoint, ...]:
    if len(known) <= AT_MOST + SLACK:
        return known
    ranked = sorted(known, key=lambda k: (is_verified(k), k.holds != "weights", age_of(k)))
    return tuple(ranked[-AT_MOST:])


def abridged(index: CheckpointIndex) -> CheckpointIndex:
    """Return the index as a snapshot has it: the newest ones. The journal tells of the others."""
    if len(index.known) <= IN_SNAPSHOT:
        return index
    return msgspec.structs.replace(index, known=tuple(sorted(index.known, key=age_of)[-IN_SNAPSHOT:]))


def find(index: CheckpointIndex, path: str | None) -> KnownCheckpoint | None:
    """Return the entry of a path."""
    return next((k for k in index.known if k.path == path), None)


def mark_bad(index: CheckpointIndex, path: str, why: str) -> CheckpointIndex:
    """Mark a checkpoint that failed its verification; it is skipped until it is written again."""
    return changed(index, (path,), bad=why)


def changed(index: CheckpointIndex, paths: Container[str], **fields: Any) -> CheckpointIndex:
    """Return the index with other fields in the entries of these paths."""
    known = tuple(msgspec.structs.replace(k, **fields) if k.path in paths else k for k in index.known)
    return msgspec.structs.replace(index, known=known)
