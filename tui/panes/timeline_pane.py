"""The timeline pane: time of day, events, loss and seconds per step on one axis."""

import math
from collections.abc import Callable, Mapping

from ...core.views.panes.timeline import RANK, Mark, TimelineView, event_words, events, ticks
from ...core.views.quantity import percent, size, three_digits
from ..ui.cells import Line, Span, pad, right
from ..ui.chart import curve, scale
from ..ui.series import REST_S, Columns, SeriesQuery, placed
from ..ui.time_window import COLUMN_LEAST_S, TimeWindow
from .pane import Pane

GUTTER = 15
EXPECTED_APART = 3
"""Expected checkpoints that are fewer columns apart are not drawn."""
LABEL = 7
"""Columns of the gutter for the word; the rest is for a number as long as 0.00312."""
NARROW_GUTTER = 8
BANDS: dict[str, str] = {
    "load": "band-load",
    "preprocess": "band-load",
    "compile": "band-load",
    "train": "band-train",
    "eval": "band-check",
    "sample": "band-check",
    "save": "band-save",
    "finish": "band-save",
    "unknown": "band-load",
}
MARK_STYLES: dict[str, str] = {
    "start": "faint",
    "restart": "accent",
    "checkpoint": "safe",
    "bad_checkpoint": "danger",
    "crash": "danger",
    "hang": "danger",
    "incident": "warning",
    "profile": "underused",
}
CHARTS: dict[str, tuple[str, str]] = {
    "progress.loss": ("loss", "loss"),
    "progress.sec_per_step": ("pace", "spark-safe"),
}
"""Metric → (label, style)."""
INCIDENT_KINDS = frozenset({"crash", "hang", "incident"})
MOMENT_S = 30.0
"""Readings that are shown for an event are from so many seconds before it."""
NUDGE = 2
"""A mark may move this many columns to the right to stay visible next to another one."""
EMPTY = TimelineView(end_t=60.0, now_t=0.0, over=False, done_t=None)


