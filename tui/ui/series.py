"""Histories for charts, fetched only when a new column of them is complete."""

import math
from collections.abc import Callable, Sequence

import msgspec

from ...core.model.ports.screen import Point
from ...core.views.charts.curve import spiked

Fetch = Callable[[str, float, float, int], Sequence[Point]]
REST_S = 4.0
"""A chart is not fetched more often than this, however short its columns: then two of them are drawn at once."""


class SeriesQuery(msgspec.Struct, frozen=True):
    """A chart that is on the screen: ``columns`` values of a metric from ``since_t`` to ``until_t`` (run seconds).

    ``window_s`` instead of the two: the newest stretch of that length.
    """

    metric: str
    columns: int
    window_s: float | None = None
    since_t: float = 0.0
    until_t: float = 0.0


def span_of(series_query: SeriesQuery, now_t: float) -> tuple[float, float]:
    """(since, until) that is fetched for a query at ``now_t``, run seconds."""
    if series_query.window_s is None:
        return series_query.since_t, series_query.until_t
    grain = max(series_query.window_s / series_query.columns, REST_S)
    # Only whole columns, and a second for the history to reach the disk: the newest column is never half empty.
    until = (now_t - 1.0) // grain * grain
    return until - series_query.window_s, until


ALIKE_S = REST_S + 1.0
"""A window that moved by less only followed the clock."""
GROWN = 1.5
"""So did one that begins where it began and became longer by no more than this factor: the run is young."""


def same_charts(before: Sequence[SeriesQuery], after: Sequence[SeriesQuery]) -> bool:
    """The same charts of the same time, except for the seconds that passed: the next regular poll is soon enough."""
    return len(before) == len(after) and all(
        (a.metric, a.window_s) == (b.metric, b.window_s) and (_grown(a, b) or _moved(a, b))
        for a, b in zip(before, after, strict=True)
    )


def _moved(a: SeriesQuery, b: SeriesQuery) -> bool:
    return (
        (a.columns == b.columns or math.isclose(_column_s(a), _column_s(b), rel_tol=0.01))
        and abs(a.since_t - b.since_t) < ALIKE_S
        and abs(a.until_t - b.until_t) < ALIKE_S
    )


def _grown(a: SeriesQuery, b: SeriesQuery) -> bool:
    return a.window_s is None and a.since_t == b.since_t and a.until_t <= b.until_t <= GROWN * a.until_t


def _column_s(query: SeriesQuery) -> float:
    """Seconds of a column."""
    return (query.window_s or query.until_t - query.since_t) / max(1, query.columns)


Columns = tuple[float | None, ...]
SETTLED_S = 10.0
"""Older values do not change any more."""


class SeriesCache:
    """Answers queries; used by one thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, float | None], tuple[tuple[float, ...], Columns]] = {}

    def get(self, series_query: SeriesQuery, now_t: float, fetch: Fetch) -> Columns:
        """Values by column, oldest first, None if nothing was read: the mean, or the extreme if it is a spike."""
        if series_query.columns < 1:
            return ()
        since, until = span_of(series_query, now_t)
        width = max((until - since) / series_query.columns, 1e-3)
        stamp: tuple[float, ...] = (since, until)
        if series_query.window_s is None and until > now_t - SETTLED_S:
            stamp = (since, until, now_t // max(width, REST_S))
        key = (series_query.metric, series_query.columns, series_query.window_s)
        kept = self._kept.get(key)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        values = _columns(
            fetch(series_query.metric, since, until, series_query.columns), since, width, series_query.columns
        )
        if kept is not None and kept[1] == values:
            values = kept[1]
        self._kept[key] = (stamp, values)
        return values

    def forget(self, series_queries: Sequence[SeriesQuery]) -> None:
        """Drop what is no longer on the screen."""
        wanted = {(w.metric, w.columns, w.window_s) for w in series_queries}
        self._kept = {key: kept for key, kept in self._kept.items() if key in wanted}


def stretch(values: Columns, cells: int) -> Columns:
    """The same values over more cells, each repeated evenly."""
    if not values or len(values) >= cells:
        return values
    return tuple(values[i * len(values) // cells] for i in range(cells))


def placed(values: Columns, series_query: SeriesQuery, since_t: float, step_s: float, cells: int) -> Columns:
    """The values of a query's answer at ``cells`` times ``step_s`` apart from ``since_t``.

    Interpolated between known neighbours; a gap stays a gap, and so does everything outside the answer.
    """
    width = (series_query.until_t - series_query.since_t) / max(len(values), 1)
    if not values or width <= 0:
        return (None,) * cells
    found: list[float | None] = []
    for i in range(cells):
        at = (since_t + (i + 0.5) * step_s - series_query.since_t) / width - 0.5
        if not -0.5 - 1e-6 <= at <= len(values) - 0.5 + 1e-6:
            found.append(None)
            continue
        left = max(0, min(math.floor(at + 1e-6), len(values) - 1))
        share = at - left
        one, two = values[left], values[min(left + 1, len(values) - 1)]
        if one is None or two is None or share <= 1e-6:
            found.append(one if share < 0.5 else two)
        else:
            found.append(one + (two - one) * share)
    return tuple(found)


def _columns(points: Sequence[Point], since: float, width: float, columns: int) -> Columns:
    """Points sorted into columns; a gap of a single column between two values is bridged (samples jitter)."""
    values: list[float | None] = [None] * columns
    for t, value in zip((p[0] for p in points), spiked(points), strict=True):
        index = int((t - since) / width)
        if 0 <= index < columns:
            values[index] = value
    for i in range(1, columns - 1):
        before, after = values[i - 1], values[i + 1]
        if values[i] is None and before is not None and after is not None:
            values[i] = (before + after) / 2
    return tuple(values)
