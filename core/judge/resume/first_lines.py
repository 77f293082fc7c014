"""Which of an attempt's first lines show a step after its resume, and which step of the run the first one is."""

from itertools import pairwise
from typing import NamedTuple

from ..attempt_progress import STARTED_OVER_STEPS, AttemptProgress
from ..text.position.opening import Mark

NEAR_SHARE = 0.5
"""A first step below this share of the resume point did not come from it."""
PASSED_LINES = 20
"""Longest run of lines, of a bar per epoch, that may show batches which the trainer skips to reach the resume point."""
PASSING_SHARE = 0.3
"""A line is no line of training if its steps took less than this share of the usual time of a step."""
SURE_LINES = 3
"""So many lines of training prove a resume at an early step; so many of skipped batches up to it prove it at once."""
GAPS = 2
"""x the largest number of steps between two redraws of the bar before: the first redraw may come as late."""


class First(NamedTuple):
    """The first step after the resume, in the log's own count. ``exact``: no step was made before it."""

    step: int
    exact: bool


def counted(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The lines that show steps of training, in a count that can be compared.

    A bar without a total, if bars had one before, counts within an epoch that it does not name, and is left out.
    """
    found = _comparable(attempt, marks)
    return found[_passed(attempt, found) :]


def _comparable(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    return tuple(m for m in marks if m.printed and not m.drawn and not _is_unplaced(attempt, m))


def _passed(attempt: AttemptProgress, found: tuple[Mark, ...]) -> int:
    """How many of the first lines show batches that are skipped."""
    return next((n for n, mark in enumerate(found) if not _is_passed_over(attempt, mark)), len(found))


def _is_passed_over(attempt: AttemptProgress, mark: Mark) -> bool:
    """Whether a line shows batches that are skipped to reach the resume point.

    It has no loss although lines with a step had one before, or its steps are far faster than steps of training were.
    """
    at = attempt.resumed_at
    if at is not None and (mark.step or 0) > max(at, attempt.resume_step or 0):
        return False
    return _is_fast(attempt, mark) or (attempt.losses_before and not mark.loss)


def is_near(attempt: AttemptProgress, lines: tuple[Mark, ...], at: int) -> bool:
    """Whether the first of these lines is at the resume point, and none that a new training prints as its first."""
    first = lines[0]
    if first.step is None or first.step < at * NEAR_SHARE:
        return False
    every, gap = max(1, attempt.printed_every_before), attempt.widest_gap_before
    early = at < STARTED_OVER_STEPS and gap != 1
    if early:
        gap = max(gap, widest_gap(lines))
    late = GAPS * gap if gap > every or early else every // 2
    most = max(every, gap) if attempt.fresh_step is None else attempt.fresh_step + late
    return first.step > most or (attempt.fresh_step is None and first.step >= at - 1 and at >= STARTED_OVER_STEPS)


def is_early(attempt: AttemptProgress, lines: tuple[Mark, ...], at: int) -> bool:
    """Whether more lines are needed: the resume point is early, and the log may leave out as many steps."""
    return at < STARTED_OVER_STEPS and attempt.widest_gap_before != 1 and len(lines) < SURE_LINES


def widest_gap(lines: tuple[Mark, ...]) -> int:
    """The largest distance of two steps that were printed one after the other; 0 if there are no two."""
    steps = [mark.step for mark in lines if mark.step is not None]
    return max((later - step for step, later in pairwise(steps)), default=0)


def first_after(attempt: AttemptProgress, marks: tuple[Mark, ...], at: int, *, gap: bool) -> First | None:
    """The first step after the resume at ``at``, if the newest of ``marks`` shows it; None if it does not."""
    lines = counted(attempt, marks)
    placed = next((m for m in lines if m.step is not None), None)
    if placed is None or placed.step is None:
        return None
    if (early := _before_the_first_epoch(attempt, marks)) is not None:
        return First(early, early == at + 1 and attempt.place_is_stored)
    lines_placed = tuple(m for m in lines if m.step is not None)
    if not _is_led_there(attempt, marks, placed, at) and (
        is_early(attempt, lines, at) or not is_near(attempt, lines_placed, at)
    ):
        return None
    step = placed.step
    exact_place = attempt.place_is_stored
    if placed.per_epoch and step <= at and exact_place and not (placed.loss and attempt.losses_before):
        newest = marks[-1].step
        if newest is not None and newest > at:
            return First(newest, newest == at + 1)
        return First(step, exact=False) if len(lines) >= PASSED_LINES else None
    if exact_place:
        return First(step, step == at + 1)
    drawn = any(m.drawn and m.step == step - 1 and m.step for m in marks)
    return First(step, not gap and (drawn or (placed.per_epoch and placed is lines[0] and placed.printed == 1)))


def _is_led_there(attempt: AttemptProgress, marks: tuple[Mark, ...], first: Mark, at: int) -> bool:
    """Whether the bar came to the step after the resume point faster than by training: in a jump, or passing over."""
    passed = _passed(attempt, _comparable(attempt, marks))
    return first.step == at + 1 and (passed >= SURE_LINES or _is_fast(attempt, first))


def _is_fast(attempt: AttemptProgress, mark: Mark) -> bool:
    pace_s = attempt.pace_before_s
    return pace_s is not None and mark.pace_s is not None and mark.pace_s < PASSING_SHARE * pace_s


def _is_unplaced(attempt: AttemptProgress, mark: Mark) -> bool:
    return mark.total is None and attempt.bar_total_before is not None


def _before_the_first_epoch(attempt: AttemptProgress, marks: tuple[Mark, ...]) -> int | None:
    """The first step if the attempt began with a bar that names neither its epoch nor a total, and the next bar does.

    The steps of the first one are those before that epoch (Lightning).
    """
    at = next((n for n, m in enumerate(marks) if not _is_unplaced(attempt, m)), 0)
    after = marks[at]
    if not at or not after.per_epoch or after.step is None or after.printed is None:
        return None
    made = max(max(mark.printed or 0, mark.before or 0) for mark in marks[:at])
    return max(1, after.step - after.printed - made + 1) if made else None
