"""Charts made of characters: sparklines of eighth blocks, braille curves, bars."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_

import msgspec

from ...core.model.ports import Point
from ...core.model.progress import Metric
from ...core.views import quantity
from ...core.views.charts import round_step, spiked, ticks, value_range
from ...core.views.metrics import tick_text
from ...core.views.state.run_progress import level_in
from .cells import Glyphs, Line, Span

Values = Sequence[float | None]

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille dots by row from the top, left and right."""


def spark(
    values: Values, low: float, high: float, bounds: Metric, glyphs: Glyphs, *, marked: Mapping[int, str] | None = None
) -> Line:
    """One cell a value, newest right, coloured by bounds, equal styles in one span; None is a gap.

    From ``low`` to ``high``: see ``spark_range``. ``marked``: cells with a style of their own: ``mark`` draws the line
    of an incident, others highlight the value.
    """
    special = marked or {}
    span = max(high - low, 1e-9)
    steps = len(glyphs.eighths) - 2  # never a full block: charts in neighbouring lines stay apart
    line: list[Span] = []
    run, run_style = "", ""
    for index, value in enumerate(values):
        style = special.get(index, "")
        if style == "mark":
            cell = glyphs.mark
        elif value is None:
            cell, style = " ", style or "text"
        else:
            share = min(1.0, max(0.0, (value - low) / span))
            # The lowest step is drawn, so that 0 differs from unknown.
            cell = glyphs.eighths[max(1, round(share * steps))]
            style = style or f"spark-{level_in(bounds, value)}"
        if style != run_style and run:
            line.append((run_style, run))
            run = ""
        run, run_style = run + cell, style
    return (*line, (run_style, run)) if run else tuple(line)


def spark_range(values: Values, low: float, high: float | None) -> tuple[float, float]:
    """The part of ``low`` to ``high`` that shows how the values change, between round numbers.

    All of it if they use half of it or come near its bottom: an idle GPU looks idle. Else from below the lowest to
    above the highest, at least a twentieth of it. ``high`` None: the largest value.
    """
    known = [v for v in values if v is not None and math.isfinite(v)]
    top = high if high is not None else max(known, default=1.0) * 1.25
    if top <= low:
        return low, low + 1.0
    span = top - low
    if not known or min(known) < low + SPARK_LOW * span or max(known) - min(known) > span / 2:
        return low, top
    step = round_step(max(max(known) - min(known), span / 20) * 1.2, 2)
    bottom = max(low, math.floor(min(known) / step) * step)
    if min(known) - bottom < step / 4:
        bottom = max(low, bottom - step)
    ceiling = math.ceil(max(known) / step + 1e-9) * step
    return bottom, min(ceiling, top) if top > max(known) else ceiling


SPARK_LOW = 0.25
"""Values in this share of the range at its bottom are shown on all of it."""


def calm_scale(values: Values) -> tuple[float, float] | None:
    """The bulk of the values between round numbers; the highest 5 % may be cut off. None without values.

    A new extreme beyond them moves it by a step, others leave it as it is.
    """
    bounds = value_range(values, cut_share=0.05)
    if bounds is None or not math.isfinite(bounds[1] - bounds[0]):
        return None
    low, high = bounds
    step = round_step(high - low, SCALE_STEPS)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return (bottom, top) if math.isfinite(bottom) and math.isfinite(top) and bottom < top else bounds


SCALE_STEPS = 10
"""At most so many steps are between the lowest and the highest value."""


def curve(values: Values, rows: int, low: float, high: float, glyphs: Glyphs) -> list[str]:
    """``rows`` lines of a curve, two values a cell, newest right. Values outside lie on the edge; None is a gap."""
    columns = math.ceil(len(values) / 2)
    last = rows * 4 - 1 if glyphs.braille else rows - 1
    factor = last / max(high - low, 1e-300)
    at = [
        None if v is None or not math.isfinite(v) else round((high - min(high, max(low, v))) * factor) for v in values
    ]
    return (_braille if glyphs.braille else _ascii)(at, columns, rows)


def _braille(at: Sequence[int | None], columns: int, rows: int) -> list[str]:
    """``at``: the row of dots of each value, from 0 at the top; neighbours are joined."""
    bits = [bytearray(columns) for _ in range(rows)]
    before: int | None = None
    for dot, y in enumerate(at):
        if y is None:
            before = None
            continue
        first = last = y
        if before is not None:
            first, last = (before + 1, y) if before < y else (y, before - 1) if before > y else (y, y)
        before = y
        column, masks = dot >> 1, MASKS[dot & 1]
        for row in range(first >> 2, (last >> 2) + 1):
            top = first & 3 if row == first >> 2 else 0
            bits[row][column] |= masks[top][last & 3 if row == last >> 2 else 3]
    return ["".join([BRAILLE[bit] for bit in row]) for row in bits]


def merged(rows: Iterable[str]) -> str:
    """Curves in one row, with the dots of all."""
    cells = [(max(cell), [max(0, ord(char) - 0x2800) for char in cell]) for cell in zip(*rows, strict=True)]
    return "".join(last if last < "\u2800" else BRAILLE[reduce(or_, dots)] for last, dots in cells)


def _ascii(at: Sequence[int | None], columns: int, rows: int) -> list[str]:
    drawn = [[" "] * columns for _ in range(rows)]
    for column in range(columns):
        y = next((y for y in at[column * 2 : column * 2 + 2] if y is not None), None)
        if y is not None:
            drawn[y][column] = "*"
    return ["".join(row) for row in drawn]


