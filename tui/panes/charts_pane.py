"""Charts of metrics in a grid, or a single one, over the time of the run."""

from collections.abc import Mapping

from msgspec.structs import replace
from textual import events
from textual.message import Message

from ...core.model.text import MIB
from ...core.views.charts import value_range
from ...core.views.metrics import BYTES, COUNT, MEMORY, RATE, axis_unit, fitted, value_text, words_of, worst_of
from ...core.views.timeline import TimelineView
from ..ui.cells import Line, beside, cut, pad, right, sentence, spread, width_of
from ..ui.chart import Columns, SeriesQuery, TimeWindow, merged, tick_rows
from .timeline_pane import STEPS, AxisPane

GUTTER = 8
"""Columns for the ticks of the values and a space."""
CHART_COLUMNS = 36
"""Narrowest chart of a grid, gutter included."""
CHART_ROWS = 6
"""Lowest chart of a grid, title included."""
GAP = 2
LEAST_SPANS: dict[str, float] = {"%": 5.0, "°C": 4.0, MEMORY: 8 * MIB, BYTES: 1e6, RATE: 1e3, COUNT: 4.0}
"""Shorter ranges of values are not enlarged: they are jitter."""


class ChartsPane(AxisPane):
    """``charts``: each with the metrics that it draws. ``single``: only the chosen one is shown.

    ``message``: why there are none.
    """

    charts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    chosen = 0
    single = False
    message = ""
    top = 0
    """The first row of charts of the grid that is visible."""

    class Pointed(Message):
        """A chart was clicked."""

        def __init__(self, chart: int) -> None:
            super().__init__()
            self.chart = chart

    def show(self, view: TimelineView, series: Mapping[SeriesQuery, Columns], zoomed: TimeWindow) -> None:
        """Draw it; ``series`` answers ``series_queries``."""
        self.view, self.series, self.zoomed = replace(view, later=""), series, zoomed  # ticks need the room
        self.redraw()

    def grid(self, width: int, height: int) -> tuple[int, int, int]:
        """(charts beside each other, charts above each other, columns of each)."""
        count = 1 if self.single else max(1, len(self.charts))
        across = max(1, min((width + GAP) // (CHART_COLUMNS + GAP), count))
        down = max(1, min((height - 1) // CHART_ROWS, -(-count // across)))
        while across > 1 and -(-count // (across - 1)) <= down:
            across -= 1  # wider charts, if all of them fit anyway
        return across, down, (width - GAP * (across - 1)) // across

    @property
    def in_view(self) -> range:
        """Numbers of the charts that are on the screen."""
        across, down, _ = self.grid(*self.size)
        if self.single:
            return range(self.chosen, self.chosen + 1)
        row, rows = self.chosen // across, -(-len(self.charts) // across)
        self.top = max(0, min(self.top, rows - down, row), row - down + 1)
        return range(self.top * across, min(len(self.charts), (self.top + down) * across))

    def series_queries(self) -> tuple[SeriesQuery, ...]:
        columns = self.grid(*self.size)[2] - GUTTER
        if not self.charts or columns < 4:
            return ()
        shown = [metric for number in self.in_view for metric in self.charts[number][1]]
        return tuple(self.query_of(metric, columns) for metric in dict.fromkeys((*shown, STEPS)))

    def range_of(self, metric: str, values: Columns) -> tuple[float, float] | None:
        found = value_range(values)
        missing = 0.0 if found is None else LEAST_SPANS.get(self.unit(metric), 0.0) - (found[1] - found[0])
        if found is None or missing <= 0:
            return found
        begin = found[0] - missing / 2
        begin = 0.0 if begin < 0 <= found[0] else begin
        return begin, begin + found[1] - found[0] + missing

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.charts:
            return sentence(self.message, width)
        across, down, each = self.grid(width, height)
        shown, lines = self.in_view, list[Line]()
        for row in range(down):
            rows = (height - 1) // down + (row < (height - 1) % down)
            blocks = [self._chart(number, each, rows) for number in shown[row * across : (row + 1) * across]]
            lines += [beside([block[y] for block in blocks], each, GAP) for y in range(rows)]
        return [*lines, beside([self._ticks(GUTTER, each - GUTTER)] * across, each, GAP)]

    def _chart(self, number: int, width: int, rows: int) -> list[Line]:
        """Title with the newest value, and the curve behind its ticks."""
        (metric, drawn_ones), columns = self.charts[number], width - GUTTER
        if columns < 4 or rows < 2:
            return [(("text", " " * width),)] * rows
        unit, chosen = self.unit(metric), number == self.chosen
        answers = {each: (self._answer(each, columns) or (None, ()))[1] for each in drawn_ones}
        values = {each: next((v for v in reversed(known) if v is not None), None) for each, known in answers.items()}
        worst, which, several = drawn_ones[0], "", len(drawn_ones) > 1
        if several and (of_now := {each: v for each, v in values.items() if v is not None}):
            worst, which = worst_of(of_now)
        shared = self.range_of(metric, tuple(v for known in answers.values() for v in known)) if several else None
        drawn, scale = self._drawn(worst, rows - 1, columns, shared)
        others = [self._drawn(each, rows - 1, columns, shared)[0] for each in drawn_ones if several]
        newest = values[worst]
        if unit == "steps/s" and newest:
            newest = 1 / newest
        factor, word = axis_unit(unit, *scale) if scale is not None else (1.0, "")
        value = ("curve", "" if words_of(metric).total else f"  {value_text(newest, unit)}")
        word = "" if value[1].endswith(word) else f" {word}"  # the unit of the ticks, if the value has another one
        sign = f"{self.glyphs.cursor} " if chosen and not self.single else ""
        name = words_of(metric).title + (f", {which}" if which else "")
        title = cut(name + word, max(1, width - width_of((value,)) - 1 - len(sign)))
        lines = [spread((("accent", sign), ("strong" if chosen else "text", title)), (value,), width)]
        if scale is None:
            why = [pad("no value here" if y == (rows - 1) // 2 else "", width - GUTTER) for y in range(rows - 1)]
            return [*lines, *((("label", " " * GUTTER + text),) for text in why)]
        texts = [fitted(tick, GUTTER - 1) if tick else "" for tick in tick_rows(scale, rows - 1, factor)]
        if unit == COUNT:
            texts = ["" if "." in text else text for text in texts]
        hatched = self._hatched(columns)
        for y, (text, row) in enumerate(zip(texts, (pad(row, columns) for row in drawn), strict=True)):
            all_of_it = merged(pad(other[y], columns) for other in others) if several else row
            marked = self._marked("label" if several else "curve", all_of_it, hatched, row if several else "")
            lines.append((("label", right(text, GUTTER - 1) + " "), *marked))
        return lines

    def on_click(self, event: events.Click) -> None:
        across, down, each = self.grid(*self.size)
        x, y = event.x - self.gutter.left, event.y - self.gutter.top
        row = min(max(0, y) // max(1, (self.size.height - 1) // down), down - 1)
        number = self.in_view.start + row * across + min(x // (each + GAP), across - 1)
        if number in self.in_view:
            self.post_message(self.Pointed(number))
