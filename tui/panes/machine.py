"""The gauges of the machine's pages."""

from collections.abc import Mapping, Sequence

from ...core.views.charts import round_step
from ...core.views.dashboard import Meter
from ...core.views.machine_page import axis_ends
from ...core.views.quantity import UNKNOWN
from ...core.views.state.run_progress import SEVERITY, level_in
from ..ui.cells import LEVEL_WORDS, Line, Span, beside, cut, fit, pad, right, sentence, spread, width_of
from ..ui.chart import Charts, Columns, SeriesQuery, TimeWindow, curve, stretch
from .dashboard_panes import meter_spark
from .pane import ScrolledPane

# Gauges: readings with their curves in a grid, or a line each if there is little room.

GAP = 2
GAUGE_COLUMNS = 34
"""Narrowest gauge with a curve beside others."""
GAUGE_ROWS = 3
"""Lowest gauge with a curve: its heading and two rows."""
WIDEST = 84
"""A wider pane has gauges beside each other."""
MOST_ROWS = 8
GUTTER = 11
"""Columns for the labels of the axis."""

SPARK_LEAST = 8


class GaugesPane(ScrolledPane):
    """Shows gauges."""

    gauges: tuple[Meter, ...] = ()
    window = TimeWindow()
    charts = Charts()
    message = ""

    def show(
        self, gauges: Sequence[Meter], series: Mapping[SeriesQuery, Columns], window: TimeWindow, *, message: str = ""
    ) -> None:
        """Draw them; ``series`` answers ``series_queries``; ``message``: why there are none."""
        self.gauges, self.window, self.message = tuple(gauges), window, message
        self.charts = self.charts.followed_by(series, window, self.series_queries())
        self.redraw()

    def series_queries(self) -> tuple[SeriesQuery, ...]:
        width, height = self.size
        if not width or not height or not self.gauges:
            return ()
        cells = self._cells(width, height)
        return tuple(self.window.series_query(g.series, cells) for g in self.gauges if g.series is not None)

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.gauges:
            return sentence(self.message, width)
        across, rows = self._grid(width, height)
        each = (width - GAP * (across - 1)) // across
        axis = rows >= GAUGE_ROWS and height > rows
        height -= axis
        drawn = [self._gauge(gauge, each, rows) for gauge in self.gauges]
        lines = [
            beside(parts, each, GAP)
            for first in range(0, len(drawn), across)
            for parts in zip(*drawn[first : first + across], strict=True)
        ]
        in_view = list(self.in_view(lines, height))
        below = -(-(len(lines) - self.top - height) // rows) * across if len(lines) > self.top + height else 0
        self.tell_hidden("" if not below else f"{min(below, len(self.gauges))} more ↓")
        if axis:
            since, until = self.charts.window.ends
            ends = spread((("label", " " * GUTTER + since),), (("label", until),), each)
            in_view += [*((),) * (height - len(in_view)), beside([ends] * across, each, GAP)]
        return in_view

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """(gauges beside each other, rows of each); 1 row: a line each, with a sparkline."""
        count = max(1, len(self.gauges))
        most = max(1, min((width + GAP) // (GAUGE_COLUMNS + GAP), count))
        for across in range(min(most, 1 + width // WIDEST), most + 1):
            down = -(-count // across)
            rows = (height - 1) // down  # one for the time axis
            if rows >= 5 or (across == most and rows >= GAUGE_ROWS):
                return across, min(MOST_ROWS, rows)
        side_by_side = count > height and (width - GAP * (most - 1)) // most >= self._fixed() + SPARK_LEAST
        return (most if side_by_side else 1), 1

    def _cells(self, width: int, height: int) -> int:
        """How many values a curve shows: two for each column of braille, one for each of a sparkline."""
        across, rows = self._grid(width, height)
        each = (width - GAP * (across - 1)) // across
        if rows < GAUGE_ROWS:
            return max(1, each - self._fixed())
        return max(1, each - GUTTER) * 2

    def _fixed(self) -> int:
        """Columns of title, value and level of a gauge in one line."""
        return max(len(g.label) for g in self.gauges) + max(len(g.text) for g in self.gauges) + 5

    def _gauge(self, gauge: Meter, width: int, rows: int) -> list[Line]:
        if rows < GAUGE_ROWS:
            return [self._one_line(gauge, width)]
        known = gauge.text != UNKNOWN  # one sign is enough for what is not known
        level = (gauge.level, f" {self.glyphs.levels[gauge.level]}" if known else "")
        value: Span = ("strong" if gauge.level != "unknown" else "unknown", gauge.text)
        word: Span = (gauge.level, f" {LEVEL_WORDS[gauge.level]}" if LEVEL_WORDS[gauge.level] else "")
        title = cut(gauge.label, max(4, width - width_of((value, level, word)) - 2))
        return [(("label", f"{title}  "), value, level, word), *self._curve(gauge, width, rows - 1)]

    def _curve(self, gauge: Meter, width: int, rows: int) -> list[Line]:
        cells = max(1, width - GUTTER)
        values = stretch(self.charts.of(gauge.series or "", cells * 2), cells * 2)
        values = ((None,) * (cells * 2 - len(values)) + values)[: cells * 2]
        known = [value for value in values if value is not None]
        high = gauge.high if gauge.high is not None else round_step(max([*known, gauge.low]), 1)
        upper, lower = axis_ends(gauge.series or "", gauge.low, high)
        ends = (upper if known or gauge.high is not None else "", lower)
        if high <= gauge.low:
            high = gauge.low + 1.0
            ends = ("", ends[1])
        drawn = curve(values, rows, gauge.low, high, self.glyphs)
        styles = [_style(gauge, values[at * 2 : at * 2 + 2]) for at in range(cells)]
        marks = self.charts.window.marked(cells)
        lines: list[Line] = []
        for number, row in enumerate(drawn):
            label = ends[0] if number == 0 else ends[1] if number == rows - 1 else ""
            line: list[Span] = [("label", right(label, GUTTER - 2)), ("faint", " ┤" if label else " │")]
            style = "text"
            for at, char in enumerate(row):
                if char == " " and marks.get(at) == "mark":
                    line.append(("mark", self.glyphs.mark))
                    continue
                style = style if char == " " else styles[at]  # no other style, so no repaint, where nothing is seen
                line.append((style, char))
            lines.append(fit(line, width))
        return lines

    def _one_line(self, gauge: Meter, width: int) -> Line:
        text = max(len(g.text) for g in self.gauges)
        title = min(max(len(g.label) for g in self.gauges), max(4, width - text - 4))
        cells = width - self._fixed()
        line: list[Span] = [
            ("label", pad(cut(gauge.label, title), title) + " "),
            ("strong" if gauge.level != "unknown" else "unknown", right(gauge.text, text)),
            (gauge.level, f" {self.glyphs.levels[gauge.level]} "),
        ]
        if cells >= SPARK_LEAST:
            line += meter_spark(self.glyphs, self.charts, gauge, cells)
        return tuple(line)


def _style(gauge: Meter, values: Columns) -> str:
    """The style of a cell: that of the worst of its values."""
    levels = [level_in(gauge.bounds, value) for value in values if value is not None]
    return f"spark-{max(levels, key=SEVERITY.__getitem__)}" if levels else "text"
