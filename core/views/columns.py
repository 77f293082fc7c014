"""The columns of a list: each has its heading, its width and the text of its cells in one place.

A list on a screen, or one that a verb prints, is a tuple of columns; what is in it is drawn, so a new column is one
entry. A column of numbers is right-aligned, so that units and digits stand below each other.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from ..model.text.patterns import LazyPattern

Row = TypeVar("Row")


class Column(msgspec.Struct, Generic[Row], frozen=True, kw_only=True):
    """One column. Widths are in terminal cells.

    ``width``: of the cell, 0 = as long as its text; ``fit``: at most ``width``, no wider than the longest text.
    ``from_width``, ``below_width``: the list's width from which on, and below which, the column is shown.
    ``before``, ``after``: blanks around it. ``share``: drawn as a bar of this share (0..1, None = blank) instead of
    text. ``style``: name of a style, or a function that returns it for a row.
    """

    title: str
    text: Callable[[Row], str] = lambda _row: ""
    width: int = 0
    fit: bool = False
    right: bool = False
    before: int = 0
    after: int = 0
    style: str | Callable[[Row], str] = "text"
    from_width: int = 0
    below_width: int | None = None
    share: Callable[[Row], float | None] | None = None
    if_any: bool = False
    """Left out if no row has a text in it."""

    def style_of(self, row: Row) -> str:
        return self.style if isinstance(self.style, str) else self.style(row)


def shown_columns(columns: Sequence[Column[Row]], width: int, rows: Sequence[Row]) -> list[Column[Row]]:
    """The columns that a list of this width shows."""
    fit = [c for c in columns if c.from_width <= width and (c.below_width is None or width < c.below_width)]
    return [c for c in fit if not c.if_any or any(c.text(row) for row in rows)]


_UNIT = r"(?:%|°C|W|cores|s/step|steps/s|s|ms|min|h|d|m|[kMGT]?B(?:/s)?|[MG]iB|MHz)"
_NUMBER = LazyPattern(
    r"(?:step |epoch |attempt )?[-+]?(?:\d[\d,.]*(?:e-?\d+)?|[Nn]a[Nn]|[Ii]nf)(?: of \d[\d,.]*|/\d[\d,.]*)?"
    rf"(?: {_UNIT}(?: \d+ {_UNIT})?)?(?: ago)?"
)


def is_number(text: str) -> bool:
    """True of ``2``, ``1,250 of 4,000``, ``15.4 GiB``, ``2.50 s/step``, ``18 min ago``, ``step 1,250``, ``NaN``."""
    return _NUMBER.fullmatch(text) is not None


def text_rows(columns: Sequence[Column[Row]], rows: Sequence[Row], *, titles: bool = False) -> list[str]:
    """The lines that a verb prints: two blanks between the columns, each as wide as its longest text.

    ``titles``: with a heading. Widths, blanks and styles of the columns are of the screen.
    """
    shown = [c for c in columns if not c.if_any or any(c.text(row) for row in rows)]
    cells = [[c.title for c in shown]] if titles else []
    cells += [[c.text(row) for c in shown] for row in rows]
    sizes = [max((len(line[number]) for line in cells), default=0) for number in range(len(shown))]
    return [
        "  ".join(
            text.rjust(size) if c.right else text.ljust(size) for c, text, size in zip(shown, line, sizes, strict=True)
        ).rstrip()
        for line in cells
    ]
