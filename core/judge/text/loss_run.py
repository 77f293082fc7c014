"""The printed losses of an attempt in their order: how long the newest have been NaN, and whether they are an average.

A NaN *step* is a step whose own loss is NaN. A printed number may stand for more: a line every hundred steps, a bar
that keeps the last value, or an average over the epoch, which one skipped batch stains until the epoch ends. So the
steps between two printed values are learned (``hold``), and an average is recognised by its name (fields.py), by
its row in log_shapes.toml, or by what it does: its changes shrink within an epoch and are large again at the next one,
and a NaN in it ends with the epoch. Before the first epoch is over it is only likely to be one: its changes go both
ways and shrink like 1/n. Then NaN has to last longer before it counts.
"""

from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ..scales import SURE_TIMES

VALUES = 10
"""Printed values, or changes from one to the next, that show what one alone does not: one bad batch stains one printed
value. The first changes of an epoch are compared with the newest ones, and so are those after them (``middle``)."""
SETTLES = 5.0
"""x the changes at the end of an epoch: larger ones at the beginning of the next show an average over the epoch. Once
they are so much smaller than in the middle it can be told, too, whether they shrink like 1/n."""
LIKELY_RATIO = (0.6, 2.5)
"""x 1/n, within which the changes of a running mean shrink."""
LIKELY_TURNS = 0.2
"""Share of changes that go up, and down, at least: a loss that only falls shrinks its changes, too."""
LIKELY_PATIENCE = 4
"""x the steps that must be NaN if the loss is likely to be an average."""


class LossRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """``nan_steps``, ``nan_values``: steps and printed values in a row that were NaN, up to the newest; 0 = it is not.

    ``nan_from``: the step of the run at the first of them. ``average``: the newest is a running average.
    ``hold``: fewest steps from one printed value to a different one; None = not known. ``value``, ``at``: the newest
    finite value and the step from which it stood; ``last``: the newest step with a loss.

    ``changes``: different values in this epoch; ``early``: sum of the first changes of this epoch;
    ``late``: mean change at the end of it; ``late_before``: of the epoch before, None = too few values.
    ``without``: steps since the newest loss, ``spread``: most of them from one to the next.
    ``middle``: sum of the changes after those; ``ups``: changes upwards since those.
    """

    nan_steps: int = 0
    nan_values: int = 0
    nan_from: int | None = None
    average: bool = False
    acts_as_average: bool = False
    hold: int | None = None
    value: float | None = None
    at: int | None = None
    last: int | None = None
    changes: int = 0
    early: float = 0.0
    late: float = 0.0
    late_before: float | None = None
    middle: float = 0.0
    ups: int = 0
    without: int = 0
    spread: int = 0

    @property
    def is_gone(self) -> bool:
        """No loss is printed any more: what was printed last says nothing about now. One alone tells no rhythm."""
        has_rhythm = self.spread or self.hold or self.last != self.at
        return bool(has_rhythm) and self.without > max(VALUES, SURE_TIMES * self.spread)

    @property
    def is_average(self) -> bool:
        """Whether the newest loss is a running average, by its name, its row or what it does."""
        return self.average or self.acts_as_average

    @property
    def is_likely_average(self) -> bool:
        """Whether the loss moved like a mean over the epoch so far, until it was NaN."""
        later, middle = self.changes - 2 * VALUES, 1.5 * VALUES
        if self.changes < SETTLES * middle or self.late <= 0.0:
            return False
        if not LIKELY_TURNS * later <= self.ups <= (1.0 - LIKELY_TURNS) * later:
            return False
        return LIKELY_RATIO[0] <= self.middle / VALUES / self.late * middle / self.changes <= LIKELY_RATIO[1]

    def is_nan_for(self, steps: int) -> bool:
        """Whether the loss of the last ``steps`` steps was NaN, and not just one printed value or an average."""
        if self.is_likely_average:
            steps *= LIKELY_PATIENCE
        if self.is_average or self.nan_values < min(VALUES, steps):
            return False
        hold = 1 if self.hold is None else self.hold
        return self.nan_steps >= (steps if hold == 1 else max(steps, VALUES * hold))


def with_printed(
    run: LossRun, value: float | None, at: int | None, *, place: int | None, average: bool, moved: bool, new_epoch: bool
) -> LossRun:
    """Add a printed loss. ``value`` None: NaN or infinite. ``at``: its step as printed, ``place``: that of the run.

    ``moved``: the line is not another drawing of the step before. ``new_epoch``: first loss since the epoch changed or
    the counter began again.
    """
    if run.without:
        run = replace(run, without=0, spread=max(run.spread, run.without))
    if new_epoch:  # the counts begin again; a NaN that ends with the epoch was one of an average
        ended = value is not None and run.nan_values > 1
        late_before = run.late if run.changes >= 2 * VALUES else None
        run = replace(run, acts_as_average=run.acts_as_average or ended, late_before=late_before, at=None)
        run = replace(run, changes=0, early=0.0, late=0.0, middle=0.0, ups=0)
    if value is None:
        if run.nan_values and not moved:
            return run
        made = 1 if not run.nan_values or at is None or run.last is None or at <= run.last else at - run.last
        run = replace(run, average=average, last=at, nan_from=run.nan_from if run.nan_values else place)
        return replace(run, nan_steps=run.nan_steps + made, nan_values=run.nan_values + 1)
    run = replace(run, nan_steps=0, nan_values=0, nan_from=None, average=average, last=at)
    if value == run.value:
        return run
    hold, changes, late = run.hold, run.changes + 1, run.late
    change = 0.0 if run.value is None else abs(value - run.value)
    if run.at is not None and at is not None and at > run.at:
        hold = at - run.at if hold is None else min(hold, at - run.at)
    early = run.early + change if changes <= VALUES else run.early
    late = change if changes == 1 else late + (change - late) / min(changes, VALUES)
    if changes == VALUES and run.late_before is not None and early / VALUES > SETTLES * run.late_before > 0.0:
        run = replace(run, acts_as_average=True)
    if VALUES < changes <= 2 * VALUES:
        run = replace(run, middle=run.middle + change)
    elif changes > 2 * VALUES and run.value is not None and value > run.value:
        run = replace(run, ups=run.ups + 1)
    return replace(run, hold=hold, value=value, at=at, changes=changes, early=early, late=late)