def bar(share: float, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """(filled, empty) parts of a progress bar of ``width`` cells, in eighths of a cell; the empty one is a line."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, part = divmod(eighths, 8)
    filled = glyphs.bar[-1] * full + (glyphs.bar[part] if part else "")
    filled = filled.rstrip(" ") if glyphs.name == "ascii" else filled
    return filled, glyphs.line * (width - len(filled))


Scale = tuple[float, float]
"""The values at the bottom and at the top."""


def tick_rows(scale: Scale, rows: int, factor: float = 1.0) -> list[str]:
    """The ticks of the values by row, at least two numbers if there are two rows; ``factor``: of their unit."""
    most = max(1, min(rows - 1, 2 + rows // 4))
    low, high = scale[0] / factor, scale[1] / factor
    found: tuple[float, ...] = ()
    for more in range(most, most + 4):
        found = found if len(found) > 1 else ticks(low, high, more)
    rounded = len(found) > 1 and rows > 2  # on two rows a round number would stand far from its place
    if not rounded and rows > 1:
        found = (low, high)  # two numbers tell the scale
    step = found[1] - found[0] if rounded else 0.0
    texts = [""] * rows
    for value in found:
        share = min(1.0, max(0.0, (value - low) / max(high - low, 1e-300)))
        texts[round((1 - share) * (rows * 4 - 1)) // 4] = tick_text(value, step)  # the row of its braille dot
    return texts


BRAILLE = (" ", *(chr(0x2800 + bit) for bit in range(1, 256)))
"""Characters by their dots."""
MASKS = tuple(
    tuple(tuple(sum(DOTS[y][side] for y in range(first, last + 1)) for last in range(4)) for first in range(4))
    for side in (0, 1)
)
"""Side, first and last dot from the top → the dots of a vertical line in one cell."""


# Histories for charts, fetched only when a new column of them is complete.

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


def same_charts(before: Sequence[SeriesQuery], after: Sequence[SeriesQuery]) -> bool:
    """The same charts, but for the time that passed: the next regular poll is soon enough.

    Those of a stretch that begins at a fixed time get more columns as the run grows.
    """

    def same(a: SeriesQuery, b: SeriesQuery) -> bool:
        begins = (a.metric, a.window_s) == (b.metric, b.window_s) and abs(a.since_t - b.since_t) < ALIKE_S
        return begins and (a.window_s is None or a.columns == b.columns)

    return len(before) == len(after) and all(map(same, before, after))


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


def joined(values: Columns) -> Columns:
    """The same values with straight lines over the gaps between them."""
    found = list(values)
    for (a, one), (b, two) in pairwise((i, v) for i, v in enumerate(values) if v is not None):
        for i in range(a + 1, b):
            found[i] = one + (two - one) * (i - a) / (b - a)
    return tuple(found)


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


# The part of the run that the charts show: the newest minutes, those around an event, or a zoomed part.


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

    @property
    def ends(self) -> tuple[str, str]:
        """Its first and its last moment in words: 10 min ago, now."""
        since_t, until_t = (self.now_t - self.length_s, self.now_t) if self.scrolls else (self.since_t, self.until_t)
        return quantity.age(self.now_t - since_t), "now" if until_t >= self.now_t else quantity.age(
            self.now_t - until_t
        )

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

    def of(self, metric: str | None, cells: int) -> Columns:
        """The values for a chart of so many cells; none if they were not read."""
        return () if metric is None else self.series.get(self.window.series_query(metric, cells), ())

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
        return made(0.0, _grown_span(end_t, YOUNG_PARTS if end_t < USUAL_S else 64), "the whole run")
    length_s = USUAL_S if zoom is None else LENGTHS_S[zoom]
    long = quantity.duration(length_s)
    if cursor_t is not None:
        return made(
            cursor_t - length_s * BEFORE_EVENT,
            length_s,
            f"{long} about {quantity.clock(wall0 + cursor_t, seconds=True)}",
        )
    if end_t < length_s:
        # A young run fills its charts from the left: they are repainted one cell at a time, until the span grows.
        shown_s = length_s if zoom is not None else min(length_s, _grown_span(end_t, YOUNG_PARTS))
        return made(0.0, shown_s, "since the start")
    if over:
        return made(end_t - length_s, length_s, f"{long} until {quantity.clock(wall0 + end_t, seconds=True)}")
    grain = max(length_s * GRAIN_SHARE, COLUMN_LEAST_S)
    return made(math.ceil(end_t / grain) * grain - length_s, length_s, f"last {long}", scrolls=True)


def zoomed_by(zoom: int | None, steps: int, now_t: float) -> int:
    """The zoom this many steps longer (positive) or shorter; lengths beyond the run's own mean the whole run."""
    longest = next((i for i, s in enumerate(LENGTHS_S) if s >= now_t), WHOLE)
    at = LENGTHS_S.index(USUAL_S) if zoom is None else min(zoom, longest)
    at = min(at, longest) + steps
    return WHOLE if at >= longest else max(0, at)


def _grown_span(span_s: float, parts: int = 64) -> float:
    """Rounded up, so that it does not grow with every poll; ``parts``: of its doubling, how often it grows."""
    grain = max(2.0 ** math.ceil(math.log2(span_s)) / parts, COLUMN_LEAST_S)
    return math.ceil(span_s / grain) * grain
