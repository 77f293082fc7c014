"""Several curves on one grid of braille dots (or ASCII characters), each with its colour and its dashes."""

import math
from collections.abc import Sequence

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


class Row:
    """A row of cells: their characters, and the style of each that is drawn; "" of the blank ones."""

    __slots__ = ("chars", "styles")

    def __init__(self, chars: list[str], styles: list[str]) -> None:
        self.chars, self.styles = chars, styles

    def put(self, column: int, style: str, char: str) -> None:
        self.chars[column], self.styles[column] = char, style

    def copied(self) -> "Row":
        """A copy that can be drawn on without changing this row."""
        return Row(self.chars.copy(), self.styles.copy())

    @property
    def line(self) -> Line:
        """The cells as few spans: blank cells take the style of a neighbour, since only letters have its colour."""
        kinds = {*self.styles, ""}
        if len(kinds) < 3 and not kinds & GROUNDED:
            return ((max(kinds) or "text", "".join(self.chars)),)
        spans: list[Span] = []
        for style, char in zip(self.styles, self.chars, strict=True):
            last = spans[-1][0] if spans else "text"
            here = style or (last if last not in GROUNDED else "text")
            if spans and last == here:
                spans[-1] = (last, spans[-1][1] + char)
            else:
                spans.append((here, char))
        return tuple(spans)


GROUNDED = frozenset({"cursor"})
"""Styles that colour blank cells too."""


def plotted(layers: Sequence[Layer], columns: int, rows: int, scale: Scale, glyphs: Glyphs) -> list[Row]:
    """``rows`` rows of ``columns`` cells. Later layers are drawn over earlier ones."""
    drawn = [(_braille if glyphs.braille else _ascii)(layer, columns, rows, scale) for layer in layers]
    if not drawn:
        return [Row([" "] * columns, [""] * columns) for _ in range(rows)]
    for over in drawn[1:]:
        for under, row in zip(drawn[0], over, strict=True):
            for column, style in enumerate(row.styles):
                if not style:
                    continue
                char = row.chars[column]
                if under.styles[column] == style and glyphs.braille:
                    char = chr(ord(char) | ord(under.chars[column]))
                under.put(column, style, char)
    return drawn[0]


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


def _braille(layer: Layer, columns: int, rows: int, scale: Scale) -> list[Row]:
    bits = [bytearray(columns) for _ in range(rows)]
    on, off = DASHES[layer.look % LOOKS]
    before: int | None = None
    for dot, y in enumerate(scale.rows(layer.values[: columns * 2], rows * 4 - 1)):
        if y is None:
            before = None
            continue
        first = last = y
        if before is not None:
            if before < y:
                first = before + 1
            elif before > y:
                last = before - 1
        before = y
        if off and dot % (on + off) >= on:
            continue
        column, masks = dot >> 1, MASKS[dot & 1]
        row, final = first >> 2, last >> 2
        if row == final:
            bits[row][column] |= masks[first & 3][last & 3]
            continue
        bits[row][column] |= masks[first & 3][3]
        for between in range(row + 1, final):
            bits[between][column] |= masks[0][3]
        bits[final][column] |= masks[0][last & 3]
    style = layer.style
    return [Row([BRAILLE[bit] for bit in row], [style if bit else "" for bit in row]) for row in bits]


def _ascii(layer: Layer, columns: int, rows: int, scale: Scale) -> list[Row]:
    drawn = [Row([" "] * columns, [""] * columns) for _ in range(rows)]
    sign = ASCII_SIGNS[layer.look % LOOKS] if not layer.style.startswith("faint") else "."
    for column in range(columns):
        value = next((v for v in layer.values[column * 2 : column * 2 + 2] if v is not None), None)
        share = None if value is None or not math.isfinite(value) else scale.share(value)
        if share is not None:
            drawn[round((1 - share) * (rows - 1))].put(column, layer.style, sign)
    return drawn


BRAILLE = (" ", *(chr(0x2800 + bit) for bit in range(1, 256)))
"""Characters by their dots."""
MASKS = tuple(
    tuple(tuple(sum(DOTS[y][side] for y in range(first, last + 1)) for last in range(4)) for first in range(4))
    for side in (0, 1)
)
"""Side, first and last dot from the top → the dots of a vertical line in one cell."""
