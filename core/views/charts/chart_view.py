"""A chart as a value: its curves on one x axis, in the unit in which they are shown."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ...model.ports.screen import Point
from ..metric_words import shown_points, unit_of, words_of
from ..panes.timeline import Mark
from .attempts import AttemptSpan, StepOf, by_step, joined, shifted, until_last_step, within, without_stills
from .curve import GAP, usual_distance
from .smoothing import smoothed
from .zoom import Span

XAxis = Literal["step", "time"]
STEPS = "progress.step"
MOST_ATTEMPTS = 5
"""Attempts that are drawn over each other: the newest ones."""


class ChartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``x``: what the axis counts. ``smooth``: share of the value before. ``overlaid``: attempts over each other."""

    x: XAxis = "time"
    smooth: float = 0.0
    log: bool = False
    overlaid: bool = False


class RunSeries(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one run: points by metric (times in run seconds), its attempts and marks."""

    name: str
    points: Mapping[str, Sequence[Point]]
    attempts: tuple[AttemptSpan, ...] = ()
    marks: tuple[Mark, ...] = ()


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """``parts``: points (x, low, mean, high) that are joined by lines; the parts are not joined to each other.

    ``look``: number of its colour and dashes. ``gap``: points that are farther apart are not joined.
    """

    name: str
    parts: tuple[tuple[Point, ...], ...]
    look: int = 0
    faint: bool = False
    gap: float = math.inf


class ChartView(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. ``unit``: of all points, as value_text takes it. ``curves``: the most important last."""

    metric: str
    title: str
    unit: str
    curves: tuple[Curve, ...] = ()

    @property
    def named(self) -> tuple[Curve, ...]:
        """The curves to be named and read, most important first: without the faint ones behind smoothed curves."""
        return tuple(c for c in reversed(self.curves) if not c.faint)


def chart_view(metric: str, run: RunSeries, options: ChartOptions) -> ChartView:
    """The chart of a metric; its pace decides the unit."""
    unit = unit_of(metric, run.points.get(metric, ()))
    curves: list[Curve] = []
    for name, look, parts in _parts(metric, shown_points(metric, run.points.get(metric, ()), unit), run, options):
        if not parts:
            continue
        gap = math.inf if metric.startswith("metric.") else GAP * max(map(usual_distance, parts))
        if options.smooth:
            curves.append(Curve(name=name, parts=parts, look=look, faint=True, gap=gap))
            parts = tuple(smoothed(part, options.smooth) for part in parts)  # noqa: PLW2901  the curve on top
        curves.append(Curve(name=name, parts=parts, look=look, gap=gap))
    return ChartView(metric=metric, title=words_of(metric).title, unit=unit, curves=tuple(curves))


def _parts(
    metric: str, points: tuple[Point, ...], run: RunSeries, options: ChartOptions
) -> list[tuple[str, int, tuple[tuple[Point, ...], ...]]]:
    """(name, look, points on the x axis) of each curve of a run; the newest attempt last, with look 0."""
    steps = run.points.get(STEPS, ())
    attempts = run.attempts
    of_training = metric.partition(".")[0] in {"progress", "metric"}
    if not attempts or (options.x == "time" and not options.overlaid and not of_training):
        return [(run.name, 0, (points,) if points else ())]
    pieces: list[list[tuple[Point, ...]]] = []
    for span in attempts:
        part, known = within(points, span), within(steps, span)
        if metric.startswith("progress."):
            part = until_last_step(part, known)
        if options.x == "step":
            pieces.append([by_step(part, StepOf(known))])
        else:
            begin_t = span.since_t if options.overlaid else 0.0
            pieces.append(
                [shifted(piece, begin_t) for piece in (without_stills(part, span) if of_training else [part])]
            )
    if options.overlaid:
        newest = list(zip(attempts, pieces, strict=True))[-MOST_ATTEMPTS:]
        return [
            (f"attempt {span.number}", len(newest) - 1 - at, tuple(piece for piece in found if piece))
            for at, (span, found) in enumerate(newest)
        ]
    parts = [piece for found in pieces for piece in found]
    if options.x == "step":
        parts = [joined(parts)]
    return [(run.name, 0, tuple(part for part in parts if part))]


def marks_on(run: RunSeries, options: ChartOptions) -> tuple[tuple[float, Mark], ...]:
    """(x, mark) of what happened, where the axis has a place for it."""
    if options.x == "time" and not options.overlaid:
        return tuple((m.t, m) for m in run.marks)
    steps = run.points.get(STEPS, ())
    shown = run.attempts[-MOST_ATTEMPTS:] if options.overlaid else run.attempts
    found: list[tuple[float, Mark]] = []
    for span in shown:
        step_of = StepOf(within(steps, span))
        for mark in run.marks:
            if not span.since_t <= mark.t <= span.until_t + 1:
                continue
            x = mark.t - span.since_t if options.x == "time" else step_of(mark.t, math.inf)
            if x is not None:
                found.append((x, mark))
    return tuple(found)


def x_bounds(run: RunSeries, options: ChartOptions, end_t: float) -> tuple[float, float]:
    """The whole x axis: from the start to the newest value. ``end_t``: of the run, run seconds."""
    if options.x == "step":
        return 0.0, max(1.0, *(p[3] for p in run.points.get(STEPS, ())), 1.0)
    if options.overlaid:
        return 0.0, max(1.0, *(s.until_t - s.since_t for s in run.attempts[-MOST_ATTEMPTS:]), 1.0)
    return 0.0, max(1.0, end_t)


def seconds_in(
    zoom: Span | None, options: ChartOptions, steps: Sequence[Point], attempts: Sequence[AttemptSpan]
) -> tuple[float, float] | None:
    """The run seconds that a zoomed part of the x axis shows; None: all of the run, or no step of it is in that part.

    ``steps``: the points of STEPS. Of an axis of steps the line before the part and the one after it belong to it.
    """
    if zoom is None:
        return None
    if options.x == "time" and not options.overlaid:
        return zoom.since, zoom.until
    times: list[float] = []
    for span in attempts:
        if options.x == "time":
            times += [span.since_t + zoom.since, min(span.until_t, span.since_t + zoom.until)]
            continue
        part = within(steps, span)
        inside = [p[0] for p in part if zoom.since <= p[2] <= zoom.until]
        around = [p[0] for p in part if p[2] < zoom.since][-1:] + [p[0] for p in part if p[2] > zoom.until][:1]
        bounds = StepOf(part).bounds
        if bounds is not None and bounds[0] <= zoom.until and bounds[1] >= zoom.since:
            times += inside or around
            times += around
    return (min(times), max(times)) if times else None