class TimelinePane(Pane):
    """Shows a TimelineView."""

    view = EMPTY
    series: Mapping[SeriesQuery, Columns] = {}
    _at: int | None = None

    cursor: Mark | None = None
    """The selected event; the title shows the readings at its time."""
    gpu: int | None = None
    zoomed: TimeWindow | None = None
    """The part of the run on the axis; None = all of it."""

    def show(
        self,
        view: TimelineView,
        series: Mapping[SeriesQuery, Columns],
        gpu: int | None = None,
        zoomed: TimeWindow | None = None,
    ) -> None:
        """Draw it; ``series`` answers ``series_queries``. ``gpu``: whose readings are shown for an event."""
        self.view, self.series, self.gpu, self.zoomed = view, series, gpu, zoomed
        if self.cursor is not None and self.cursor not in view.marks:
            self.cursor = None
        line = self.glyphs.line * 2
        if self.cursor is not None:
            self.set_title(f"{event_words(view, self.cursor)}", self._readings())
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

    def _moment(self) -> list[tuple[SeriesQuery, str, Callable[[float], str]]]:
        """Queries for the readings just before the selected event, with word and format of each."""
        if self.cursor is None:
            return []
        until_t = max(self.cursor.t, 1.0)
        wanted: list[tuple[str, str, Callable[[float], str]]] = []
        if self.gpu is not None:
            wanted += [(f"gpu{self.gpu}.vram", "VRAM", size), (f"gpu{self.gpu}.util", "GPU", percent)]
        wanted += [("host.ram_used", "RAM", size), ("progress.loss", "loss", three_digits)]
        return [
            (SeriesQuery(m, 1, None, max(0.0, until_t - MOMENT_S), until_t), word, format_)
            for m, word, format_ in wanted
        ]

    def _readings(self) -> str:
        parts = []
        for series_query, word, format_ in self._moment():
            values = self.series.get(series_query, ())
            if values and values[0] is not None:
                parts.append(f"{word} {format_(values[0])}")
        return " · ".join(parts)

    def series_queries(self) -> list[SeriesQuery]:
        """Queries for loss and seconds per step over the past part of the axis."""
        if self.view.message:
            return []
        charts = [
            w
            for w in (self._series_query("progress.loss"), self._series_query("progress.sec_per_step"))
            if w is not None
        ]
        return charts + [series_query for series_query, _, _ in self._moment()]

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
        pace_rows = 0 if rest < 4 else max(1, rest * 2 // 5)
        loss_rows = min(rest - pace_rows, 12)
        lines += self._chart("progress.loss", view.loss, loss_rows, width)
        lines += self._chart("progress.sec_per_step", view.pace, min(pace_rows, 8), width)
        return lines

    def _gutter(self, width: int) -> int:
        return GUTTER if width >= 60 else NARROW_GUTTER

    @property
    def axis(self) -> tuple[float, float]:
        """(since, until) of the axis, run seconds."""
        return (0.0, self.view.end_t) if self.zoomed is None else (self.zoomed.since_t, self.zoomed.until_t)

    def _series_query(self, metric: str) -> SeriesQuery | None:
        width = self.size.width
        columns = width - self._gutter(width)
        if columns < 8:
            return None
        since_t, until_t = self.axis
        column_s = (until_t - since_t) / columns
        # In steps, so that the query stays the same until there is a new column to draw.
        grain = max(column_s, REST_S)
        long_s = min(max(grain, math.ceil((self.view.now_t - since_t) / grain) * grain), until_t - since_t)
        points = max(2, min(round(long_s / column_s) * 2, int(long_s / COLUMN_LEAST_S)))
        return SeriesQuery(metric, points, None, since_t, since_t + long_s)

    def _drawn(self, metric: str, rows: int, columns: int) -> tuple[list[str], tuple[float, float] | None]:
        """Rows of the curve, and the range of its values (None: no value is known).

        Two values a column of what is known, from the answer to this moment's series_query or else to the one before.
        """
        series_query = self._series_query(metric)
        if series_query not in self.series:
            series_query = next((w for w in self.series if w.metric == metric and w.columns > 1), None)
        if series_query is None:
            return [""] * rows, None
        since_t, until_t = self.axis
        answer, asked, glyphs, until = self.series[series_query], series_query, self.glyphs, self.view.steps_until_t

        def work() -> tuple[list[str], tuple[float, float] | None]:
            step_s = (until_t - since_t) / columns / 2
            values = placed(answer, asked, since_t, step_s, columns * 2)
            if until is not None:
                values = tuple(v if since_t + i * step_s <= until else None for i, v in enumerate(values))
            bounds = scale(values)
            return (curve(values, rows, *bounds, glyphs) if bounds else [""] * rows), bounds

        return self.last_values.get(metric, (answer, asked, since_t, until_t, columns, rows, glyphs, until), work)

    def _column(self, t: float, columns: int) -> int:
        """The column of a time; times outside the axis get the first or last one."""
        since_t, until_t = self.axis
        return max(0, min(columns - 1, int((t - since_t) / (until_t - since_t) * columns)))

    def _shown(self, t: float) -> bool:
        """Whether a time is on the axis."""
        return self.axis[0] <= t <= self.axis[1]

    def _ticks(self, gutter: int, columns: int) -> Line:
        view, axis = self.view, self.axis
        return self.last_values.get(
            "ticks", (view.wall0, axis, gutter, columns), lambda: self._tick_row(gutter, columns)
        )

    def _tick_row(self, gutter: int, columns: int) -> Line:
        row = [" "] * columns
        for t, label in ticks(self.view, columns, axis=self.axis):
            start = self._column(t, columns)
            if start + len(label) <= columns and all(c == " " for c in row[max(0, start - 1) : start + len(label)]):
                row[start : start + len(label)] = label
        return (("label", pad("", gutter)), ("label", "".join(row)))

    def _track(self, columns: int) -> list[Span]:
        view, g = self.view, self.glyphs
        now = self._column(view.now_t, columns)
        present = self._shown(view.now_t) and not view.over
        cells: list[Span] = [
            ("faint", g.line) if c <= now else ("faint", g.dot if (c - now) % 2 == 0 else " ") for c in range(columns)
        ]
        if present:
            due = [self._column(t, columns) for t in view.expected if self._shown(t)]
            if len(due) < 2 or due[-1] - due[0] >= EXPECTED_APART * (len(due) - 1):
                for column in due:
                    cells[column] = ("label", g.expected)
            cells[now] = ("strong", g.now)
        taken: set[int] = {now} if present else set()
        if view.done_t is not None and self._shown(view.done_t):
            done = self._column(view.done_t, columns)
            cells[done] = ("safe" if view.over else "accent", g.done)
            taken.add(done)
        self._at = None
        # The selected event is placed first, so that it is always visible.
        here = (m for m in view.marks if self._shown(m.t))
        ordered = sorted(here, key=lambda m: (m == self.cursor, RANK[m.kind], m.t))
        for mark in reversed(ordered):
            column = self._column(mark.t, columns)
            near = (column + d * side for d in range(NUDGE + 1) for side in (1, -1))
            free = next((c for c in near if 0 <= c <= now and c not in taken), None)
            if free is not None:
                taken.add(free)
                looked_at = mark == self.cursor
                cells[free] = ("cursor" if looked_at else MARK_STYLES[mark.kind], g.marks[mark.kind])
                if looked_at:
                    self._at = free
        return cells

    def _phases(self, columns: int) -> list[Span]:
        cells: list[Span] = [("text", " ")] * columns
        since_t, until_t = self.axis
        for band in self.view.bands:
            if band.until_t < since_t or band.since_t > until_t:
                continue
            first, last = self._column(band.since_t, columns), self._column(band.until_t, columns)
            for c in range(first, last + 1):
                cells[c] = (BANDS.get(band.phase, "band-load"), self.glyphs.band)
        return cells

    def _chart(self, metric: str, value: str, rows: int, width: int) -> list[Line]:
        if rows < 1:
            return []
        label, style = CHARTS[metric]
        gutter = self._gutter(width)
        columns = width - gutter
        drawn, bounds = self._drawn(metric, rows, columns)
        if gutter == NARROW_GUTTER:
            words = [value.partition(" ")[0]]
        else:
            number_word, _, unit = value.partition(" ")
            words = [pad(unit or label, LABEL) + right(number_word, GUTTER - LABEL - 1)]
        lines: list[Line] = []
        edges: dict[int, str] = {}
        if bounds and rows >= 4 and gutter == GUTTER:
            edges = {
                1: pad("high", LABEL) + right(three_digits(bounds[1]), GUTTER - LABEL - 1),
                rows - 1: pad("low", LABEL) + right(three_digits(bounds[0]), GUTTER - LABEL - 1),
            }
        for number, row in enumerate(drawn):
            if number == 0:
                head: Span = ("strong" if gutter == NARROW_GUTTER else "text", pad(words[0], gutter))
            else:
                head = ("label", pad(edges.get(number, ""), gutter))
            lines.append((head, *self._marked(style, pad(row, columns))))
        return lines

    def _marked(self, style: str, row: str) -> list[Span]:
        """The curve with a faint line where an incident was, and the column of the selected event highlighted."""
        columns = len(row)
        special = {
            self._column(mark.t, columns): ("faint", self.glyphs.mark)
            for mark in self.view.marks
            if mark.kind in INCIDENT_KINDS and self._shown(mark.t)
        }
        special = {column: span for column, span in special.items() if row[column] == " "}
        if self._at is not None and self._at < columns:
            special[self._at] = ("cursor", row[self._at])
        spans: list[Span] = []
        done = 0
        for column in sorted(special):
            spans += [(style, row[done:column]), special[column]]
            done = column + 1
        return [*spans, (style, row[done:])]
