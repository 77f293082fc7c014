"""Charts of metrics: many in a grid, or a single one; with axes, marks of what happened, and a free cursor."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from textual import events
from textual.message import Message

from ...core.model.text import MIB
from ...core.views.chart_view import ChartView, Curve
from ...core.views.charts import Span as XSpan
from ...core.views.charts import dotted, nearest, value_range
from ...core.views.metrics import BYTES, COUNT, MEMORY, RATE, axis_unit, fitted, value_text
from ...core.views.timeline import RANK, Mark
from ..ui.cells import Line, Span, cut, pad, right, spread, width_of, wrap_words
from ..ui.chart import Layer, Row, Scale, plotted, tick_rows
from .pane import Pane
from .timeline_pane import INCIDENT_KINDS, MARK_STYLES

GUTTER = 8
"""Columns for the ticks of the values and a space."""
CHART_COLUMNS = 36
"""Narrowest chart of a grid, gutter included."""
CHART_ROWS = 6
"""Lowest chart of a grid, title included."""
LEAST_SPANS: dict[str, float] = {"%": 5.0, "°C": 4.0, MEMORY: 8 * MIB, BYTES: 1e6, RATE: 1e3, COUNT: 4.0}
"""Shorter ranges of values are not enlarged: they are jitter."""
FAULTS = frozenset({"crash", "hang"})
GAP_COLUMNS = 2


class ChartsView(msgspec.Struct, frozen=True, kw_only=True):
    """``charts``: those to draw. ``shown``: the visible part of the axis, ``ticks`` its labels by x. ``cursor``: x.

    ``message``: why there are none.
    """

    charts: tuple[ChartView, ...] = ()
    chosen: int = 0
    single: bool = False
    shown: XSpan = XSpan(0.0, 1.0)
    log: bool = False
    marks: tuple[tuple[float, Mark], ...] = ()
    silences: tuple[tuple[float, float], ...] = ()
    """Stretches of the axis without steps: from the last one to the restart."""
    cursor: float | None = None
    message: str = ""


Labels = Callable[[int, XSpan], Sequence[tuple[float, str]]]
"""(columns, visible part of the axis) → (x, label) of its ticks."""


class ChartsPane(Pane):
    """Shows a ChartsView. ``labels(columns)`` returns the ticks of the x axis."""

    view = ChartsView()
    labels: Labels = staticmethod(lambda _columns, _shown: ())
    top = 0
    """The first row of charts of the grid that is visible."""

    class Pointed(Message):
        """A place of a chart was clicked, or the wheel was turned there. ``x`` None: outside of the curves."""

        def __init__(self, what: Literal["click", "in", "out"], chart: int, x: float | None) -> None:
            super().__init__()
            self.what, self.chart, self.x = what, chart, x

    def show(self, view: ChartsView, labels: Labels) -> None:
        self.view, self.labels = view, labels
        self.redraw()

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """(charts beside each other, charts above each other)."""
        count = max(1, len(self.view.charts))
        across = max(1, min((width + GAP_COLUMNS) // (CHART_COLUMNS + GAP_COLUMNS), count))
        down = max(1, min((height - 1) // CHART_ROWS, -(-count // across)))
        while across > 1 and -(-count // (across - 1)) <= down:
            across -= 1  # wider charts, if all of them fit anyway
        return across, down

    @property
    def columns(self) -> int:
        """Columns of a chart's curves."""
        width, height = self.size
        if self.view.single or not width or not height:
            return max(1, width - GUTTER)
        across = self.grid(width, height)[0]
        return max(1, (width - GAP_COLUMNS * (across - 1)) // across - GUTTER)

    def in_view(self) -> tuple[int, ...]:
        """Numbers of the charts that are on the screen."""
        if self.view.single:
            return (self.view.chosen,)
        width, height = self.size
        if not width or not height:
            return tuple(range(min(len(self.view.charts), 8)))
        across, down = self.grid(width, height)
        self._keep_in_view(across, down)
        return tuple(range(self.top * across, min(len(self.view.charts), (self.top + down) * across)))

    def lines(self, width: int, height: int) -> list[Line]:
        """The grid, or the chosen chart."""
        view = self.view
        if not view.charts:
            return [(("label", row),) for row in wrap_words(view.message, width)]
        if view.single:
            return self._single(width, height)
        return self._grid(width, height)

    def _keep_in_view(self, across: int, down: int) -> None:
        row = self.view.chosen // across
        rows = -(-len(self.view.charts) // across)
        self.top = max(0, min(self.top, rows - down, row))
        self.top = max(self.top, row - down + 1)

    def _grid(self, width: int, height: int) -> list[Line]:
        across, down = self.grid(width, height)
        self._keep_in_view(across, down)
        column_width = (width - GAP_COLUMNS * (across - 1)) // across
        rows_each = [(height - 1) // down + (1 if n < (height - 1) % down else 0) for n in range(down)]
        lines: list[Line] = []
        for row in range(down):
            first = (self.top + row) * across
            blocks = [
                self._chart(n, column_width, rows_each[row], ticks_below=False) if n < len(self.view.charts) else []
                for n in range(first, first + across)
            ]
            for y in range(rows_each[row]):
                line: list[Span] = []
                for number, block in enumerate(blocks):
                    cells = block[y] if y < len(block) else (("text", " " * column_width),)
                    line += [*cells, ("text", " " * GAP_COLUMNS)] if number < across - 1 else [*cells]
                lines.append(tuple(line))
        axis = self._tick_row(column_width)
        last: list[Span] = []
        for number in range(across):
            last += [*axis, ("text", " " * GAP_COLUMNS)] if number < across - 1 else [*axis]
        return [*lines, tuple(last)]

    def _single(self, width: int, height: int) -> list[Line]:
        return self._chart(self.view.chosen, width, height, ticks_below=True)

    def _chart(self, number: int, width: int, height: int, *, ticks_below: bool) -> list[Line]:
        """Title, in a single chart the marks, the curves, and the ticks below them."""
        chart = self.view.charts[number]
        columns = width - GUTTER
        if columns < 4 or height < 2:
            return [(("text", " " * width),)] * height
        head = [self._title(number, chart, width)]
        track = ticks_below and height - len(head) >= 6
        if track:
            head.append(self._track(columns))
        rows = height - len(head) - (1 if ticks_below else 0)
        body = self._curves(chart, columns, max(1, rows))
        return [*head, *body, *([self._tick_row(width)] if ticks_below else [])][:height]

    def _title(self, number: int, chart: ChartView, width: int) -> Line:
        view = self.view
        chosen = number == view.chosen
        left: list[Span] = [
            ("accent" if chosen else "text", f"{self.glyphs.cursor} " if chosen and not view.single else ""),
            ("strong" if chosen else "text", chart.title),
        ]
        values: list[Span] = [("curve", f"  {self._value(c, chart.unit)}") for c in chart.curves[-1:]]
        room = max(0, width - width_of(values) - 1)
        title: list[Span] = [left[0], (left[1][0], cut(chart.title, max(1, room - len(left[0][1]))))]
        return spread(title, values, width)

    def _value(self, curve: Curve, unit: str) -> str:
        """The value at the cursor, or the newest; behind the end of the curve its last one: ``last 0.912``."""
        value, cursor = self._read(curve), self.view.cursor
        last = curve.parts[-1][-1] if curve.parts else None
        if value is None and cursor is not None and last is not None and cursor > last[0]:
            return f"last {value_text(last[2], unit)}"
        return value_text(value, unit)

    def _read(self, curve: Curve) -> float | None:
        """The value at the cursor, or the newest; None: none was read there."""
        if self.view.cursor is None:
            return curve.parts[-1][-1][2] if curve.parts else None
        cursor = self.view.cursor
        reach = max(curve.gap, self.view.shown.length / 50)
        near = [p for part in curve.parts if (p := nearest(part, cursor, reach)) is not None]
        return min(near, key=lambda p: abs(p[0] - cursor))[2] if near else None

    def _values(self, key: str, curve: Curve, columns: int) -> tuple[float | None, ...]:
        shown = self.view.shown

        def work() -> tuple[float | None, ...]:
            parts = [dotted(part, shown.since, shown.until, columns * 2, gap=curve.gap) for part in curve.parts]
            if len(parts) == 1:
                return parts[0]
            return tuple(next((v for v in reversed(dot) if v is not None), None) for dot in zip(*parts, strict=True))

        return self.last_values.get(f"{key} {curve.faint}", (curve.parts, shown, columns, curve.gap), work)

    def _curves(self, chart: ChartView, columns: int, rows: int) -> list[Line]:
        view = self.view

        def work() -> tuple[list[Row], list[str]]:
            drawn = [(curve, self._values(chart.metric, curve, columns)) for curve in chart.curves]
            bounds = value_range([v for _, values in drawn for v in values], log=view.log)
            if bounds is None:
                why = "no positive value here" if view.log else "no value here"
                text = [pad(why if y == rows // 2 else "", columns) for y in range(rows)]
                return [Row([*row], ["label" if c != " " else "" for c in row]) for row in text], [" " * GUTTER] * rows
            scale = Scale(*(bounds if view.log else _at_least(bounds, LEAST_SPANS.get(chart.unit, 0.0))), view.log)
            layers = [Layer(values, "faint" if curve.faint else "curve") for curve, values in drawn]
            cells = plotted(layers, columns, rows, scale, self.glyphs)
            self._mark(cells, columns)
            return cells, self._gutter(chart, scale, rows)

        depends = (chart, view.shown, view.log, view.marks, view.silences, columns, rows, self.glyphs)
        cells, gutter = self.last_values.get(f"drawn {chart.metric}", depends, work)

        def lines() -> list[Line]:
            drawn = [self._with_cursor(row, columns) for row in cells]
            return [(("label", gutter[y]), *row.line) for y, row in enumerate(drawn)]

        return self.last_values.get(f"lines {chart.metric}", (cells, view.cursor), lines)

    def _with_cursor(self, row: Row, columns: int) -> Row:
        """The row with the cursor's column highlighted."""
        column = -1 if self.view.cursor is None else self._column(self.view.cursor, columns)
        if not 0 <= column < columns:
            return row
        lit = row.copied()
        lit.put(column, "cursor", self.glyphs.cursor_line if row.chars[column] == " " else row.chars[column])
        return lit

    def _gutter(self, chart: ChartView, scale: Scale, rows: int) -> list[str]:
        factor, word = axis_unit(chart.unit, scale.low, scale.high)
        texts = [fitted(tick, GUTTER - 1) if tick else "" for tick in tick_rows(scale, rows, factor)]
        if chart.unit == COUNT and not self.view.log:
            texts = ["" if "." in text else text for text in texts]
        if word and len(word) < GUTTER:
            free = next((y for y in range(rows) if not texts[y]), None)
            if free is not None:
                texts[free] = word
        return [right(text, GUTTER - 1) + " " for text in texts]

    def _mark(self, rows: list[Row], columns: int) -> None:
        """Hatch what has no steps, and draw a line for each incident."""
        view, glyphs = self.view, self.glyphs
        for since, until in view.silences:
            if until < view.shown.since or since > view.shown.until:
                continue
            first, last = self._column(since, columns), self._column(min(until, view.shown.until), columns)
            for column in range(max(0, first + 1), min(columns, last)):
                for row in rows:
                    if row.chars[column] == " ":
                        row.put(column, "faint", glyphs.hatch)
        for x, mark in view.marks:
            column = self._column(x, columns)
            if mark.kind in INCIDENT_KINDS and 0 <= column < columns:
                for row in rows:
                    if row.chars[column] in {" ", glyphs.hatch}:
                        row.put(column, "mark" if mark.kind in FAULTS else "faint", glyphs.mark)

    def _column(self, x: float, columns: int) -> int:
        shown = self.view.shown
        at = (x - shown.since) / max(shown.length, 1e-12) * columns
        return columns - 1 if at == columns else int(at // 1)

    def _track(self, columns: int) -> Line:
        cells = Row([self.glyphs.line] * columns, ["faint"] * columns)
        for x, mark in sorted(self.view.marks, key=lambda m: RANK[m[1].kind]):
            column = self._column(x, columns)
            if 0 <= column < columns:
                cells.put(column, MARK_STYLES[mark.kind], self.glyphs.marks[mark.kind])
        if self.view.cursor is not None:
            column = self._column(self.view.cursor, columns)
            if 0 <= column < columns:
                cells.put(column, "cursor", cells.chars[column])
        return (("label", " " * GUTTER), *cells.line)

    def _tick_row(self, width: int) -> Line:
        columns = width - GUTTER
        row = [" "] * columns
        for x, label in self.labels(columns, self.view.shown):
            start = self._column(x, columns)
            # A label begins at its column; at the right edge it ends there.
            start = min(start, columns - len(label))
            if start >= 0 and all(c == " " for c in row[max(0, start - 1) : start + len(label) + 1]):
                row[start : start + len(label)] = label
        return (("label", " " * GUTTER + "".join(row)),)

    def _place(self, x: int, y: int) -> tuple[int, float | None] | None:
        """(number of the chart, x on its axis) of a cell."""
        width, height = self.size
        view = self.view
        if view.single:
            number, column, wide = view.chosen, x, width
        else:
            across, down = self.grid(width, height)
            wide = (width - GAP_COLUMNS * (across - 1)) // across
            rows = max(1, (height - 1) // down)
            number = (self.top + min(max(0, y) // rows, down - 1)) * across + min(x // (wide + GAP_COLUMNS), across - 1)
            column = x % (wide + GAP_COLUMNS)
        if number >= len(view.charts):
            return None
        columns = wide - GUTTER
        at = column - GUTTER
        inside = 0 <= at < columns
        return number, view.shown.since + (at + 0.5) / columns * view.shown.length if inside else None

    def _pointed(self, what: Literal["click", "in", "out"], event: events.MouseEvent) -> None:
        place = self._place(event.x - self.gutter.left, event.y - self.gutter.top)
        if place is not None:
            self.post_message(self.Pointed(what, *place))

    def on_click(self, event: events.Click) -> None:
        """Choose the chart, and put the cursor there."""
        self._pointed("click", event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._pointed("in", event)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._pointed("out", event)


def _at_least(bounds: tuple[float, float], span: float) -> tuple[float, float]:
    low, high = bounds
    missing = span - (high - low)
    if missing <= 0:
        return bounds
    begin = low - missing / 2
    return (0.0, span) if begin < 0 <= low else (begin, high + missing / 2)
