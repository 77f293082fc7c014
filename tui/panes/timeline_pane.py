"""The timeline pane: time of day, events, loss and seconds per step on one axis."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby

from ...core.views import quantity
from ...core.views.charts import silences
from ...core.views.metrics import fitted, shown_values, unit_of
from ...core.views.timeline import RANK, Mark, TimelineView, event_words, events, ticks
from ..ui.cells import Line, Span, fit, pad, right
from ..ui.chart import (
    COLUMN_LEAST_S,
    Columns,
    Scale,
    SeriesQuery,
    TimeWindow,
    calm_scale,
    curve,
    joined,
    placed,
    tick_rows,
)
from .pane import Pane

GUTTER = 15
EXPECTED_APART = 3
"""Expected checkpoints that are fewer columns apart are not drawn."""
CURVE_REST_S = 4.0
"""Curves, phases and the mark of the present move no more often: in a young run each new column repaints rows over the
whole width."""
BANDS: dict[str, str] = {
    "train": "band-train", "eval": "band-check", "sample": "band-check", "save": "band-save", "finish": "band-save",
}  # fmt: skip
"""By phase; any other one is "band-load"."""
MARK_STYLES: dict[str, str] = {
    "start": "faint", "restart": "accent", "checkpoint": "safe", "doubtful_checkpoint": "warning",
    "bad_checkpoint": "danger", "crash": "danger", "hang": "danger", "danger": "danger", "incident": "warning",
    "profile": "underused",
}  # fmt: skip
LOSS, PACE, STEPS = "progress.loss", "progress.sec_per_step", "progress.step"
CHARTS: dict[str, str] = {LOSS: "loss", PACE: "spark-safe"}
"""Metric → style."""
INCIDENT_KINDS = frozenset({"crash", "hang", "danger", "incident"})
PIECE = 60
"""Columns of each piece of the charts: a new column of them writes its piece only."""
EMPTY = TimelineView(end_t=60.0, now_t=0.0, over=False, done_t=None)


class AxisPane(Pane):
    """Draws curves over the time of a run: hatched where no step came, with a line at each incident."""

    view = EMPTY
    series: Mapping[SeriesQuery, Columns] = {}
    zoomed: TimeWindow | None = None
    """The part of the run on the axis; None = all of it."""
    _at: int | None = None
    """The column of the selected event."""

    @property
    def axis(self) -> tuple[float, float]:
        """(since, until) of the axis, run seconds."""
        return (0.0, self.view.end_t) if self.zoomed is None else (self.zoomed.since_t, self.zoomed.until_t)

    def query_of(self, metric: str, columns: int) -> SeriesQuery:
        """For the curve of a metric over the past part of the axis, in so many columns."""
        since_t, until_t = self.axis
        column_s, grain = self._grain(columns)
        long_s = min(max(grain, math.ceil((self.view.now_t - since_t) / grain) * grain), until_t - since_t)
        points = max(2, min(round(long_s / column_s) * 2, int(long_s / COLUMN_LEAST_S)))
        return SeriesQuery(metric, points, None, since_t, since_t + long_s)

    def _grain(self, columns: int) -> tuple[float, float]:
        """Seconds of a column, and of the steps in which curves and the present move on."""
        column_s = (self.axis[1] - self.axis[0]) / columns
        return column_s, max(column_s, CURVE_REST_S)

    def _present_t(self, columns: int) -> float:
        """The present, in steps; an event or a phase that began meanwhile is shown at once."""
        view, (since_t, _) = self.view, self.axis
        column_s, grain = self._grain(columns)
        if view.over or grain <= column_s:
            return view.now_t
        news = [t for t in (*(m.t for m in view.marks), *(b.since_t for b in view.bands)) if t <= view.now_t]
        return max(since_t + (view.now_t - since_t) // grain * grain, *news, since_t)

    def _answer(self, metric: str, columns: int) -> tuple[SeriesQuery, Columns] | None:
        """The answer to this moment's query, or else to the one before."""
        query = self.query_of(metric, columns)
        if query not in self.series:
            query = next((w for w in self.series if w.metric == metric and w.columns > 1), query)
        return (query, self.series[query]) if query in self.series else None

    def _silences(self, columns: int) -> tuple[tuple[float, float], ...]:
        """Stretches from the last step of an attempt to the next launch."""
        query, steps = self._answer(STEPS, columns) or (self.query_of(STEPS, columns), ())
        width = (query.until_t - query.since_t) / max(1, len(steps))
        placed_steps = [(query.since_t + (i + 0.5) * width, step) for i, step in enumerate(steps)]
        return silences(placed_steps, self.view.attempts, self.view.steps_until_t)

    def unit(self, metric: str) -> str:
        """In which its values are shown: the pace in that of most values on the axis, without any of the newest."""
        drawn = next((values for query, values in self.series.items() if query.metric == metric == PACE), ())
        known = [v for v in drawn if v is not None] or [self.view.sec_per_step or 1.0]
        return unit_of(metric, [(0.0, v, v, v) for v in known])

    def range_of(self, metric: str, values: Columns) -> tuple[float, float] | None:
        """From where to where its scale goes; None without values."""
        del metric
        return calm_scale(values)

    def _drawn(
        self, metric: str, rows: int, columns: int, scale: Scale | None = None
    ) -> tuple[list[str], Scale | None]:
        """Rows of the curve, and its scale (None: no value is known). Two values a column of what is known.

        ``scale``: of all curves of an overlay.
        """
        known = self._answer(metric, columns)
        if known is None:
            return [""] * rows, None
        since_t, until_t = self.axis
        asked, answer = known
        quiet = self._silences(columns) if metric.startswith(("progress.", "metric.")) else ()
        step_s = (until_t - since_t) / columns / 2
        # What a trainer logs now and then is one curve.
        answer = joined(answer) if metric.startswith("metric.") else answer
        values = placed(answer, asked, since_t, step_s, columns * 2)
        if quiet:
            values = tuple(
                None if any(a < since_t + i * step_s < b for a, b in quiet) else v for i, v in enumerate(values)
            )
        values = shown_values(metric, values, self.unit(metric), step_s)
        bounds = scale or self.range_of(metric, values)
        found = curve(values, rows, *bounds, self.glyphs) if bounds else [""] * rows
        return [row[: self._column(self._present_t(columns), columns) + 1] for row in found], bounds

    def _column(self, t: float, columns: int) -> int:
        """The column of a time; times outside the axis get the first or last one."""
        since_t, until_t = self.axis
        if not since_t < t < until_t:  # a silence that has not ended yet ends never
            return 0 if t <= since_t else columns - 1
        return min(columns - 1, int((t - since_t) / (until_t - since_t) * columns))

    def _shown(self, t: float) -> bool:
        """Whether a time is on the axis."""
        return self.axis[0] <= t <= self.axis[1]

    def _ticks(self, gutter: int, columns: int) -> Line:
        row = [" "] * columns
        if self.view.later and self._shown(self.view.now_t):
            end = f" {self.glyphs.done} {self.view.later}"
            if len(end) < columns // 2:
                row[columns - len(end) :] = end
        for t, label in ticks(self.view, columns, axis=self.axis):
            start = self._column(t, columns)
            if start + len(label) <= columns and all(c == " " for c in row[max(0, start - 1) : start + len(label) + 1]):
                row[start : start + len(label)] = label
        return (("label", pad("", gutter)), ("label", "".join(row)))

    def _hatched(self, columns: int) -> frozenset[int]:
        """Columns without steps: from the last one to the restart."""
        now = self._column(self._present_t(columns), columns)
        found: set[int] = set()
        for since, until in self._silences(columns):
            if math.isinf(until) and self.view.over and self.view.done_t is not None:  # finished, not silent
                continue
            if since < self.axis[1] and until > self.axis[0]:
                found |= set(range(self._column(since, columns) + 1, min(self._column(until, columns), now)))
        return frozenset(found)

    def _marked(self, style: str, row: str, hatched: frozenset[int], above: str = "") -> list[Span]:
        """The curve, hatched where no step came, with a line at each incident and the selected event highlighted.

        ``above``: of an overlay the curve that stands out.
        """
        columns = len(row)
        special = dict.fromkeys(hatched, ("silence", self.glyphs.hatch))
        for mark in self.view.marks:
            if mark.kind in INCIDENT_KINDS and self._shown(mark.t):
                special[self._column(mark.t, columns)] = ("faint", self.glyphs.mark)
        special = {column: span for column, span in special.items() if row[column] == " "}
        special |= {column: ("curve", row[column]) for column, char in enumerate(above) if char != " "}
        if self._at is not None and self._at < columns:
            special[self._at] = ("cursor", row[self._at])
        spans: list[Span] = []
        done = 0
        for column in sorted(special):
            spans += [(style, row[done:column]), special[column]]
            done = column + 1
        return [*spans, (style, row[done:])]


