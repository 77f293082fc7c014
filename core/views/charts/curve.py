"""Points of a metric as values at evenly spaced dots: merged by extremes, joined by lines, apart at gaps."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from ...model.ports.screen import Point

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


def _x(point: Point) -> float:
    return point[0]
