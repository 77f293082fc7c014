"""The printed losses of an attempt from its first step on, few enough to be kept: they show how the loss has moved.

Of a log that prints no loss, the values of the first measure of quality that its lines of steps name (rmse, accuracy).

The first ones are kept all, as they show where a training begins. Of the others every n-th is kept, and n doubles
whenever they are too many, so that they cover the whole attempt. They are taken line by line: the same for any chunking
of the log.
"""

from typing import NamedTuple

import msgspec

FEW = 5
"""Losses that are put together at the start, after the checkpoint and after the resume."""
MOST_POINTS = 32
"""Losses kept besides the first ones; half of them stay when they are more."""


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


NO_LOSSES = LossCurve()


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
    return msgspec.structs.replace(curve, first=first, points=points, every=every, seen=curve.seen + 1, last=step)


def after_gap(curve: LossCurve) -> LossCurve:
    """The curve after text that was left out."""
    return curve if curve.seen or curve.gap else msgspec.structs.replace(curve, gap=True)


def moved(points: tuple[Point, ...], offset: int) -> tuple[Point, ...]:
    """The points in the count of the run, which is ``offset`` ahead of that of the attempt."""
    return tuple(point._replace(step=point.step + offset) for point in points) if offset else points


def thinned(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """So few of them that they can be kept."""
    while len(points) > MOST_POINTS:
        points = points[::2]
    return points
