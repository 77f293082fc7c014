"""When the disk will be full, from how much free space each checkpoint took and how often one comes.

Free space is measured over some minutes: a trainer that deletes its old checkpoints takes none, one that also writes
optimizer states takes more than the size of the file. Other programs write to the disk, too, so a checkpoint counts at
most twice its own size. Source: runs that died in a save at night because the disk was full. Known false alarms:
another program that writes as much; so the forecast names its numbers, and only warns.
"""

import msgspec

from ...model.text.size_words import size
from ..hang.explain import duration

CLASS = "filling"
SAVES = 5
"""Newest checkpoints whose free space is remembered."""
SAVES_LEARNED = 3
"""Fewer prove nothing: the first save often writes files that are written only once."""
SPAN_S = 300.0
"""Saves within less time (a short run, a burst) prove nothing, except for ``URGENT_S``."""
URGENT_S = 600.0
"""A disk that is full within this time is reported at once."""
HORIZON_S = 6 * 3600.0
"""If the end of the training is unknown, a disk that is full within this time is reported."""
RELIEF = 1.5
"""x the time needed: with so much room the warning ends."""
LEAST_BYTES = 1e6
"""Less per checkpoint comes from other files."""
MOST_OF_SIZE = 2.0
"""x its own size is written at most for a checkpoint (optimizer states, a temporary copy)."""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``seen``: (active seconds, free bytes) after each of the newest checkpoints; ``saves``: how many there were."""

    saves: int = 0
    seen: tuple[tuple[float, float], ...] = ()


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """``full_s``: seconds until no further checkpoint fits."""

    full_s: float
    each_bytes: float
    every_s: float


def with_free(use: DiskUse, now: float, free_bytes: float, saves: int) -> DiskUse:
    """Take the free space after ``saves`` complete checkpoints of this run; fewer than before = some were deleted."""
    if saves == use.saves:
        return use
    if saves < use.saves:
        return DiskUse(saves=saves)
    return DiskUse(saves=saves, seen=(*use.seen, (now, free_bytes))[-SAVES:])


def forecast(use: DiskUse, now: float, free_bytes: float, size_bytes: float | None = None) -> Forecast | None:
    """Return when the disk will be full; None if that is unknown or checkpoints take no space.

    ``size_bytes``: size of the largest checkpoint, None = unknown.
    """
    if len(use.seen) < SAVES_LEARNED:
        return None
    (first_t, first_free), (last_t, last_free) = use.seen[0], use.seen[-1]
    times = len(use.seen) - 1
    each, every = (first_free - last_free) / times, (last_t - first_t) / times
    if size_bytes is not None:
        each = min(each, MOST_OF_SIZE * size_bytes)
    if each < LEAST_BYTES or every <= 0.0:
        return None
    next_s = max(0.0, every - (now - last_t))
    return Forecast(full_s=int(free_bytes / each) * every + next_s, each_bytes=each, every_s=every)


def is_short(use: DiskUse, coming: Forecast | None, need_s: float | None) -> bool:
    """Return whether the disk is full before the training is done, or soon if its end is unknown."""
    if coming is None or (use.seen[-1][0] - use.seen[0][0] < SPAN_S and coming.full_s > URGENT_S):
        return False
    return coming.full_s < (HORIZON_S if need_s is None else need_s)


def is_enough(use: DiskUse, coming: Forecast | None, need_s: float | None) -> bool:
    """Return whether there is room again, with a margin; False if nothing is known."""
    if len(use.seen) < SAVES_LEARNED:
        return False
    return coming is None or coming.full_s > RELIEF * (HORIZON_S if need_s is None else need_s)


def describe_forecast(coming: Forecast) -> str:
    """One sentence with what it rests on."""
    hours = coming.full_s / 3600.0
    when = f"about {hours:.1f} h" if hours >= 1.0 else duration(coming.full_s)
    return (
        f"the disk will be full in {when}: each checkpoint takes {size(coming.each_bytes)}, one comes every "
        f"{duration(coming.every_s)}; free some space or keep fewer"
    )