# The printed losses of an attempt from its first step on, few enough to be kept: they show how the loss has moved.
#
# Of a log that prints no loss, the values of the first measure of quality that its lines of steps name (rmse,
# accuracy).
#
# The first ones are kept all, as they show where a training begins. Of the others every n-th is kept, and n doubles
# whenever they are too many, so that they cover the whole attempt. They are taken line by line: the same for any
# chunking of the log.

FEW = 5
"""Losses that are put together at the start, after the checkpoint and after the resume."""
MOST_POINTS = 32
"""Losses kept besides the first ones, of which half stay when they are more; lines with a counter that are kept."""


class Point(NamedTuple):
    """A printed loss, its step and the learning rate that was printed last (None = none was)."""

    step: int
    loss: float
    lr: float | None


class LossCurve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``first``: the first losses. ``points``: every ``every``-th loss; ``seen``: losses so far; ``last``: its step.

    ``gap``: text before the first loss was not read. ``name``: of the measure; "" = the loss.
    """

    name: str = ""
    first: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    every: int = 1
    seen: int = 0
    last: int | None = None
    gap: bool = False


def with_loss(curve: LossCurve, step: int | None, value: float | None, lr: float | None) -> LossCurve:
    """Add a printed loss. One that is not a number or has no step of its own is left out."""
    if step is None or value is None or (curve.last is not None and step <= curve.last):
        return curve
    point = Point(step, value, lr)
    first, points, every = curve.first, curve.points, curve.every
    if len(first) < FEW:
        first = (*first, point)
    if curve.seen % every == 0:
        points = (*points, point)
        if len(points) > MOST_POINTS:
            points, every = points[::2], 2 * every
    return replace(curve, first=first, points=points, every=every, seen=curve.seen + 1, last=step)


def moved(points: tuple[Point, ...], offset: int) -> tuple[Point, ...]:
    """The points in the count of the run, which is ``offset`` ahead of that of the attempt."""
    return tuple(point._replace(step=point.step + offset) for point in points) if offset else points


def thinned(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """So few of them that they can be kept."""
    while len(points) > MOST_POINTS:
        points = points[::2]
    return points


# The first lines with a counter in the log of one attempt: they show where the attempt began.
#
# They are kept line by line, so they are the same for any chunking of the log, also if a supervisor reads it late.

LINES = 24
"""Lines kept from the beginning. The others, up to ``MOST_POINTS``, differ in kind from the one before: a loss appears,
a total appears."""


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One such line. ``step``: of the run, None = it cannot be told; ``printed``: its counter, None = an epoch only.

    ``before``: the counter of the line before. ``total``: of the counter. ``from_zero``: epochs count from 0.
    ``loss``: it shows a loss. ``pace_s``: seconds of a step, as printed. ``drawn``: a bar that shows where it begins,
    before its first step.
    """

    step: int | None = None
    printed: int | None = None
    before: int | None = None
    total: int | None = None
    epoch: float | None = None
    per_epoch: bool = False
    from_zero: bool = False
    loss: bool = False
    pace_s: float | None = None
    drawn: bool = False


class Opening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``gap``: text before the first of them was not read, so that the attempt may have begun earlier."""

    marks: tuple[Mark, ...] = ()
    gap: bool = False

    @property
    def counted(self) -> tuple[Mark, ...]:
        """The lines that show a step of training."""
        return tuple(mark for mark in self.marks if mark.printed and not mark.drawn)

    @property
    def first_step(self) -> int | None:
        """The first step of the run that was printed; None if none was, or it cannot be told."""
        return next((mark.step for mark in self.counted if mark.step is not None), None)

    @property
    def first_epoch(self) -> float | None:
        """The first epoch that was printed with a step, or at all in a log without steps; None if none was."""
        return next((mark.epoch for mark in self.counted or self.marks if mark.epoch is not None), None)

    @property
    def shows_losses(self) -> bool:
        """Whether most lines with a step have a loss, too."""
        counted = self.counted
        return 2 * sum(mark.loss for mark in counted) > len(counted)


def with_mark(opening: Opening, mark: Mark) -> Opening:
    """Add a line, unless it tells nothing new, or enough are kept."""
    marks = opening.marks
    if len(marks) >= MOST_POINTS:
        return opening
    if marks and _KIND(mark) == _KIND(marks[-1]) and (len(marks) >= LINES or _PLACE(mark) == _PLACE(marks[-1])):
        return opening
    return replace(opening, marks=(*marks, mark))


_KIND, _PLACE = attrgetter("total", "per_epoch", "loss", "drawn"), attrgetter("step", "printed", "epoch")
