"""Rows of readings with level and sparkline, shared by the GPU and memory panes."""

from collections.abc import Mapping, Sequence

from ....core.views.metric_words import axis_unit, words_of
from ....core.views.panes.meter import Meter
from ...ui.cells import Line, Span, pad, right
from ...ui.chart import spark, spark_range
from ...ui.glyphs import LEVEL_WORDS, Glyphs
from ...ui.last_value import LastValue
from ...ui.series import Columns, SeriesQuery, stretch
from ...ui.time_window import TimeWindow

SPARK_LEAST = 6
SCALE, SCALE_FROM = 5, 14
"""Cells for the lowest value of a sparkline's scale, and from how many cells on it is written."""
PRESSING = frozenset({"warning", "danger", "unknown"})
"""A number that gets one of these levels, or had it, is shown at once; in the table of several GPUs it has the colour
of its level. The others have one colour there, signs included: no text between two of them changes it, and those that
matter stand out."""
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
    scales = cells >= SCALE_FROM
    if scales:
        cells -= SCALE
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
            if scales:
                low = low_text(meter, series.get(window.series_query(meter.series, cells), ()) if meter.series else ())
                line.append(("label", right(low, SCALE - 1) + " "))
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
    scaled: tuple[float, float] | None = None,
) -> Line:
    """The sparkline of this many cells, or the newest ``room`` of them. ``scaled``: its range; None = its own."""
    if meter.series is None:
        return (("text", " " * cells),)
    hidden = 0 if room is None else cells - room
    known = series.get(window.series_query(meter.series, cells), ())
    marked = {cell - hidden: style for cell, style in window.marked(cells).items()}

    def drawn() -> Line:
        values = stretch(known, cells)
        values = ((None,) * (cells - len(values)) + values)[hidden:]
        low, high = spark_range(values, meter.low, meter.high) if scaled is None else scaled
        return spark(values, low, high, meter.bounds, glyphs, marked=marked)

    return last_values.get(
        meter.series, (known, cells, hidden, meter.low, meter.high, scaled, meter.bounds, glyphs, marked), drawn
    )


def low_text(meter: Meter, known: Columns) -> str:
    """Where the scale of its sparkline begins: 95, 14.2; in the unit of the reading."""
    low, high = spark_range(known, meter.low, meter.high)
    if meter.series is None or not any(v is not None for v in known):
        return ""
    if meter.whole:
        return f"{100 * low / meter.whole:.0f}"
    factor, _ = axis_unit(words_of(meter.series).unit, low, high)
    return f"{low / factor:.3g}"[: SCALE - 1].rstrip(".")


def meter_cuts(meters: Sequence[Meter], width: int) -> tuple[int, ...]:
    """The column where the sparklines begin."""
    label, text, extra, cells = _columns(meters, width)
    return (label + text + extra + 3,) if cells >= SPARK_LEAST else ()


def meter_queries(meters: Sequence[Meter], width: int, window: TimeWindow) -> list[SeriesQuery]:
    """The queries for the sparklines that ``meter_lines`` draws at this width."""
    cells = _columns(meters, width)[3]
    cells -= SCALE if cells >= SCALE_FROM else 0
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
