"""Charts: attempts on the x axis, its ticks, curves, smoothing, zoom."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from ..model.run import HALTED_STATES
from ..model.screen_ports import Point
from ..model.story import RunStory
from . import quantity
from .state.concerns import SILENT

# Attempts on the x axis: one after another or over each other, by time or by step.

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


def attempt_spans(story: RunStory, now_t: float) -> tuple[AttemptSpan, ...]:
    """All attempts, oldest first."""
    starts = [a.t for a in story.attempts]
    stills = tuple(_stills(story))
    found = []
    for attempt, next_t in itertools.zip_longest(story.attempts, starts[1:], fillvalue=max(now_t, story.t)):
        assert not isinstance(attempt, float)
        end_t = next_t if attempt.ended_t is None else min(attempt.ended_t, next_t)
        ended = attempt.ended_t is not None or attempt is not story.attempts[-1]
        until_t = max(end_t, attempt.t)
        still = tuple((since, until) for since, until in stills if since >= attempt.t and until <= until_t)
        found.append(AttemptSpan(attempt.number, attempt.t, until_t, ended, still))
    return tuple(found)


def _stills(story: RunStory) -> Iterator[Stretch]:
    """When a run was paused or silent, from the last step on, if that is over."""
    for span, after in itertools.pairwise(story.states):
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


def without_stills(points: Sequence[Point], span: AttemptSpan) -> list[tuple[Point, ...]]:
    """The points of an attempt in parts: none in a stretch without steps, where the last value was only repeated."""
    parts: list[tuple[Point, ...]] = [tuple(points)]
    for since, until in sorted(span.still):
        last = parts.pop()
        parts += [last[: bisect_right(last, since, key=_x)], last[bisect_left(last, until, key=_x) :]]
    return [part for part in parts if part]


def until_last_step(points: Sequence[Point], steps: Sequence[Point]) -> tuple[Point, ...]:
    """Without the repetitions of the last value after the last step. ``steps``: of the same attempt."""
    last_t = last_step_t(steps)
    if last_t is None:
        return tuple(points)
    return tuple(points[: bisect_right(points, last_t, key=_x)])


class StepOf:
    """The step at a time of one attempt, between its points interpolated; None before its first and after its last."""

    def __init__(self, steps: Sequence[Point]) -> None:
        last_t = last_step_t(steps)
        known = [p for p in steps if last_t is not None and p[0] <= last_t]
        self._times = [p[0] for p in known]
        self._steps = list(itertools.accumulate((p[2] for p in known), max))
        if self._steps:
            self._steps[-1] = max(self._steps[-1], known[-1][3])

    def __call__(self, t: float, slack_s: float = 0.0) -> float | None:
        """``slack_s``: how far outside a time gets the first or last step."""
        times, steps = self._times, self._steps
        if not times or not times[0] - slack_s <= t <= times[-1] + slack_s:
            return None
        at = bisect_right(times, t)
        if at == 0:
            return steps[0]
        if at == len(times):
            return steps[-1]
        share = (t - times[at - 1]) / (times[at] - times[at - 1])
        return steps[at - 1] + share * (steps[at] - steps[at - 1])

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The first and the last step."""
        return (self._steps[0], self._steps[-1]) if self._steps else None


def by_step(points: Sequence[Point], step_of: StepOf) -> tuple[Point, ...]:
    """The points of an attempt at their steps; those that belong to no step are left out."""
    found = []
    newest = -math.inf
    for t, low, mean, high in points:
        step = step_of(t)
        if step is not None and step >= newest:
            found.append((step, low, mean, high))
            newest = step
    return tuple(found)


def joined(parts: Sequence[Sequence[Point]]) -> tuple[Point, ...]:
    """Attempts by step as one curve: from where a later one begins, it replaces the earlier ones."""
    found: list[Point] = []
    for part in parts:
        if part:
            del found[bisect_left(found, part[0][0], key=_x) :]
            found += part
    return tuple(found)


def silences(
    steps: Sequence[tuple[float, float | None]], attempts: Sequence[AttemptSpan], still_since_t: float | None = None
) -> tuple[Stretch, ...]:
    """The stretches without steps: paused, silent, and between the last step of an attempt and the next launch.

    ``until`` is infinite if there is no next one yet. ``steps``: (run seconds, step) on a grid; without any step of an
    attempt its end counts. ``still_since_t``: when the newest step of the newest attempt was seen, if no further one
    came when it was due; None = it goes on.
    """
    found: list[Stretch] = []
    for attempt, after in itertools.zip_longest(attempts, attempts[1:]):
        assert attempt is not None, "there are fewer next ones"
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


