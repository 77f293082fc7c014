"""The columns of a list: each has its heading, its width and the text of its cells in one place.

A list on a screen is a tuple of columns; the pane draws whatever is in it, so a new column is one entry.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

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
