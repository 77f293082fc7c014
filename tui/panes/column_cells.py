"""Lines of a list from its columns: the heading, and one line a row."""

from collections.abc import Sequence
from typing import TypeVar

from ...core.views.columns import Column, is_number, shown_columns
from ..ui.cells import Span, cut, pad, plain, right, width_of
from ..ui.chart import bar
from ..ui.glyphs import Glyphs

Row = TypeVar("Row")


def heading_cells(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Span]:
    """The titles over the cells."""
    shown = shown_columns(columns, width, rows)
    return [("label", _aligned(column, column.title, _width(column, rows))) for column in shown]


def row_cells(columns: Sequence[Column[Row]], row: Row, rows: Sequence[Row], width: int, glyphs: Glyphs) -> list[Span]:
    """The cells of a row. ``rows``: all of the list, which some widths depend on."""
    spans: list[Span] = []
    for column in shown_columns(columns, width, rows):
        cells = _width(column, rows)
        share = None if column.share is None else column.share(row)
        if share is None:
            spans.append((column.style_of(row), _aligned(column, plain(column.text(row)), cells)))
        else:
            full, rest = bar(share, cells, glyphs)
            spans += [("text", " " * column.before), ("bar", full), ("bar-rest", rest), ("text", " " * column.after)]
    return spans


def value_cell(text: str, cells: int) -> str:
    """A value among values of any kind, in so many cells: numbers are right-aligned."""
    return right(text, cells) if is_number(text) else pad(cut(text, cells), cells)


def _width(column: Column[Row], rows: Sequence[Row]) -> int:
    if not column.fit:
        return column.width
    return min(column.width, max(len(column.title), *(width_of((("", plain(column.text(row))),)) for row in rows), 0))


def _aligned(column: Column[Row], text: str, cells: int) -> str:
    if cells:
        text = right(text, cells) if column.right else pad(cut(text, cells), cells)
    return f"{' ' * column.before}{text}{' ' * column.after}"
