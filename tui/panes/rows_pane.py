"""A list with a cursor."""

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from ..ui.cells import Line, wrap_words
from .pane import Pane


class RowsPane(Pane):
    """``rows`` under fixed ``head`` lines; the cursor is an index into ``rows``, kept in view."""

    rows: tuple[Line, ...] = ()
    head: tuple[Line, ...] = ()
    message = ""
    cursor = 0
    top = 0
    active = True
    ids: tuple[object, ...] = ()
    _chosen: object = None
    _titles = ("", "")
    _hidden = ""

    follow: Callable[["RowsPane"], None] | None = None
    """Called as soon as the cursor has moved: a message would come after rows and cursor have changed again."""

    class Chosen(Message):
        """The row under the cursor was clicked once more."""

        def __init__(self, pane: "RowsPane") -> None:
            super().__init__()
            self.pane = pane

    def show(
        self, rows: Sequence[Line], *, head: Sequence[Line] = (), message: str = "", ids: Sequence[object] = ()
    ) -> None:
        """Draw them; ``message`` is shown if there are none. ``ids``: a cursor that was moved stays on its row's id."""
        self.rows, self.head, self.message, self.ids = tuple(rows), tuple(head), message, tuple(ids)
        if self._chosen in self.ids:
            self.cursor = self.ids.index(self._chosen)
        self.cursor = max(0, min(self.cursor, len(self.rows) - 1))
        self.redraw()

    def move(self, rows: int) -> None:
        """Move the cursor; it stops at the ends."""
        self.go(self.cursor + rows)

    def go(self, row: int) -> None:
        """Put the cursor on a row."""
        row = max(0, min(row, len(self.rows) - 1))
        if row != self.cursor:
            self.cursor = row
            self._chosen = self.ids[row] if row < len(self.ids) else None
            self.redraw()
            if self.follow is not None:
                self.follow(self)

    def set_title(self, title: str, subtitle: str = "") -> None:
        """The texts on the border; on the lower one also how many rows are out of sight."""
        self._titles = (title, subtitle)
        super().set_title(title, " · ".join(filter(None, (subtitle, self._hidden))))

    def lines(self, width: int, height: int) -> list[Line]:
        """Head, then the rows around the cursor."""
        lines = self._shown(width, height)
        below = len(self.rows) - self.top - max(1, height - len(self.head))
        hidden = f"{below} more ↓" if below > 0 else f"{self.top} more ↑" if self.rows and self.top else ""
        if hidden != self._hidden:
            self._hidden = hidden
            self.set_title(*self._titles)
        return lines

    def _shown(self, width: int, height: int) -> list[Line]:
        if not self.rows:
            return [(("label", row),) for row in wrap_words(self.message, width)]
        room = max(1, height - len(self.head))
        self.top = max(0, min(self.top, len(self.rows) - room, self.cursor))
        self.top = max(self.top, self.cursor - room + 1)
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
        ground = Style(bgcolor=self._look("cursor").bgcolor)
        alarm, lit_alarm = self._look("danger").color, ground + Style(color=self._look("danger-lit").color)
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

    def on_mouse_scroll_down(self, _: events.MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        self.move(-1)
