"""A run that advances much slower than it used to, or saves too seldom. It warns and never stops.

Known causes: thermal or power throttling; on WSL2 and Windows drivers, memory that spilled from the GPU into host RAM
(reported as "util pinned at 100 %, temps low, crawl"); a loader that fell behind. Known false alarms: longer batches by
design (bucketed resolutions, growing sequence lengths); so the slow-down must be large and last.
"""

from typing import Literal, get_args

import msgspec

from .findings import Bands, Loss, Pace
from .hang.deadlines import StepClock
from .hang.liveness import LEARN_SAMPLES, Liveness
from .scales import HALF_AGAIN, HALF_MINUTE_S, HOUR_S, MINUTE_S, SURE_TIMES, TWICE

StallClass = Literal["slow", "spilling", "throttled"]
CLASSES: tuple[StallClass, ...] = get_args(StallClass)

FAST_RATIO = 1.4
"""x the usual distance: below this a slow-down is over."""
PACE_WEIGHT = 0.05
"""Weight of the newest block in the usual pace, slow ones left out: a slow beginning is forgotten."""


UTIL_FALL_PCT = 20.0
"""A fall of GPU utilisation by at least this many points is named: the GPU waits for something else."""


class Stall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``usual_s``: usual distance of progress lines. ``slow_s``, ``blocks``: how long it has been slow.

    ``usual_util_pct``: usual utilisation of the trainer's GPUs.
    """

    usual_s: float | None = None
    usual_util_pct: float | None = None
    learned: int = 0
    blocks: int = 0
    slow_s: float = 0.0
    open: bool = False


def with_block(stall: Stall, mean_s: float, lasted_s: float, util_pct: float | None = None) -> Stall:
    """Add a block of the step clock: ``mean_s`` between lines, over ``lasted_s``, and GPU utilisation at its end.

    The first ``LEARN_SAMPLES`` set the usual pace: batches may come from a cache. A run is slow at twice the usual
    distance of lines, or at half as much again if the GPU's utilisation halved, too: two signs are surer than one. It
    has to last, over several blocks: one step of a minute is not a slow-down.
    """
    usual = stall.usual_s
    if usual is None or stall.learned < LEARN_SAMPLES:
        known = mean_s if usual is None else usual + (mean_s - usual) / (stall.learned + 1)
        return Stall(usual_s=known, learned=stall.learned + 1, usual_util_pct=_blend(stall.usual_util_pct, util_pct))
    usual_pct = stall.usual_util_pct
    waits = usual_pct is not None and util_pct is not None and TWICE * util_pct < usual_pct
    if mean_s > (HALF_AGAIN if waits else TWICE) * usual:
        slow_s, blocks = stall.slow_s + lasted_s, stall.blocks + 1
        now_open = stall.open or (blocks >= SURE_TIMES and slow_s >= MINUTE_S)
        return msgspec.structs.replace(stall, blocks=blocks, slow_s=slow_s, open=now_open)
    still = stall.open and mean_s > FAST_RATIO * usual
    return Stall(
        usual_s=usual + PACE_WEIGHT * (mean_s - usual),
        usual_util_pct=stall.usual_util_pct if still else _blend(stall.usual_util_pct, util_pct),
        learned=stall.learned,
        blocks=stall.blocks if still else 0,
        slow_s=stall.slow_s if still else 0.0,
        open=still,
    )


def _blend(before: float | None, newest: float | None) -> float | None:
    if before is None or newest is None:
        return before if newest is None else newest
    return before + PACE_WEIGHT * (newest - before)


def classify_slow(seen: Liveness, bands: Bands) -> StallClass:
    """Return why it may be slow, from what the GPUs show."""
    low_power = "spin" in seen.gpu or "dim" in seen.gpu
    for normal in seen.normals:
        memory = bands.get(f"gpu{normal.index}.vram")
        heat = bands.get(f"gpu{normal.index}.temp")
        if low_power and memory is not None and memory.level == "warning":
            return "spilling"
        if heat is not None and heat.level in {"warning", "danger"}:
            return "throttled"
    return "throttled" if seen.throttle else "slow"


def describe_slow(stall: Stall, clock: StepClock, seen: Liveness) -> str:
    """Describe a slow-down in a sentence."""
    now_s = clock.means[-1] if clock.means else 0.0
    held = f"; the GPU's clocks are held down: {', '.join(seen.throttle)}" if seen.throttle else ""
    fell = ""
    usual, now = stall.usual_util_pct, seen.util_pct
    if usual is not None and now is not None and usual - now >= UTIL_FALL_PCT:
        fell = f"; GPU utilisation {now:.0f} % instead of {usual:.0f} %"
    return f"a progress line every {now_s:.3g} s instead of {stall.usual_s or 0.0:.3g} s{fell}{held}"


# When a checkpoint is overdue while the training goes on: a full output folder, a save that fails silently.
#
# Source: runs that trained for a night and left no checkpoint. Known false alarms: several files per save and one of
# step 0 (so short distances are ignored, and the longest counts beside the usual one), trainers that save at the end of
# long epochs (so nothing is reported within half an hour, nor within three hours if no distance is known).

MISSING = "missing"
"""Class of the incident (kind ``checkpoint``)."""
GAPS = 7
"""Newest distances remembered: a run may be set to save more often from some step on."""
LATE = 3.0
"""x the usual distance is late, if it is also late by the longest one."""
UNKNOWN_S = 3 * HOUR_S
"""If the usual distance is not known: most runs save at least every 2 to 3 h."""


class SaveClock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``last``: when (active seconds) this run's newest complete checkpoint came; ``gaps``: seconds between saves."""

    last: float | None = None
    gaps: tuple[float, ...] = ()


def with_save(clock: SaveClock, now: float, start: float) -> SaveClock:
    """Add a complete checkpoint. ``start``: of this attempt, from which the first distance counts.

    Files that come within half a minute belong to one save.
    """
    gap = now - max(start, clock.last if clock.last is not None else start)
    return SaveClock(last=now, gaps=(*clock.gaps, gap)[-GAPS:] if gap >= HALF_MINUTE_S else clock.gaps)


def overdue(clock: SaveClock, now: float, start: float) -> str | None:
    """Return a sentence if no checkpoint came for too long, else None. Times in active seconds.

    Nothing is reported within half an hour, however often the run saves.
    """
    waited = now - max(start, clock.last if clock.last is not None else start)
    longest = max(clock.gaps, default=0.0)
    if len(clock.gaps) < TWICE:
        if waited < max(UNKNOWN_S, LATE * longest):
            return None
        return f"no checkpoint for {long_words(waited)} of training"
    gaps = sorted(clock.gaps)
    usual = (gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2  # the module of medians costs 0.4 MB
    if waited < max(HOUR_S / 2, LATE * usual, HALF_AGAIN * longest):
        return None
    return f"no checkpoint for {long_words(waited)}, usually one every {long_words(max(usual, longest))}"


def long_words(seconds: float) -> str:
    """``90 min``, ``4.5 h``."""
    return f"{seconds / 60.0:.0f} min" if seconds < 2 * 3600.0 else f"{seconds / 3600.0:.1f} h"


class Course(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the training goes: its loss, its pace, and when it saves.

    ``saves_unread``: when the attempt saved while no step was read: the first file of its newest two saves, active
    seconds.
    """

    loss: Loss = Loss()
    pace: Pace = Pace()
    stall: Stall = Stall()
    saves: SaveClock = SaveClock()
    saves_unread: tuple[float, ...] = ()
