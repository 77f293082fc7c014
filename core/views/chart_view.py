"""A chart as a value: its curves on one x axis, in the unit in which they are shown."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Literal, NamedTuple

import msgspec

from ..model.screen_ports import Point
from .charts import (
    GAP,
    AttemptSpan,
    Span,
    StepOf,
    by_step,
    dotted,
    joined,
    log_ticks,
    smoothed,
    ticks,
    until_last_step,
    usual_distance,
    value_range,
    within,
    without_stills,
)
from .metrics import axis_unit, shown_points, stored_unit, tick_text, unit_of, words_of
from .timeline import Mark

XAxis = Literal["step", "time"]
STEPS = "progress.step"


class ChartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``x``: what the axis counts. ``smooth``: share of the value before."""

    x: XAxis = "time"
    smooth: float = 0.0
    log: bool = False


class RunSeries(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one run: points by metric (times in run seconds), its attempts and marks."""

    name: str
    points: Mapping[str, Sequence[Point]]
    attempts: tuple[AttemptSpan, ...] = ()
    marks: tuple[Mark, ...] = ()


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """``parts``: points (x, low, mean, high) that are joined by lines; the parts are not joined to each other.

    ``faint``: behind its smoothed curve. ``gap``: points that are farther apart are not joined.
    """

    parts: tuple[tuple[Point, ...], ...]
    faint: bool = False
    gap: float = math.inf


class ChartView(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. ``unit``: of all points, as value_text takes it. ``curves``: the one to be read last."""

    metric: str
    title: str
    unit: str
    curves: tuple[Curve, ...] = ()


def chart_view(metric: str, run: RunSeries, options: ChartOptions) -> ChartView:
    """The chart of a metric; its pace decides the unit."""
    unit = unit_of(metric, run.points.get(metric, ()))
    parts = _parts(metric, shown_points(metric, run.points.get(metric, ()), unit), run, options)
    curves: list[Curve] = []
    if parts:
        gap = math.inf if metric.startswith("metric.") else GAP * max(map(usual_distance, parts))
        if options.smooth:
            curves.append(Curve(parts=parts, faint=True, gap=gap))
            parts = tuple(smoothed(part, options.smooth) for part in parts)
        curves.append(Curve(parts=parts, gap=gap))
    return ChartView(metric=metric, title=words_of(metric).title, unit=unit, curves=tuple(curves))


def _parts(
    metric: str, points: tuple[Point, ...], run: RunSeries, options: ChartOptions
) -> tuple[tuple[Point, ...], ...]:
    """The points on the x axis, apart where nothing was trained."""
    steps = run.points.get(STEPS, ())
    of_training = metric.partition(".")[0] in {"progress", "metric"}
    if not run.attempts or (options.x == "time" and not of_training):
        return (points,) if points else ()
    parts: list[tuple[Point, ...]] = []
    for span in run.attempts:
        part, known = within(points, span), within(steps, span)
        if metric.startswith("progress."):
            part = until_last_step(part, known)
        parts += [by_step(part, StepOf(known))] if options.x == "step" else without_stills(part, span)
    if options.x == "step":
        parts = [joined(parts)]
    return tuple(part for part in parts if part)


def marks_on(run: RunSeries, options: ChartOptions) -> tuple[tuple[float, Mark], ...]:
    """(x, mark) of what happened, where the axis has a place for it."""
    if options.x == "time":
        return tuple((m.t, m) for m in run.marks)
    steps = run.points.get(STEPS, ())
    found: list[tuple[float, Mark]] = []
    for span in run.attempts:
        step_of = StepOf(within(steps, span))
        inside = (mark for mark in run.marks if span.since_t <= mark.t <= span.until_t + 1)
        found += [(x, mark) for mark in inside if (x := step_of(mark.t, math.inf)) is not None]
    return tuple(found)


def x_bounds(run: RunSeries, options: ChartOptions, end_t: float) -> tuple[float, float]:
    """The whole x axis: from the start to the newest value. ``end_t``: of the run, run seconds."""
    if options.x == "step":
        return 0.0, max(1.0, *(p[3] for p in run.points.get(STEPS, ())), 1.0)
    return 0.0, max(1.0, end_t)


def seconds_in(
    zoom: Span | None, options: ChartOptions, steps: Sequence[Point], attempts: Sequence[AttemptSpan]
) -> tuple[float, float] | None:
    """The run seconds that a zoomed part of the x axis shows; None: all of the run, or no step of it is in that part.

    ``steps``: the points of STEPS. Of an axis of steps the line before the part and the one after it belong to it.
    """
    if zoom is None or options.x == "time":
        return None if zoom is None else (zoom.since, zoom.until)
    times: list[float] = []
    for span in attempts:
        part = within(steps, span)
        around = [p[0] for p in part if p[2] < zoom.since][-1:] + [p[0] for p in part if p[2] > zoom.until][:1]
        bounds = StepOf(part).bounds
        if bounds is not None and bounds[0] <= zoom.until and bounds[1] >= zoom.since:
            times += [*(p[0] for p in part if zoom.since <= p[2] <= zoom.until), *around]
    return (min(times), max(times)) if times else None


# Charts as files: their numbers as CSV, and a drawing of lines and texts as SVG.

WIDTH, HEIGHT = 720, 300
"""Pixels of a chart in a drawing."""
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 30
DOTS = 600
"""Points of a curve in a drawing."""
COLOUR = "#0f7285"
FAINT, INK, GRID = "#c3cad2", "#2a3038", "#e8ebef"


class RunRows(msgspec.Struct, frozen=True, kw_only=True):
    """What is written of a run: all points by metric as they are kept, its attempts, and when it was created."""

    name: str
    points: Mapping[str, Sequence[Point]]
    attempts: tuple[AttemptSpan, ...] = ()
    wall0: float = 0.0


class ExportRow(NamedTuple):
    """A point of a series, in the unit of the history, which is empty if there is none or it is not known.

    ``seconds``: of the run; ``attempt`` and ``step``: None between two attempts, and where no step is known.
    """

    run: str
    metric: str
    seconds: float
    time_utc: str
    attempt: int | None
    step: int | None
    mean: float
    min: float
    max: float
    unit: str


def series_rows(run: RunRows, metric: str, points: Sequence[Point]) -> Iterator[ExportRow]:
    """A row a point. The points of the steps are those of ``run``."""
    steps = {a.number: StepOf(within(run.points.get(STEPS, ()), a)) for a in run.attempts}
    unit = stored_unit(metric)
    for attempt, t, low, mean, high in _of_attempts(points, run.attempts):
        step = None if attempt is None else steps[attempt](t)
        when = datetime.fromtimestamp(run.wall0 + t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        whole = None if step is None else round(step)
        yield ExportRow(run.name, metric, round(t, 1), when, attempt, whole, mean, low, high, unit)


def csv_lines(rows: Iterable[Iterable[str | float | None]]) -> str:
    """Rows as text; None is an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _of_attempts(
    points: Sequence[Point], attempts: Sequence[AttemptSpan]
) -> Iterator[tuple[int | None, float, float, float, float]]:
    """Each point with the number of its attempt; None between two. One that runs has the newest points too."""
    at = 0
    for t, low, mean, high in points:
        while at < len(attempts) and attempts[at].ended and attempts[at].until_t < t:
            at += 1
        inside = at < len(attempts) and attempts[at].since_t <= t
        yield (attempts[at].number if inside else None), t, low, mean, high


class LinePart(msgspec.Struct, frozen=True):
    """A polyline through pixels."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.0
    dashes: str = ""


class TextPart(msgspec.Struct, frozen=True):
    """A text whose left end, middle or right end (``start``, ``middle``, ``end``) stands at a pixel, on its line."""

    x: float
    y: float
    text: str
    colour: str = INK
    anchor: str = "start"
    size: int = 12


class Drawing(msgspec.Struct, frozen=True):
    """Lines and texts on a white ground."""

    width: int
    height: int
    parts: tuple[LinePart | TextPart, ...]


Labels = Callable[[int, Span], Sequence[tuple[float, str]]]


def drawing(charts: Sequence[ChartView], shown: Span, labels: Labels, *, log: bool = False) -> Drawing:
    """The charts below each other. ``labels(columns, span)``: ticks of the x axis; a column is 8 pixels."""
    parts: list[LinePart | TextPart] = []
    for number, chart in enumerate(charts):
        parts += _chart(chart, number * HEIGHT, shown, labels, log=log)
    return Drawing(WIDTH, HEIGHT * len(charts), tuple(parts))


def _chart(chart: ChartView, top: float, shown: Span, labels: Labels, *, log: bool) -> Iterator[LinePart | TextPart]:
    right, bottom = WIDTH - RIGHT, top + HEIGHT - BOTTOM
    values = [
        [dotted(part, shown.since, shown.until, DOTS, gap=curve.gap) for part in curve.parts] for curve in chart.curves
    ]
    bounds = value_range([v for parts in values for dots in parts for v in dots], log=log)
    low, high = bounds or (0.0, 1.0)
    factor, word = axis_unit(chart.unit, low, high)

    def y_of(value: float) -> float:
        one, two, three = (math.log10(max(v, 1e-300)) if log else v for v in (value, low, high))
        return bottom - (one - two) / max(three - two, 1e-300) * (bottom - top - TOP)

    yield TextPart(LEFT, top + 18, chart.title + (f" ({word})" if word else ""), size=14)
    found = (log_ticks if log else ticks)(low / factor, high / factor, 5)
    step = found[1] - found[0] if len(found) > 1 and not log else 0.0
    for value in found:
        y = y_of(value * factor)
        yield LinePart(((LEFT, y), (right, y)), GRID)
        yield TextPart(LEFT - 6, y + 4, tick_text(value, step), anchor="end", size=11)
    for x, label in labels((WIDTH - LEFT - RIGHT) // 8, shown):
        at = LEFT + (x - shown.since) / max(shown.length, 1e-9) * (right - LEFT)
        yield LinePart(((at, bottom), (at, bottom + 4)), INK)
        yield TextPart(at, bottom + 17, label, anchor="middle", size=11)
    yield LinePart(((LEFT, top + TOP), (LEFT, bottom), (right, bottom)), INK)
    for curve, parts in zip(chart.curves, values, strict=True):
        for dots in parts:
            for run in _runs(dots):
                pixels = tuple((LEFT + (i + 0.5) / DOTS * (right - LEFT), round(y_of(v), 1)) for i, v in run)
                yield LinePart(pixels, FAINT, 1.0) if curve.faint else LinePart(pixels, COLOUR, 1.6)


def _runs(dots: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Neighbouring values, gap by gap."""
    run: list[tuple[int, float]] = []
    for i, value in enumerate(dots):
        if value is not None and math.isfinite(value):
            run.append((i, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def svg_text(picture: Drawing) -> str:
    """An SVG page without external parts."""
    size = f'width="{picture.width}" height="{picture.height}"'
    box = f'viewBox="0 0 {picture.width} {picture.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {size} font-family="system-ui, sans-serif">',
        f'<rect {size} fill="#ffffff"/>',
    ]
    for part in picture.parts:
        if isinstance(part, LinePart):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in part.points)
            dashes = f' stroke-dasharray="{part.dashes}"' if part.dashes else ""
            lines.append(
                f'<polyline points="{points}" fill="none" stroke="{part.colour}" stroke-width="{part.width}"{dashes}/>'
            )
        else:
            lines.append(
                f'<text x="{part.x:.1f}" y="{part.y:.1f}" font-size="{part.size}" text-anchor="{part.anchor}" '
                f'fill="{part.colour}">{escape(part.text, quote=False)}</text>'
            )
    return "\n".join([*lines, "</svg>", ""])
