"""A list with a cursor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from ...core.views.columns import Column, shown_columns
from ...core.views.words import Paragraph
from ..ui.cells import Glyphs, Line, Span, cut, margin_of, pad, plain, right, rows_of, sentence, size_of, width_of
from ..ui.chart import bar
from .pane import ScrolledPane

Row = TypeVar("Row")
Ids = Callable[[Any], object] | None
MEASURED = 64
"""Of more rows only the longest one is measured for the widths of the columns."""


class RowsPane(ScrolledPane):
    """``rows`` under fixed ``head`` lines; the cursor is an index into ``rows``, kept in view.

    ``items``: what the rows are of, one each. The cursor stays on its row's id once it was moved.
    """

    rows: tuple[Line, ...] = ()
    items: Sequence[Any] = ()
    head: tuple[Line, ...] = ()
    message = ""
    cursor = 0
    ids: tuple[object, ...] = ()
    chosen: object = None
    """The id of the row that the cursor stays on; None: none yet, so it stays at its place."""
    stays = False
    """It stays on a row also before it was moved."""

    follow: Callable[["RowsPane"], None] | None = None
    """Called as soon as the cursor has moved: a message would come after rows and cursor have changed again."""

    class Chosen(Message):
        """The row under the cursor was clicked once more."""

        def __init__(self, pane: "RowsPane") -> None:
            super().__init__()
            self.pane = pane

    def show(
        self,
        rows: Sequence[Line],
        items: Sequence[Row],
        head: Sequence[Line] = (),
        message: str = "",
        *,
        ids: Ids = None,
    ) -> None:
        """Draw them; ``message`` is shown if there are none. ``ids``: of each item; None: they have none."""
        self.rows, self.items, self.head, self.message = tuple(rows), items, tuple(head), message
        self.ids = () if ids is None else tuple(map(ids, items))
        if self.chosen in self.ids:
            self.cursor = self.ids.index(self.chosen)
        self.cursor = max(0, min(self.cursor, len(self.rows) - 1))
        if self.stays and self.ids:
            self.chosen = self.ids[self.cursor]
        self.redraw()

    def show_table(
        self,
        columns: Sequence[Column[Row]],
        rows: Sequence[Row],
        *,
        title: str,
        note: str = "",
        message: str = "",
        level: Callable[[Row], str] | None = None,
        signs: Mapping[str, Span] = {},
        tail: Callable[[Row, int], Iterable[Span]] = lambda _row, _left: (),
        instead: Callable[[Row], str | None] = lambda _row: None,
        head_from: int = 0,
        ids: Ids = None,
        old: bool = False,
    ) -> None:
        """Draw rows by their columns. ``note``: on the lower border; ``message``: why there are none, else ``note``.

        ``level``: of the sign before a row, by ``signs`` if they are not the usual; ``tail``: what stands behind it, in
        so many cells; ``instead``: a sentence in place of all columns but the first; ``head_from``: the width from
        which on there is a heading, if columns have titles; ``old``: all of it is dimmed.
        """
        self.set_title(title, note if rows or message else "")
        width, signs = self.room, signs or {name: (name, glyph) for name, glyph in self.glyphs.levels.items()}
        widest = sorted(rows, key=lambda row: -sum(len(c.text(row)) for c in columns if c.if_any or c.fit))[:1]
        fit_to = rows if len(rows) <= MEASURED else widest
        sign: Line = (("label", "  "),) if level is not None else ()
        lines: list[Line] = []
        for row in rows:
            cells = row_cells(columns, row, fit_to, width, self.glyphs)
            if (said := instead(row)) is not None:
                cells = [cells[0], ("text", f" {said}")]
            if level is not None:
                style, glyph = signs[level(row)]
                cells = [(style, f"{glyph} "), *cells]
            cells += tail(row, width - width_of(cells))
            lines.append(tuple(("unknown", text) for _, text in cells) if old else tuple(cells))
        head = (*sign, *heading_cells(columns, fit_to, width))
        headed = width >= head_from and any(c.title for c in columns)
        self.show(lines, rows, [head] if headed else [], message or note, ids=ids)

    @property
    def here(self) -> Any:
        """The item under the cursor; None if there is none."""
        return self.items[self.cursor] if self.items else None

    @property
    def room(self) -> int:
        """Cells of a row beside the cursor."""
        return max(0, self.size.width - 2)

    def move(self, rows: int) -> None:
        """Move the cursor; it stops at the ends."""
        self.go(self.cursor + rows)

    def go(self, row: int) -> None:
        """Put the cursor on a row."""
        row = max(0, min(row, len(self.rows) - 1))
        if row != self.cursor:
            self.cursor = row
            self.chosen = self.ids[row] if row < len(self.ids) else None
            self.redraw()
            if self.follow is not None:
                self.follow(self)

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.rows:
            self.tell_hidden("")
            return sentence(self.message, width)
        room = max(1, height - len(self.head))
        self.top = max(0, min(self.top, len(self.rows) - room, self.cursor))
        self.top = max(self.top, self.cursor - room + 1)
        below = len(self.rows) - self.top - room
        self.tell_hidden(f"{below} more ↓" if below > 0 else f"{self.top} more ↑" if self.top else "")
        lines: list[Line] = [(("text", "  "), *line) for line in self.head]
        for number, row in enumerate(self.rows[self.top : self.top + room], self.top):
            lines.append((("accent", f"{self.glyphs.cursor} " if number == self.cursor else "  "), *row))
        return lines

    def redraw(self) -> None:
        """Also repaint the rows that the cursor left and reached: their background changes."""
        before = self._cursor_line
        super().redraw()
        after = len(self.head) + self.cursor - self.top if self.rows else -1
        if before != after:
            self._cursor_line = after
            for y in (before, after):
                self._strips.pop(y, None)
            self.refresh()

    _cursor_line = -1

    def render_line(self, y: int) -> Strip:
        """The line, with another background on the cursor's row."""
        known = y in self._strips
        strip = super().render_line(y)
        if known or y != self._cursor_line:
            return strip
        ground = Style(bgcolor=self.styled("cursor").bgcolor)
        alarm, lit_alarm = self.styled("danger").color, ground + Style(color=self.styled("danger-lit").color)
        parts = ((s.text, s.style or Style()) for s in strip)
        lit = Strip(
            [Segment(text, style + (lit_alarm if style.color == alarm else ground)) for text, style in parts],
            strip.cell_length,
        )
        self._strips[y] = lit
        return lit

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; a second click chooses."""
        row = event.y - self.gutter.top - len(self.head) + self.top
        if event.y - self.gutter.top < len(self.head) or not 0 <= row < len(self.rows):
            return
        if row == self.cursor:
            self.post_message(self.Chosen(self))
        else:
            self.go(row)

    def wheel(self, steps: int) -> None:
        self.move(steps)


# Lines of a list from its columns: the heading, and one line a row.


def heading_cells(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Span]:
    """The titles over the cells."""
    shown = shown_columns(columns, width, rows)
    sizes = _sizes(shown, rows, width)
    return [("label", _aligned(column, column.title, cells)) for column, cells in zip(shown, sizes, strict=True)]


def row_cells(columns: Sequence[Column[Row]], row: Row, rows: Sequence[Row], width: int, glyphs: Glyphs) -> list[Span]:
    """The cells of a row. ``rows``: all of the list, which some widths depend on."""
    spans: list[Span] = []
    shown = shown_columns(columns, width, rows)
    for column, cells in zip(shown, _sizes(shown, rows, width), strict=True):
        share = None if column.share is None else column.share(row)
        if share is None:
            spans.append((column.style_of(row), _aligned(column, plain(column.text(row)), cells)))
        else:
            full, rest = bar(share, cells, glyphs)
            spans += [("text", " " * column.before), ("bar", full), ("label", rest), ("text", " " * column.after)]
    return spans


def _sizes(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[int]:
    """The cells of each column, without the blanks around it."""
    sizes = [_width(column, rows) for column in columns]
    left = width - sum(sizes) - sum(c.before + c.after for c in columns)
    return [max(0, left) if column.fill else cells for column, cells in zip(columns, sizes, strict=True)]


def _width(column: Column[Row], rows: Sequence[Row]) -> int:
    if not column.fit:
        return column.width
    longest = max(len(column.title), *(size_of(plain(column.text(row))) for row in rows), 0)
    return min(column.width or longest, longest)


def _aligned(column: Column[Row], text: str, cells: int) -> str:
    if cells:
        text = right(text, cells) if column.right else pad(cut(text, cells), cells)
    return f"{' ' * column.before}{text}{' ' * column.after}"


# A page of paragraphs that can be scrolled.


class PagePane(ScrolledPane):
    """Shows paragraphs."""

    paragraphs: tuple[Paragraph, ...] = ()
    wheel_rows = 3
    heading = ""
    hint = ""

    def show(self, paragraphs: Sequence[Paragraph], *, title: str = "", hint: str = "") -> None:
        self.paragraphs, self.heading, self.hint = tuple(paragraphs), title, hint
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        rows = self._all(width)
        in_view = list(self.in_view(rows, height))
        more = len(rows) - self.top - height
        self.set_title(self.heading, f"{more} more rows ↓" if more > 0 else self.hint)
        return in_view

    def _all(self, width: int) -> list[Line]:
        margin, rows, above = margin_of(self.paragraphs), list[Line](), ""
        for each in self.paragraphs:
            paragraph = each if not each.label or each.label != above else msgspec.structs.replace(each, label="")
            if (level := each.level) is not None:
                paragraph = msgspec.structs.replace(paragraph, mark=(level, f"{self.glyphs.levels[level]} "))
            above = each.label
            rows += rows_of(paragraph, width, margin)
        return rows
