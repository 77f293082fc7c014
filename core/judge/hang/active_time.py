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


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of a run, in run seconds.

    ``t``: time of the newest observation. ``away_s``: time left out so far. ``sample_t``: newest round of samples.
    ``period_s``: usual distance of rounds; None before two were seen.
    """

    t: float = 0.0
    away_s: float = 0.0
    sample_t: float | None = None
    period_s: float | None = None
    stopped: bool = False
    """The trainer is stopped (state T): time does not count."""


def active(timeline: Timeline) -> float:
    """Return the active time now, in seconds."""
    return timeline.t - timeline.away_s


def longest_gap(period_s: float | None) -> float:
    """Return the longest distance between observations, in seconds, that is not yet a suspend."""
    return max(JUMP_FLOOR_S, JUMP_PERIODS * (period_s or 0.0))


def advance(timeline: Timeline, t: float) -> tuple[Timeline, float]:
    """Move to ``t``; an earlier time is taken as now. Returns the seconds of a suspend too, 0.0 for none."""
    gap = t - timeline.t
    if gap <= 0.0:
        return timeline, 0.0
    if timeline.stopped:
        return msgspec.structs.replace(timeline, t=t, away_s=timeline.away_s + gap), 0.0
    if gap <= JUMP_FLOOR_S or gap <= longest_gap(timeline.period_s):
        return msgspec.structs.replace(timeline, t=t), 0.0
    lost_s = gap - (timeline.period_s or 0.0)
    return msgspec.structs.replace(timeline, t=t, away_s=timeline.away_s + lost_s, sample_t=None), lost_s


def sampled(timeline: Timeline) -> Timeline:
    """Learn the usual period from a round of samples. Several samples of one round count once."""
    last, now = timeline.sample_t, timeline.t
    if last is None:
        return msgspec.structs.replace(timeline, sample_t=now)
    gap = now - last
    if gap < SAME_ROUND_S:
        return timeline
    period = timeline.period_s
    learned = gap if period is None else period + NEWEST_WEIGHT * (gap - period)
    return msgspec.structs.replace(timeline, sample_t=now, period_s=learned)