def _x(point: Point) -> float:
    return point[0]


# Ticks of the axes: round numbers with their unit, decades of a log scale, steps, times since the start.

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


def log_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Powers of ten between two positive values, every second or third one if they are many; few: 1, 2, 5 of each."""
    if low <= 0 or high <= low or most < 1:
        return ()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**n for n in range(first, last + 1) if low <= 10.0**n <= high]
    if len(decades) >= 2:
        apart = math.ceil(len(decades) / most)
        return tuple(decades[::apart])
    found = [m * 10.0**n for n in range(first, last + 1) for m in (1, 2, 5) if low <= m * 10.0**n <= high]
    return tuple(found[:: math.ceil(len(found) / most)]) if len(found) > 1 else ticks(low, high, most)


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


def step_label(step: float) -> str:
    """A step on an axis: 800, 5,000, 12k, 1.25M."""
    for factor, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(step) >= factor:
            shown = step / (1e3 if sign == "k" else factor)
            return f"{shown:.4g}{sign}"
    return f"{step:,.0f}" if step == round(step) else f"{step:.4g}"


# Points of a metric as values at evenly spaced dots: merged by extremes, joined by lines, apart at gaps.

Values = tuple[float | None, ...]
"""One value a dot; None is a gap."""
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


def merged(points: Sequence[Point], since: float, width: float, dots: int) -> dict[int, Point]:
    """The points of each dot as one (mean x, min, mean, max). ``width``: of a dot. Points are ordered by x."""
    first = bisect_left(points, since, key=_x)
    last = bisect_right(points, since + width * dots, key=_x)
    found: dict[int, Point] = {}
    here, count = -1, 0
    sum_x = sum_mean = lowest = highest = 0.0
    for x, low, mean, high in points[first:last]:
        dot = int((x - since) / width)
        if dot != here:
            if count:
                found[min(here, dots - 1)] = (sum_x / count, lowest, sum_mean / count, highest)
            here, count = dot, 1
            sum_x, sum_mean, lowest, highest = x, mean, low, high
            continue
        count += 1
        sum_x += x
        sum_mean += mean
        if low < lowest:  # noqa: PLR1730  three times as fast as a call, and this is the loop of every chart
            lowest = low
        if high > highest:  # noqa: PLR1730
            highest = high
    if count:
        found[min(here, dots - 1)] = (sum_x / count, lowest, sum_mean / count, highest)
    return found


def usual_distance(points: Sequence[Point]) -> float:
    """The median distance of neighbouring points; 0 of fewer than two."""
    gaps = sorted(b[0] - a[0] for a, b in pairwise(points))
    return gaps[len(gaps) // 2] if gaps else 0.0


def dotted(points: Sequence[Point], since: float, until: float, dots: int, *, gap: float = math.inf) -> Values:
    """A value for each of ``dots`` evenly spaced dots from ``since`` to ``until``.

    Dots between two points lie on the line between them, unless the points are more than ``gap`` apart. Points just
    outside are used for the lines at the edges.
    """
    width = (until - since) / max(dots, 1)
    if dots < 1 or width <= 0 or not points:
        return (None,) * max(dots, 0)
    inside = merged(points, since, width, dots)
    order = sorted(inside)
    values: list[float | None] = [None] * dots
    for dot, value in zip(order, spiked([inside[d] for d in order]), strict=True):
        values[dot] = value
    places: list[tuple[float, float, float]] = [
        (since + (dot + 0.5) * width, inside[dot][0], values[dot] or 0.0) for dot in order
    ]
    first, last = bisect_left(points, since, key=_x), bisect_right(points, until, key=_x)
    if first > 0:
        places.insert(0, (points[first - 1][0], points[first - 1][0], points[first - 1][2]))
    if last < len(points):
        places.append((points[last][0], points[last][0], points[last][2]))
    for (a, ax, one), (b, bx, two) in pairwise(places):
        if bx - ax > max(gap, width):
            continue
        for dot in range(
            max(0, math.ceil((a - since) / width - 0.5)), min(dots, math.floor((b - since) / width + 0.5))
        ):
            if values[dot] is None:
                values[dot] = one + (two - one) * ((since + (dot + 0.5) * width - a) / (b - a))
    return tuple(values)


def nearest(points: Sequence[Point], x: float, within: float = math.inf) -> Point | None:
    """The point nearest to ``x``, at most ``within`` away."""
    at = bisect_left(points, x, key=_x)
    near = min(points[max(0, at - 1) : at + 1], key=lambda p: abs(p[0] - x), default=None)
    return near if near is not None and abs(near[0] - x) <= within else None


def value_range(
    values: Sequence[float | None], *, log: bool = False, cut_share: float = 0.0
) -> tuple[float, float] | None:
    """(low, high) of the finite values; ``cut_share``: how many of the highest may be cut off. None without values.

    ``log``: of the positive ones. A range of one value has it in the middle.
    """
    known = sorted(v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log))
    if not known:
        return None
    low, high = known[0], known[min(len(known) - 1, math.ceil(len(known) * (1 - cut_share)))]
    if high - low < abs(high) * 1e-3 or high == low:
        if log:
            return low / 1.2, high * 1.2
        if high == low == 0:
            return 0.0, 1.0
        middle = (high + low) / 2
        half = max(abs(middle) * 0.05, 1e-9)
        return middle - half, middle + half
    return low, high


# Smoothing of curves, as TensorBoard and wandb do it: an exponential mean that begins at the first value.

LEVELS = (0.0, 0.6, 0.9, 0.97)
"""Shares of the value before that the key ``s`` goes through."""


def smoothed(points: Sequence[Point], share: float) -> tuple[Point, ...]:
    """The same points with exponential means, corrected for the few values at the start. ``share`` 0: as they are.

    The weight of the past is per point, so a chart of many points is smoothed over a shorter time.
    """
    if share <= 0:
        return tuple(points)
    found: list[Point] = []
    mean = weight = 0.0
    for x, _, value, _ in points:
        if not math.isfinite(value):
            continue
        mean = mean * share + value * (1 - share)
        weight = weight * share + (1 - share)
        found.append((x, mean / weight, mean / weight, mean / weight))
    return tuple(found)


# The visible part of the x axis: zoomed about a place, moved, or all of it.

CLOSEST = 8.0
"""Fewest units of the axis (seconds, steps) that are shown."""
LEAST_GRAIN = 10.0
"""The axis of a young run grows by so many seconds or steps."""


class Span(msgspec.Struct, frozen=True):
    """From ``since`` to ``until`` on the x axis."""

    since: float
    until: float

    @property
    def length(self) -> float:
        return self.until - self.since


def zoomed(shown: Span, whole: Span, factor: float, about: float | None = None) -> Span | None:
    """``factor`` below 1: closer. ``about`` keeps its place on the screen; None = the middle. None = the whole axis."""
    length = max(CLOSEST, shown.length * factor)
    if length >= whole.length * 0.999:
        return None
    about = min(max((shown.since + shown.until) / 2 if about is None else about, shown.since), shown.until)
    share = (about - shown.since) / max(shown.length, 1e-9)
    return _inside(about - share * length, length, whole)


def moved(shown: Span, whole: Span, share: float) -> Span:
    """By a share of what is shown, to the right if positive, up to the end of the axis."""
    return _inside(shown.since + share * shown.length, shown.length, whole)


def at_end(shown: Span, whole: Span) -> bool:
    """Whether the newest values are visible: then the span follows them."""
    return shown.until >= whole.until - max(0.02 * shown.length, 1e-9)


def showing(shown: Span, whole: Span, x: float) -> Span:
    """The span moved as little as needed to show ``x``."""
    if shown.since <= x <= shown.until:
        return shown
    since = x - shown.length * 0.05 if x < shown.since else x - shown.length * 0.95
    return _inside(since, shown.length, whole)


def grown(end: float, length: float) -> float:
    """Rounded up by a small share of the ``length`` that is visible: an axis that ends now moves rarely.

    Each move draws every chart anew, 40 kB on a large terminal.
    """
    grain = max(2.0 ** math.ceil(math.log2(max(length, 1.0))) / 128, LEAST_GRAIN)
    return math.ceil(end / grain) * grain


def _inside(since: float, length: float, whole: Span) -> Span:
    since = max(whole.since, min(since, whole.until - length))
    return Span(since, since + length)
