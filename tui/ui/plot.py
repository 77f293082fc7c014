"""Several curves on one grid of braille dots (or ASCII characters), each with its colour and its dashes."""

import math
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from ...core.views.charts.axis import log_ticks, ticks
from ...core.views.metric_words import tick_text
from .cells import Line, Span
from .chart import DOTS
from .glyphs import Glyphs

DASHES: tuple[tuple[int, int], ...] = ((1, 0), (5, 2), (2, 2), (7, 2), (3, 3), (1, 2))
"""Dots that are drawn and left out in turn, by look: curves differ without colours too."""
ASCII_SIGNS = "*o+x#%"
LOOKS = len(DASHES)


class Layer(msgspec.Struct, frozen=True):
    """``values``: one a dot (two a cell), None is a gap. ``style``: of its cells. ``look``: of its dashes."""

    values: tuple[float | None, ...]
    style: str
    look: int = 0


class Scale(msgspec.Struct, frozen=True):
    """From ``low`` at the bottom to ``high`` at the top."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float | None:
        """0 at the bottom, 1 at the top; None if a log scale has no place for it. Values outside lie on the edge."""
        low, high = self.low, self.high
        if self.log:
            if value <= 0:
                return None
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return min(1.0, max(0.0, (value - low) / max(high - low, 1e-300)))

    def rows(self, values: Sequence[float | None], last: int) -> list[int | None]:
        """The row of each value, from 0 at the top to ``last``; None: no value, or no place on a log scale."""
        if self.log:
            shares = [None if v is None or not math.isfinite(v) else self.share(v) for v in values]
            return [None if share is None else round((1 - share) * last) for share in shares]
        high, factor = self.high, last / max(self.high - self.low, 1e-300)
        return [
            None if v is None or not math.isfinite(v) else min(last, max(0, round((high - v) * factor))) for v in values
        ]


def plotted(layers: Sequence[Layer], columns: int, rows: int, scale: Scale, glyphs: Glyphs) -> list[list[Span]]:
    """``rows`` lists of ``columns`` cells (style, character). Later layers are drawn over earlier ones."""
    return _braille(layers, columns, rows, scale) if glyphs.braille else _ascii(layers, columns, rows, scale)


def tick_rows(scale: Scale, rows: int, factor: float = 1.0) -> list[str]:
    """The ticks of the values by row, at least two numbers if there are two rows; ``factor``: of their unit."""
    most = max(1, min(rows - 1, 2 + rows // 4))
    low, high = scale.low / factor, scale.high / factor
    found = log_ticks(low, high, most) if scale.log else ticks(low, high, most)
    for more in (most + 1, most + 2, most + 3):
        if len(found) < 2 and not scale.log:
            found = ticks(low, high, more)
    rounded = len(found) > 1 and rows > 2  # on two rows a round number would stand far from its place
    if not rounded and rows > 1:
        found = (low, high)  # two numbers tell the scale
    step = found[1] - found[0] if rounded and not scale.log else 0.0
    texts = [""] * rows
    for value in found:
        share = scale.share(value * factor)
        if share is not None:
            texts[round((1 - share) * (rows * 4 - 1)) // 4] = tick_text(value, step)  # the row of its braille dot
    return texts


def _braille(layers: Sequence[Layer], columns: int, rows: int, scale: Scale) -> list[list[Span]]:
    height = rows * 4
    bits = [[0] * columns for _ in range(rows)]
    styles = [["text"] * columns for _ in range(rows)]
    for layer in layers:
        on, off = DASHES[layer.look % LOOKS]
        before: int | None = None
        for dot, y in enumerate(scale.rows(layer.values[: columns * 2], height - 1)):
            if y is None:
                before = None
                continue
            first, last = (y, y) if before is None else (min(y, before), max(y, before))
            if before is not None and last > first:
                first, last = (first + 1, last) if before < y else (first, last - 1)
            before = y
            if dot % (on + off) >= on:
                continue
            column, side = dot // 2, dot % 2
            for at in range(first, last + 1):
                row = at // 4
                if styles[row][column] != layer.style:
                    bits[row][column], styles[row][column] = 0, layer.style
                bits[row][column] |= DOTS[at % 4][side]
    return [
        [(style if bit else "text", chr(0x2800 + bit) if bit else " ") for bit, style in zip(*both, strict=True)]
        for both in zip(bits, styles, strict=True)
    ]


def _ascii(layers: Sequence[Layer], columns: int, rows: int, scale: Scale) -> list[list[Span]]:
    cells: list[list[Span]] = [[("text", " ")] * columns for _ in range(rows)]
    for layer in layers:
        sign = ASCII_SIGNS[layer.look % LOOKS] if not layer.style.startswith("faint") else "."
        for column in range(columns):
            value = next((v for v in layer.values[column * 2 : column * 2 + 2] if v is not None), None)
            share = None if value is None or not math.isfinite(value) else scale.share(value)
            if share is not None:
                cells[round((1 - share) * (rows - 1))][column] = (layer.style, sign)
    return cells


def line_of(cells: Sequence[Span]) -> Line:
    """Cells as spans of equal style."""
    return tuple((style, "".join([text for _, text in run])) for style, run in groupby(cells, _STYLE))


_STYLE = itemgetter(0)