class TimelinePane(AxisPane):
    cursor: Mark | None = None
    """The selected event."""

    def show(self, view: TimelineView, series: Mapping[SeriesQuery, Columns], zoomed: TimeWindow | None = None) -> None:
        """Draw it; ``series`` answers ``series_queries``."""
        self.view, self.series, self.zoomed = view, series, zoomed
        if self.cursor is not None and self.cursor not in view.marks:
            self.cursor = None
        line = self.glyphs.line * 2
        if self.cursor is not None:
            self.set_title(event_words(view, self.cursor))
        else:
            self.set_title(f"timeline {line} {view.title}" if view.title else "timeline", "")
        self.redraw()

    def step(self, events_on: int) -> None:
        """Select the next (positive) or previous event; after the newest comes the present."""
        known = events(self.view)
        if not known:
            return
        if self.cursor is None:
            self.cursor = known[-1] if events_on < 0 else None
            return
        at = known.index(self.cursor) + events_on
        self.cursor = known[max(0, at)] if at < len(known) else None

    def series_queries(self) -> list[SeriesQuery]:
        """Queries for loss, seconds per step and the step over the past part of the axis."""
        columns = self.size.width - self._gutter(self.size.width)
        if self.view.message:
            return []
        return [self.query_of(metric, columns) for metric in (LOSS, PACE, STEPS)] if columns >= 8 else []

    def lines(self, width: int, height: int) -> list[Line]:
        """Ticks, events, phases if there is room, charts."""
        view = self.view
        if view.message:
            return [(("label", view.message),)]
        gutter = self._gutter(width)
        columns = width - gutter
        if columns < 8:
            return []
        lines: list[Line] = [self._ticks(gutter, columns)] if height >= 2 else []
        lines.append((("label", pad("", gutter)), *self._track(columns)))
        rest = height - len(lines)
        if rest >= 5:
            lines.append((("label", pad("phase", gutter)), *self._phases(columns)))
            rest -= 1
        pace_rows = 0 if rest < 4 else max(2, rest * 2 // 5)
        loss_rows = min(rest - pace_rows, 12)
        lines += self._chart(LOSS, ("loss", view.loss), loss_rows, width)
        unit = self.unit(PACE)
        pace = quantity.pace(view.sec_per_step, unit).partition(" ")[0]
        lines += self._chart(PACE, (unit, pace), min(pace_rows, 8), width)
        return lines

    def cuts(self, width: int) -> tuple[int, ...]:
        """The gutter, and pieces of the charts."""
        if self.view.message:
            return ()
        gutter = self._gutter(width)
        return (gutter, *range(gutter + PIECE, width - PIECE // 2, PIECE))

    def _gutter(self, width: int) -> int:
        return GUTTER if width >= 60 else NARROW_GUTTER

    def _track(self, columns: int) -> Line:
        """The row of events."""
        view = self.view
        now = self._column(self._present_t(columns), columns)
        present = self._shown(view.now_t) and not view.over
        due = tuple(self._column(t, columns) for t in view.expected if self._shown(t)) if present else ()
        done = self._column(view.done_t, columns) if view.done_t is not None and self._shown(view.done_t) else None
        g = self.glyphs
        cells: list[Span] = [
            ("faint", g.line) if c <= now else ("faint", g.dot if c % 2 == 0 else " ") for c in range(columns)
        ]
        if len(due) < 2 or due[-1] - due[0] >= EXPECTED_APART * (len(due) - 1):
            for column in due:
                cells[column] = ("label", g.expected)
        taken: set[int] = set()
        if present:
            cells[now] = ("strong", g.now)
            taken.add(now)
        if done is not None:
            cells[done] = ("safe" if view.over else "accent", g.done)
            taken.add(done)
        self._at = None
        shown = (mark for mark in view.marks if self._shown(mark.t))
        for column, mark in mark_columns(shown, lambda t: self._column(t, columns), now, taken, self.cursor).items():
            selected = mark == self.cursor
            cells[column] = ("cursor" if selected else MARK_STYLES[mark.kind], g.marks[mark.kind])
            self._at = column if selected else self._at
        return fit(cells, columns)

    def _phases(self, columns: int) -> Line:
        since_t, until_t = self.axis
        present_t, hatched = self._present_t(columns), self._hatched(columns)
        now = self._column(present_t, columns)
        cells: list[Span] = [("text", " ")] * columns
        for band in self.view.bands:
            if band.until_t >= since_t and band.since_t <= until_t:
                last = self._column(min(band.until_t, present_t), columns)
                for c in range(self._column(band.since_t, columns), last + 1):
                    cells[c] = (BANDS.get(band.phase, "band-load"), self.glyphs.band)
        for c in hatched:
            cells[c] = ("silence", self.glyphs.hatch)
        if now - 1 in hatched and any(math.isinf(until) for _, until in self._silences(columns)):
            cells[now] = ("text", " ")  # no phase after a silence that goes on
        return fit(cells, columns)

    def _chart(self, metric: str, label: tuple[str, str], rows: int, width: int) -> list[Line]:
        if rows < 1:
            return []
        gutter = self._gutter(width)
        columns = width - gutter
        drawn, bounds = self._drawn(metric, rows, columns)
        hatched, heads = self._hatched(columns), curve_heads(*label, bounds, rows, gutter)
        marked = (self._marked(CHARTS[metric], pad(row, columns), hatched) for row in drawn)
        return [(*head, *row) for head, row in zip(heads, marked, strict=True)]


# Which column of the timeline each event gets.

NUDGE = 2
"""Columns that an event may stand beside its own, if that is taken."""


def mark_columns(
    marks: Iterable[Mark], column_of: Callable[[float], int], now: int, taken: Collection[int], selected: Mark | None
) -> dict[int, Mark]:
    """Column → event, up to the column ``now`` and without the ``taken`` ones.

    The selected event gets a column first, then the most important ones; those for which none is free are left out.
    Events in neighbouring columns stand in the order of time.
    """
    found: dict[int, Mark] = {}
    for mark in sorted(marks, key=lambda m: (m == selected, RANK[m.kind], m.t), reverse=True):
        column = column_of(mark.t)
        near = (column + d * side for d in range(NUDGE + 1) for side in (1, -1))
        free = next((c for c in near if 0 <= c <= now and c not in taken and c not in found), None)
        if free is not None:
            found[free] = mark
    for _, group in groupby(enumerate(sorted(found)), key=lambda each: each[1] - each[0]):
        beside = [column for _, column in group]
        found |= zip(beside, sorted((found[c] for c in beside), key=lambda m: (m.t, -RANK[m.kind])), strict=True)
    return found


# What stands to the left of a curve: its label, its newest value, and the ticks of its scale.

LABEL = 7
"""Columns of the gutter for the word; the rest is for a number as long as 0.00312."""
NARROW_GUTTER = 8


def curve_heads(label: str, value: str, bounds: Scale | None, rows: int, gutter: int) -> list[list[Span]]:
    """What stands before each row of a curve: its label, its newest value, and ticks."""
    ticks_at = tick_rows(bounds, rows) if bounds is not None and rows > 1 else [""] * rows
    ticks_at = [fitted(tick, NARROW_GUTTER - 2) if tick else "" for tick in ticks_at]
    if gutter == NARROW_GUTTER and rows > 1:
        first = [("text", pad(label, gutter)), ("strong", pad(value, gutter))]  # they need the room of two ticks
        return [[span] for span in first] + [[("label", right(tick, gutter - 1) + " ")] for tick in ticks_at[2:]]
    if gutter == NARROW_GUTTER:
        return [[("strong", pad(value, gutter))]]
    if rows == 1:
        return [[("text", pad(label, LABEL) + right(value, gutter - LABEL - 1) + " ")]]
    words = [("text", label), ("strong", value)]
    return [
        [
            (words[y][0], pad(words[y][1], LABEL + 1)) if y < len(words) else ("label", " " * (LABEL + 1)),
            ("label", right(tick, gutter - LABEL - 2) + " "),
        ]
        for y, tick in enumerate(ticks_at)
    ]
