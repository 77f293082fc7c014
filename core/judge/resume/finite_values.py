"""Whether NaN and Inf in a checkpoint are damage: they are if an earlier checkpoint of the run was finite there.

Masks and the observers of quantisation hold Inf on purpose, and hold it in every checkpoint. Without an earlier
checkpoint to compare with, NaN counts as damage and Inf alone does not. Known false alarm: a buffer that is first used
in the middle of the training.
"""

from collections.abc import Sequence

import msgspec

from .checkpoint_index import CheckpointIndex, changed, find
from .known_checkpoint import KnownCheckpoint, age_of


class Values(msgspec.Struct, frozen=True):
    """What the values of a checkpoint mean. ``compared``: an earlier one of the run was read.

    ``new``: names of tensors that are not finite and were, or must be.
    """

    new: tuple[str, ...] = ()
    compared: bool = False


def with_values(
    index: CheckpointIndex, path: str, nonfinite: Sequence[str], nan: Sequence[str], reason: str | None
) -> CheckpointIndex:
    """Return the index with the values of a checkpoint that was read; all that this decides is decided anew."""
    index = changed(index, (path,), nonfinite=tuple(nonfinite), nan=bool(nan), values=reason)
    for known in index.known:
        if known.own and known.nonfinite is not None:
            index = _judged(index, known)
    return index


def values_of(index: CheckpointIndex, known: KnownCheckpoint) -> Values:
    """Return what the values of a checkpoint that was read mean."""
    names = known.nonfinite or ()
    earlier = [k for k in index.known if k.own and k.nonfinite is not None and age_of(k) < age_of(known)]
    if not earlier:
        return Values(names if known.nan else ())
    always = set.intersection(*(set(k.nonfinite or ()) for k in earlier))
    return Values(tuple(name for name in names if name not in always), compared=True)


def is_meant(index: CheckpointIndex, path: str) -> bool:
    """Return whether a checkpoint that is not finite is none the worse for it."""
    known = find(index, path)
    return known is not None and bool(known.nonfinite) and not values_of(index, known).new


def _judged(index: CheckpointIndex, known: KnownCheckpoint) -> CheckpointIndex:
    marked = known.damage is not None and known.damage[0] == "nonfinite"
    if values_of(index, known).new:
        why = known.values or "holds NaN or Inf"
        return index if marked else changed(index, (known.path,), bad=known.bad or why, damage=("nonfinite", why))
    if marked and known.damage is not None and known.bad == known.damage[1]:
        return changed(index, (known.path,), bad=None, damage=None)
    return index
