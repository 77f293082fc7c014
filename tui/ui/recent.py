"""The part of the run that the charts show: the newest minutes, those around an event, or a zoomed part."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from ...core.views import quantity
from .chart import Columns, SeriesQuery, span_of

# There is one zoom: the sparklines always show the window, the timeline shows it after zooming.

LENGTHS_S = (60.0, 120.0, 300.0, 600.0, 1800.0, 7200.0, 28800.0, 86400.0, 259200.0, 604800.0)
"""The zoom levels; after the last one comes the whole run."""
WHOLE = len(LENGTHS_S)
USUAL_S = 600.0
COLUMN_LEAST_S = 2.0
"""Narrower columns would show the jitter of the sampling as gaps."""
BEFORE_EVENT = 0.75
"""Position of the selected event from the left edge: what led to it matters more than what followed."""
GRAIN_SHARE = 1 / 120
"""The right edge of a growing window moves in steps of this share of its length, not with every poll."""
YOUNG_PARTS = 4
"""The charts of a young run are at least two thirds full, and repainted as a whole twice while it doubles."""


class TimeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Times in run seconds. ``scrolls``: the newest ``length_s``, whatever the time is; else from ``since_t`` on.

    ``marks``: when incidents began; ``cursor_t``: time of the selected event; ``words``: the window in words.
    """

    since_t: float = 0.0
    length_s: float = USUAL_S
    scrolls: bool = True
    now_t: float = 0.0
    marks: tuple[float, ...] = ()
    cursor_t: float | None = None
    words: str = ""

    @property
    def until_t(self) -> float:
        return self.since_t + self.length_s

    def series_query(self, metric: str, cells: int) -> SeriesQuery:
        """The query for a metric over the window, for a chart of this many cells."""
        columns = max(1, min(cells, int(self.length_s / COLUMN_LEAST_S)))
        if self.scrolls:
            return SeriesQuery(metric, columns, self.length_s)
        return SeriesQuery(metric, columns, None, self.since_t, self.until_t)

    def marked(self, cells: int) -> dict[int, str]:
        """Cells of incidents and of the selected event, with the style of each."""
        if cells < 1 or not (self.marks or self.cursor_t is not None):
            return {}
        since, until = span_of(self.series_query("", cells), self.now_t)

        def cell(t: float) -> int | None:
            at = math.floor((t - since) / (until - since) * cells)
            return at if 0 <= at < cells else None

        found = {c: "mark" for c in map(cell, self.marks) if c is not None}
        at = None if self.cursor_t is None else cell(self.cursor_t)
        return found if at is None else found | {at: "cursor"}


class Charts(msgspec.Struct, frozen=True):
    """The charts that are drawn: their time, and the values that were read for it."""

    window: TimeWindow = TimeWindow()
    series: Mapping[SeriesQuery, Columns] = {}

    def followed_by(
        self, series: Mapping[SeriesQuery, Columns], window: TimeWindow, queries: Sequence[SeriesQuery]
    ) -> "Charts":
        """The next ones, as soon as one of their ``queries`` is answered; until then these, and not empty ones.

        If nothing at all could be read, nothing is drawn.
        """
        waits = bool(self.series and series and queries) and not any(query in series for query in queries)
        return self if waits else Charts(window, series)


def window(
    zoom: int | None,
    *,
    now_t: float,
    over: bool,
    cursor_t: float | None = None,
    marks: Sequence[float] = (),
    wall0: float = 0.0,
) -> TimeWindow:
    """The window for a zoom (index of LENGTHS_S, WHOLE, None = the usual). ``now_t``: the present, or the run's end."""
    end_t = max(now_t, 1.0)

    def made(since_t: float, length_s: float, words: str, *, scrolls: bool = False) -> TimeWindow:
        return TimeWindow(
            since_t=max(0.0, since_t), length_s=length_s, scrolls=scrolls, now_t=now_t, marks=tuple(marks),
            cursor_t=cursor_t, words=words,
        )  # fmt: skip

    if zoom == WHOLE:
        return made(0.0, _grown(end_t), "the whole run")
    length_s = USUAL_S if zoom is None else LENGTHS_S[zoom]
    long = quantity.duration(length_s)
    if cursor_t is not None:
        return made(cursor_t - length_s * BEFORE_EVENT, length_s, f"{long} about {_clock(wall0 + cursor_t)}")
    if end_t < length_s:
        # A young run fills its charts from the left: they are repainted one cell at a time, until the span grows.
        shown_s = length_s if zoom is not None else min(length_s, _grown(end_t, YOUNG_PARTS))
        return made(0.0, shown_s, "since the start")
    if over:
        return made(end_t - length_s, length_s, f"{long} until {_clock(wall0 + end_t)}")
    grain = max(length_s * GRAIN_SHARE, COLUMN_LEAST_S)
    return made(math.ceil(end_t / grain) * grain - length_s, length_s, f"last {long}", scrolls=True)


def zoomed_by(zoom: int | None, steps: int, now_t: float) -> int:
    """The zoom this many steps longer (positive) or shorter; lengths beyond the run's own mean the whole run."""
    longest = next((i for i, s in enumerate(LENGTHS_S) if s >= now_t), WHOLE)
    at = LENGTHS_S.index(USUAL_S) if zoom is None else min(zoom, longest)
    at = min(at, longest) + steps
    return WHOLE if at >= longest else max(0, at)


def _grown(span_s: float, parts: int = 64) -> float:
    """Rounded up, so that it does not grow with every poll; ``parts``: of its doubling, how often it grows."""
    grain = max(2.0 ** math.ceil(math.log2(span_s)) / parts, COLUMN_LEAST_S)
    return math.ceil(span_s / grain) * grain


def _clock(wall: float) -> str:
    return quantity.clock(wall, seconds=True)
