"""Run time without the time in which nothing could be seen: suspends of the machine and stops by a person.

Deadlines run on *active* time. A jump between two observations far beyond the usual sampling period is a suspend
(laptop lid, WSL2 standby, a stopped supervisor). Source: public reports of runs that were killed on wake-up. Known
false alarms: none; a jump that was no suspend only lengthens a deadline.
"""

import msgspec

from .gpu_activity import NEWEST_WEIGHT

JUMP_FLOOR_S = 40.0
"""A shorter gap between samples is no suspend: machines that swap have them while a trainer hangs."""
JUMP_PERIODS = 8.0
"""x the usual sampling period: a shorter gap is no suspend, but a few samples that were lost."""
SAME_ROUND_S = 0.3
"""Samples of different kinds closer than this belong to one round."""


class ActiveTime(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of a run, in run seconds.

    ``t``: time of the newest observation. ``away_s``: time left out so far. ``sample_t``: newest round of samples.
    ``period_s``: usual distance of rounds; None before two were seen.
    """

    t: float = 0.0
    away_s: float = 0.0
    sample_t: float | None = None
    period_s: float | None = None
    stopped: bool = False
    """Every computing process is stopped (state T): time does not count."""


def now(time: ActiveTime) -> float:
    """Return the active time now, in seconds."""
    return time.t - time.away_s


def longest_gap(period_s: float | None) -> float:
    """Return the longest distance between observations, in seconds, that is not yet a suspend."""
    return max(JUMP_FLOOR_S, JUMP_PERIODS * (period_s or 0.0))


def advance(time: ActiveTime, t: float) -> tuple[ActiveTime, float]:
    """Move to ``t``; an earlier time is taken as now. Returns the seconds of a suspend too, 0.0 for none."""
    gap = t - time.t
    if gap <= 0.0:
        return time, 0.0
    if time.stopped:
        return msgspec.structs.replace(time, t=t, away_s=time.away_s + gap), 0.0
    if gap <= JUMP_FLOOR_S or gap <= longest_gap(time.period_s):
        return msgspec.structs.replace(time, t=t), 0.0
    lost_s = gap - (time.period_s or 0.0)
    return msgspec.structs.replace(time, t=t, away_s=time.away_s + lost_s, sample_t=None), lost_s


def sampled(time: ActiveTime) -> ActiveTime:
    """Learn the usual period from a round of samples. Several samples of one round count once."""
    last, now = time.sample_t, time.t
    if last is None:
        return msgspec.structs.replace(time, sample_t=now)
    gap = now - last
    if gap < SAME_ROUND_S:
        return time
    period = time.period_s
    learned = gap if period is None else period + NEWEST_WEIGHT * (gap - period)
    return msgspec.structs.replace(time, sample_t=now, period_s=learned)
