"""Charts over the time of a run: its attempts, ticks, values by dot, the charts of a report."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter

import msgspec

from ..model.ports import Point
from ..model.run import HALTED_STATES
from ..model.story import RunStory
from . import quantity
from .metrics import axis_unit, shown_points, tick_text, unit_of, words_of
from .state.concerns import SILENT

_x = itemgetter(0)
Stretch = tuple[float, float]
"""(since, until) in run seconds."""


class AttemptSpan(msgspec.Struct, frozen=True):
    """An attempt from its launch to its end, or to the next launch, or to now. Run seconds.

    ``ended``: it is over, so nothing trains until the next launch. ``still``: stretches without steps after which it
    went on, paused or silent.
    """

    number: int
    since_t: float
    until_t: float
    ended: bool = False
    still: tuple[Stretch, ...] = ()


def attempt_spans(story: RunStory, now_t: float, until_t: float | None = None) -> tuple[AttemptSpan, ...]:
    """All attempts, oldest first. ``until_t``: of one that goes on; None = now, or the last record."""
    last_t = max(now_t, story.t) if until_t is None else until_t
    nexts, stills = [*(a.t for a in story.attempts[1:]), last_t], tuple(_stills(story))
    found = []
    for attempt, next_t in zip(story.attempts, nexts, strict=False):
        ended = attempt.ended_t is not None or attempt is not story.attempts[-1]
        until = max(attempt.t, next_t if attempt.ended_t is None else min(attempt.ended_t, next_t))
        still = tuple((since, end) for since, end in stills if since >= attempt.t and end <= until)
        found.append(AttemptSpan(attempt.number, attempt.t, until, ended, still))
    return tuple(found)


def _stills(story: RunStory) -> Iterator[Stretch]:
    """When a run was paused or silent, from the last step on, if that is over."""
    for span, after in pairwise(story.states):
        if span.state in HALTED_STATES:
            yield span.t, after.t
    for incident in story.incidents:
        if incident.kind in SILENT and incident.closed_t is not None:
            yield incident.t - (incident.detect_s or 0.0), incident.closed_t


def within(points: Sequence[Point], span: AttemptSpan) -> tuple[Point, ...]:
    """The points of an attempt."""
    first, last = bisect_left(points, span.since_t, key=_x), bisect_right(points, span.until_t, key=_x)
    return tuple(points[first:last])


def last_step_t(steps: Sequence[Point]) -> float | None:
    """When the newest step of an attempt was seen: the first of the points with its highest step. None without any."""
    if not steps:
        return None
    highest = max(p[3] for p in steps)
    return next(p[0] for p in steps if p[3] >= highest)


def silences(
    steps: Sequence[tuple[float, float | None]], attempts: Sequence[AttemptSpan], still_since_t: float | None = None
) -> tuple[Stretch, ...]:
    """The stretches without steps: paused, silent, and between the last step of an attempt and the next launch.

    ``until`` is infinite if there is no next one yet. ``steps``: (run seconds, step) on a grid; without any step of an
    attempt its end counts. ``still_since_t``: when the newest step of the newest attempt was seen, if no further one
    came when it was due; None = it goes on.
    """
    found: list[Stretch] = []
    for attempt, after in zip(attempts, [*attempts[1:], None], strict=False):
        if after is None and not attempt.ended:
            continue
        part = [(t, s) for t, s in steps if s is not None and attempt.since_t <= t <= attempt.until_t]
        highest = max((s for _, s in part), default=0.0)
        last_t = next((t for t, s in part if s >= highest), attempt.until_t)
        found.append((last_t, math.inf if after is None else after.since_t))
    if still_since_t is not None and attempts and still_since_t >= attempts[-1].since_t:
        if attempts[-1].ended:
            still_since_t = min(still_since_t, found.pop()[0])
        found.append((still_since_t, math.inf))
    found += [still for attempt in attempts for still in attempt.still]
    return tuple((since, until) for since, until in found if until > since)


# Ticks of the axes: round numbers, times since the start.

ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
SPANS_S = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
)  # fmt: skip
"""Distances of ticks in time, seconds."""


def round_step(span: float, most: int) -> float:
    """The smallest round number that divides ``span`` into at most ``most`` parts."""
    needed = span / max(most, 1)
    if needed <= 0 or not math.isfinite(needed):
        return 1.0
    power = 10.0 ** math.floor(math.log10(needed))
    return next((m * power for m in ROUND if m * power >= needed * (1 - 1e-9)), 10.0 * power)


def ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round values from ``low`` to ``high``, at most ``most`` and one."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most < 1:
        return ()
    step = round_step(high - low, most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(n * step for n in range(first, last + 1))


def span_ticks(since_s: float, until_s: float, most: int) -> tuple[tuple[float, str], ...]:
    """(seconds, label) of round durations: 0, 20 min, 40 min; 1 h, 1 h 30."""
    if until_s <= since_s or most < 1:
        return ()
    needed = (until_s - since_s) / most
    step = next((s for s in SPANS_S if s >= needed), SPANS_S[-1])
    step *= max(1, math.ceil(needed / step))
    first = math.ceil(since_s / step - 1e-9)
    return tuple((n * step, span_label(n * step)) for n in range(first, math.floor(until_s / step + 1e-9) + 1))


def span_label(seconds: float) -> str:
    """A duration as short as a tick: 0, 30 s, 20 min, 1:30 h, 3 d."""
    whole = round(seconds)
    if whole == 0:
        return "0"
    if abs(whole) < quantity.MINUTE_S or (abs(whole) < quantity.HOUR_S and whole % quantity.MINUTE_S):
        minutes, rest = divmod(whole, quantity.MINUTE_S)
        return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"
    if abs(whole) < quantity.HOUR_S:
        return f"{whole // quantity.MINUTE_S} min"
    hours, rest = divmod(whole, quantity.HOUR_S)
    if abs(whole) >= 2 * quantity.DAY_S and not rest and hours % 24 == 0:
        return f"{hours // 24} d"
    return f"{hours}:{rest // quantity.MINUTE_S:02d} h" if rest else f"{hours} h"


# Points of a metric as values at evenly spaced dots: merged by extremes, joined by lines, apart at gaps.

SPIKE = 4.0
"""How many times the usual distance from the mean makes an extreme of a column a spike."""
SPIKE_SHARE = 0.02
"""A spike is at least this share of the largest value: jitter of a constant value is none."""
GAP = 3.5
"""Points more than this many usual distances apart are not joined: nothing was read between them."""


def spiked(points: Sequence[Point]) -> list[float]:
    """One value a point (x, low, mean, high): its mean, or its extreme if that exceeds the usual spread.

    So a second of full memory, or of an idle GPU, stays visible however long the column is, and plain noise does not
    become a band.
    """
    from statistics import median  # slow to import, and not needed for the first paint

    finite = [p for p in points if math.isfinite(p[1]) and math.isfinite(p[3])]
    if not finite:
        return [p[2] for p in points]
    least = SPIKE_SHARE * max(abs(p[3]) for p in finite)
    up = max(SPIKE * median(p[3] - p[2] for p in finite), least)
    down = max(SPIKE * median(p[2] - p[1] for p in finite), least)
    values = []
    for _, low, mean, high in points:
        above, below = high - mean, mean - low
        if above > up and above * down >= below * up:
            values.append(high)
        elif below > down:
            values.append(low)
        else:
            values.append(mean)
    return values


def usual_distance(points: Sequence[Point]) -> float:
    """The median distance of neighbouring points; 0 of fewer than two."""
    gaps = sorted(b[0] - a[0] for a, b in pairwise(points))
    return gaps[len(gaps) // 2] if gaps else 0.0


def value_range(values: Sequence[float | None], *, cut_share: float = 0.0) -> tuple[float, float] | None:
    """(low, high) of the finite values; ``cut_share``: how many of the highest may be cut off. None without values.

    A range of one value has it in the middle.
    """
    known = sorted(v for v in values if v is not None and math.isfinite(v))
    if not known:
        return None
    low, high = known[0], known[min(len(known) - 1, math.ceil(len(known) * (1 - cut_share)))]
    if high - low >= abs(high) * 1e-3 and high != low:
        return low, high
    if high == low == 0:
        return 0.0, 1.0
    middle = low / 2 + high / 2
    half = max(abs(middle) * 0.05, 1e-9)
    return middle - half, middle + half


STEPS = "progress.step"


# The charts of a report as an SVG page without external parts.

WIDTH, HEIGHT = 720, 300
"""Pixels of a chart."""
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 30
TICK_COLUMNS, TICK_PIXELS = 12, 8
CURVE, INK, GRID, DANGER = "#0f7285", "#2a3038", "#e8ebef", "#b8302a"


def charts_svg(
    points: Mapping[str, Sequence[Point]], attempts: Sequence[AttemptSpan], incidents: Sequence[float], end_t: float
) -> str:
    """The metrics below each other from the start to ``end_t``; "" without values. ``incidents``: when they began."""
    drawn = [metric for metric, known in points.items() if known and metric != STEPS]
    if not drawn:
        return ""
    height = HEIGHT * len(drawn)
    size = f'width="{WIDTH}" height="{height}"'
    box = f'viewBox="0 0 {WIDTH} {height}" {size}'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="system-ui, sans-serif">',
        f'<rect {size} fill="#ffffff"/>',
    ]
    for number, metric in enumerate(drawn):
        top = number * HEIGHT
        for t in incidents:
            x = LEFT + t / end_t * (WIDTH - LEFT - RIGHT)
            lines.append(_line(((x, top + TOP), (x, top + HEIGHT - BOTTOM)), DANGER, 1.0, ' stroke-dasharray="3 3"'))
        unit = unit_of(metric, points[metric])
        parts = _parts(metric, shown_points(metric, points[metric], unit), points.get(STEPS, ()), attempts)
        lines += _chart(metric, unit, parts, top, end_t)
    return "\n".join([*lines, "</svg>", ""])


def _chart(metric: str, unit: str, parts: Sequence[Sequence[Point]], top: float, end_t: float) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, top + HEIGHT - BOTTOM
    curves = [list(zip((p[0] for p in part), spiked(part), strict=True)) for part in parts]
    low, high = value_range([v for curve in curves for _, v in curve]) or (0.0, 1.0)
    factor, word = axis_unit(unit, low, high)

    def y_of(value: float) -> float:
        return bottom - (value - low) / max(high - low, 1e-300) * (bottom - top - TOP)

    yield _text(LEFT, top + 18, words_of(metric).title + (f" ({word})" if word else ""), "start", 14)
    found = ticks(low / factor, high / factor, 5)
    for value in found:
        y = y_of(value * factor)
        yield _line(((LEFT, y), (right, y)), GRID)
        yield _text(LEFT - 6, y + 4, tick_text(value, found[1] - found[0] if len(found) > 1 else 0.0), "end")
    for x, label in span_ticks(0.0, end_t, (right - LEFT) // TICK_PIXELS // TICK_COLUMNS):
        at = LEFT + x / end_t * (right - LEFT)
        yield _line(((at, bottom), (at, bottom + 4)), INK)
        yield _text(at, bottom + 17, label, "middle")
    yield _line(((LEFT, top + TOP), (LEFT, bottom), (right, bottom)), INK)
    gap = math.inf if metric.startswith("metric.") else GAP * max(map(usual_distance, parts), default=0.0)
    for curve in curves:
        cuts = [at for at, (a, b) in enumerate(pairwise(curve), 1) if b[0] - a[0] > gap]
        for first, last in pairwise((0, *cuts, len(curve))):
            yield _line([(LEFT + t / end_t * (right - LEFT), y_of(v)) for t, v in curve[first:last]], CURVE, 1.6)


def _parts(
    metric: str, points: tuple[Point, ...], steps: Sequence[Point], attempts: Sequence[AttemptSpan]
) -> list[tuple[Point, ...]]:
    """The points that are joined by lines: a curve of the training is apart where nothing was trained."""
    if not attempts or metric.partition(".")[0] not in {"progress", "metric"}:
        return [points]
    parts: list[tuple[Point, ...]] = []
    for span in attempts:
        part, last_t = within(points, span), last_step_t(within(steps, span))
        if metric.startswith("progress.") and last_t is not None:  # after it the last value is only repeated
            part = part[: bisect_right(part, last_t, key=_x)]
        for since, until in sorted(span.still):  # so it is in a stretch without steps
            parts.append(part[: bisect_right(part, since, key=_x)])
            part = part[bisect_left(part, until, key=_x) :]
        parts.append(part)
    return [part for part in parts if part]


def _line(points: Sequence[tuple[float, float]], colour: str, width: float = 1.0, more: str = "") -> str:
    through = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{through}" fill="none" stroke="{colour}" stroke-width="{width}"{more}/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    from html import escape

    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{INK}">{escape(text, quote=False)}</text>'
