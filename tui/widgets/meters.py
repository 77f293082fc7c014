"""Rows of readings with level and sparkline, shared by the GPU and memory panes."""

from collections.abc import Mapping, Sequence

from ...core.views.meter import Meter
from ..cells import Line, Span, pad, right
from ..chart import spark
from ..glyphs import LEVEL_WORDS, Glyphs
from ..series import Columns, Wish, stretch

SPARK_LEAST = 6
EXTRA_FROM = 52
"""Columns from which there is room for the second spelling of a value."""
COLUMN_LEAST_S = 2.0
"""Narrower columns would show the jitter of the sampling as gaps."""


def meter_lines(
    meters: Sequence[Meter], width: int, window_s: float, series: Mapping[Wish, Columns], glyphs: Glyphs
) -> list[Line]:
    """A line a meter: label, value, level, sparkline of the newest ``window_s``."""
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
        wish = wish_for(meter, cells, window_s)
        if wish is not None and room >= SPARK_LEAST:
            values = stretch(series.get(wish, ()), cells)[-room:]
            values = (None,) * (room - len(values)) + values
            line += spark(values, meter.low, meter.high, meter.bounds, glyphs)
        lines.append(tuple(line))
    return lines


def meter_wishes(meters: Sequence[Meter], width: int, window_s: float) -> list[Wish]:
    """The histories that ``meter_lines`` of this width draws."""
    cells = _columns(meters, width)[3]
    if cells < SPARK_LEAST:
        return []
    found = (wish_for(m, cells, window_s) for m in meters)
    return [w for w in found if w is not None]


def wish_for(meter: Meter, cells: int, window_s: float) -> Wish | None:
    """The history behind a meter's sparkline of that many cells."""
    if meter.series is None or cells < 1:
        return None
    return Wish(meter.series, max(1, min(cells, int(window_s / COLUMN_LEAST_S))), window_s)


def _columns(meters: Sequence[Meter], width: int) -> tuple[int, int, int, int]:
    """Widths of label, value, second spelling (0 = none) and sparkline."""
    label = max((len(m.label) for m in meters), default=0) + 1
    text = max(6, *(len(m.text) for m in meters)) if meters else 6
    extra = max((len(m.extra) for m in meters), default=0)
    extra = extra + 2 if extra and width >= EXTRA_FROM else 0
    return label, text, extra, max(0, width - label - text - extra - 3)
