"""What a checkpoint costs the training: how much longer than usual the step is in which it is written.

A trainer that saves in the background makes its next step as usual: the cost is 0. The time at which a checkpoint was
written (its modification time) says which step was the long one. Known false alarm: an evaluation right after each save
counts as its cost, if both fall between the same two printed steps.
"""

from typing import NamedTuple

import msgspec

KEPT = 8
"""Longest gaps remembered."""
WINDOW_S = 180.0
"""A checkpoint is noticed at most this long after its step: large folders are examined, events get lost."""
SLACK_S = 2.0
"""The log is read a little after it was written."""
TOGETHER_S = 30.0
"""Files that come closer together belong to one save (as in save_overdue.py)."""
LEAST_SHARE = 0.5
"""x the usual step: a gap that is longer by less is noise."""


class Gap(NamedTuple):
    """Two steps in a row, in run seconds, and how much longer than usual it took from one to the other."""

    begin_t: float
    end_t: float
    excess_s: float


class SaveCost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``step_t``: of the newest step. ``open_t``: when a checkpoint was written after which no step came yet.

    ``saved_t``: when the last one that was counted was written, ``cost_s``: its cost.
    """

    gaps: tuple[Gap, ...] = ()
    step_t: float | None = None
    open_t: float | None = None
    saved_t: float | None = None


class Measured(NamedTuple):
    """One save. ``every_s``: since the save before, None = the first of the attempt."""

    cost_s: float
    every_s: float | None


def with_step(known: SaveCost, t: float, usual_s: float | None) -> tuple[SaveCost, Measured | None]:
    """A step at ``t``, for which ``usual_s`` is usual (None = not known)."""
    gaps, begin_t = known.gaps, known.step_t
    if begin_t is not None and usual_s is not None and t - begin_t - usual_s > LEAST_SHARE * usual_s:
        fresh = [gap for gap in gaps if gap.end_t >= t - WINDOW_S]
        gaps = tuple(sorted((*fresh, Gap(begin_t, t, t - begin_t - usual_s)), key=lambda gap: -gap.excess_s)[:KEPT])
    known = msgspec.structs.replace(known, gaps=gaps, step_t=t)
    if known.open_t is None or t < known.open_t + SLACK_S or usual_s is None:
        return known, None
    return _measured(known, known.open_t)


def with_checkpoint(known: SaveCost, written_t: float) -> tuple[SaveCost, Measured | None]:
    """A checkpoint of this attempt is complete; it was written at ``written_t``."""
    if known.step_t is None or (known.saved_t is not None and written_t - known.saved_t < TOGETHER_S):
        return known, None
    if known.step_t < written_t + SLACK_S:
        return msgspec.structs.replace(known, open_t=written_t), None
    return _measured(known, written_t)


def _measured(known: SaveCost, written_t: float) -> tuple[SaveCost, Measured]:
    around = [gap.excess_s for gap in known.gaps if gap.begin_t - SLACK_S <= written_t <= gap.end_t + SLACK_S]
    every_s = None if known.saved_t is None else written_t - known.saved_t
    new = msgspec.structs.replace(known, open_t=None, saved_t=written_t)
    return new, Measured(max(around, default=0.0), every_s)
