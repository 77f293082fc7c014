"""Rows of readings with level and sparkline, shared by the GPU and memory panes."""

from collections.abc import Mapping, Sequence

from ...core.views.panes.meter import Meter
from ..ui.cells import Line, Span, pad, right
from ..ui.chart import spark
from ..ui.glyphs import LEVEL_WORDS, Glyphs
from ..ui.last_value import LastValue
from ..ui.series import Columns, SeriesQuery, stretch
from ..ui.time_window import TimeWindow

SPARK_LEAST = 6
EXTRA_FROM = 52
"""Columns from which there is room for the second form of a value."""


def meter_lines(
    meters: Sequence[Meter],
    width: int,
    window: TimeWindow,
    series: Mapping[SeriesQuery, Columns],
    *,
    glyphs: Glyphs,
    last_values: LastValue,
) -> list[Line]:
    """A line a meter: label, value, level, sparkline of the window."""
    label, text, extra, cells = _columns(meters, width)
    lines: list[Line] = []
    for meter in meters:
        word = LEVEL_WORDS[meter.level]
        line: list[Span] = [
            ("label", pad(meter.label, label)),
            ("strong" if meter.level != "unknown" else "unknown", right(meter.text, text)),
        ]
        if extra:
            line.append(("label", "  " + pad(meter.extra, extra - 2)))
        line.append((meter.level, f" {glyphs.levels[meter.level]} "))
        room = cells
        if word and room >= SPARK_LEAST + len(word) + 1:
            line.append((meter.level, word + " "))
            room -= len(word) + 1
        if room >= SPARK_LEAST:
            line += meter_spark(meter, cells, window, series, last_values, glyphs=glyphs, room=room)
        lines.append(tuple(line))
    return lines


def meter_spark(
    meter: Meter,
    cells: int,
    window: TimeWindow,
    series: Mapping[SeriesQuery, Columns],
    last_values: LastValue,
    *,
    glyphs: Glyphs,
    room: int | None = None,
) -> Line:
    """The sparkline of this many cells, or the newest ``room`` of them."""
    if meter.series is None:
        return (("text", " " * cells),)
    hidden = 0 if room is None else cells - room
    known = series.get(window.series_query(meter.series, cells), ())
    marked = {cell - hidden: style for cell, style in window.marked(cells).items()}

    def drawn() -> Line:
        values = stretch(known, cells)
        values = ((None,) * (cells - len(values)) + values)[hidden:]
        return spark(values, meter.low, meter.high, meter.bounds, glyphs, marked=marked)

    return last_values.get(
        meter.series, (known, cells, hidden, meter.low, meter.high, meter.bounds, glyphs, marked), drawn
    )


def meter_queries(meters: Sequence[Meter], width: int, window: TimeWindow) -> list[SeriesQuery]:
    """The queries for the sparklines that ``meter_lines`` draws at this width."""
    cells = _columns(meters, width)[3]
    if cells < SPARK_LEAST:
        return []
    return [window.series_query(m.series, cells) for m in meters if m.series is not None]


def _columns(meters: Sequence[Meter], width: int) -> tuple[int, int, int, int]:
    """Widths of label, value, second form (0 = none) and sparkline."""
    label = max((len(m.label) for m in meters), default=0) + 1
    text = max(6, *(len(m.text) for m in meters)) if meters else 6
    extra = max((len(m.extra) for m in meters), default=0)
    extra = extra + 2 if extra and width >= EXTRA_FROM else 0
    return label, text, extra, max(0, width - label - text - extra - 3)
