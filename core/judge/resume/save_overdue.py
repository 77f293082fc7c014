"""When a checkpoint is overdue while the training goes on: a full output folder, a save that fails silently.

Source: runs that trained for a night and left no checkpoint. Known false alarms: several files per save and one of step
0 (so short distances are ignored, and the longest counts beside the usual one), trainers that save at the end of long
epochs (so nothing is reported within half an hour, nor within three hours if no distance is known).
"""

import msgspec

MISSING = "missing"
"""Class of the incident (kind ``checkpoint``)."""
GAPS = 7
"""Newest distances remembered: a run may be set to save more often from some step on."""
GAPS_LEARNED = 2
"""Fewer distances are not enough to learn from."""
TOGETHER_S = 30.0
"""Files that come closer together belong to one save."""
LATE = 3.0
"""x the usual distance is late, if it is also late by the longest one."""
LATE_OF_LONGEST = 1.5
"""x the longest remembered distance."""
LEAST_S = 1800.0
"""Nothing is reported before this, however often the run saves."""
UNKNOWN_S = 3 * 3600.0
"""If the usual distance is not known: most runs save at least every 2 to 3 h."""


class SaveClock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``last``: when (active seconds) this run's newest complete checkpoint came; ``gaps``: seconds between saves."""

    last: float | None = None
    gaps: tuple[float, ...] = ()


def saved(clock: SaveClock, now: float, start: float) -> SaveClock:
    """Add a complete checkpoint. ``start``: of this attempt, from which the first distance counts."""
    gap = now - max(start, clock.last if clock.last is not None else start)
    return SaveClock(last=now, gaps=(*clock.gaps, gap)[-GAPS:] if gap >= TOGETHER_S else clock.gaps)


def overdue(clock: SaveClock, now: float, start: float) -> str | None:
    """Return a sentence if no checkpoint came for too long, else None. Times in active seconds."""
    waited = now - max(start, clock.last if clock.last is not None else start)
    longest = max(clock.gaps, default=0.0)
    if len(clock.gaps) < GAPS_LEARNED:
        if waited < max(UNKNOWN_S, LATE * longest):
            return None
        return f"no checkpoint for {_long(waited)} of training"
    gaps = sorted(clock.gaps)
    usual = (gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2  # the module of medians costs 0.4 MB
    if waited < max(LEAST_S, LATE * usual, LATE_OF_LONGEST * longest):
        return None
    return f"no checkpoint for {_long(waited)}, usually one every {_long(max(usual, longest))}"


def _long(seconds: float) -> str:
    return f"{seconds / 60.0:.0f} min" if seconds < 2 * 3600.0 else f"{seconds / 3600.0:.1f} h"
