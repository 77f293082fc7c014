"""When the disk will be full, from how much free space each checkpoint took and how often one comes.

Measured, not assumed, and over some minutes: a trainer that deletes its old checkpoints takes nothing, one that also
writes optimizer states takes more than the file that is shown. Other programs write to the disk, too: what a checkpoint
took is believed up to twice its own size. Known false alarms: something else of that size that fills the disk
meanwhile; so the forecast says what it rests on, and it only warns.
"""

import msgspec

SAVES = 5
"""Newest checkpoints whose free space is remembered."""
SAVES_LEARNED = 3
"""Fewer teach nothing: the first one often writes files that come once."""
SPAN_S = 300.0
"""What was seen over less time (a short run, a burst of saves) teaches nothing …"""
URGENT_S = 600.0
"""… unless the disk is full within this time."""
HORIZON_S = 6 * 3600.0
"""Where the end of the training is unknown: a disk that is full within this time is told."""
RELIEF = 1.5
"""x the time needed: then it is over."""
LEAST_BYTES = 1e6
"""Less per checkpoint is noise of other files."""
MOST_OF_SIZE = 2.0
"""x its own size: so much may be written beside what is shown of a checkpoint (optimizer states, a temporary copy)."""


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
    """Free space was read, after ``saves`` complete checkpoints of this run (fewer than before = some were deleted)."""
    if saves == use.saves:
        return use
    if saves < use.saves:
        return DiskUse(saves=saves)
    return DiskUse(saves=saves, seen=(*use.seen, (now, free_bytes))[-SAVES:])


def forecast(use: DiskUse, now: float, free_bytes: float, size_bytes: float | None = None) -> Forecast | None:
    """When it will be full; None while that cannot be told or nothing is taken.

    ``size_bytes``: of the largest checkpoint that is there, None = not known.
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
    """The disk is full before the training is done (or soon, where its end is unknown)."""
    if coming is None or (use.seen[-1][0] - use.seen[0][0] < SPAN_S and coming.full_s > URGENT_S):
        return False
    return coming.full_s < (HORIZON_S if need_s is None else need_s)


def is_enough(use: DiskUse, coming: Forecast | None, need_s: float | None) -> bool:
    """There is room again, with a margin. Where nothing is known (any more), nothing changes."""
    if len(use.seen) < SAVES_LEARNED:
        return False
    return coming is None or coming.full_s > RELIEF * (HORIZON_S if need_s is None else need_s)


def describe_forecast(coming: Forecast) -> str:
    """For people."""
    return (
        f"the disk will be full in about {coming.full_s / 3600.0:.1f} h: each checkpoint takes "
        f"{coming.each_bytes / 1e9:.2f} GB, one comes every {coming.every_s / 60.0:.0f} min; "
        "free some space or keep fewer"
    )
