"""The pane that shows a part of a log: lines with times in the gutter, a cursor, marked lines, unfolded bars."""

import re
from collections.abc import Callable

from textual import events
from textual.message import Message

from ...core.model.text.edge import EDGE
from ..panes.pane import Pane
from ..ui.cells import Line, Span, pad, plain, wrap_words
from .log_rows import drawn, rows_of
from .log_window import LogWindow

WHEEL_ROWS = 3
FULL_TIME_COLUMNS = 70
"""Narrower screens leave the seconds out of the gutter."""
FEW_ROWS = 3
BAR_SIGN = {"unicode": "≡", "ascii": "="}


class LogView(Pane):
    """``top``/``skip``: index of the first visible line, and how many of its rows are cut; ``cursor``: an index, too.

    ``marked_from``: offset of the line where marking began. ``clock`` turns run seconds into a time of day.
    """

    window = LogWindow()
    following = True
    wrapped = True
    left = 0
    top = 0
    skip = 0
    cursor = 0
    marked_from: int | None = None
    pattern: re.Pattern[str] | None = None
    clock: Callable[[float], str] | None = None
    message = ""

    def __init__(self, *, id: str | None = None, compact: bool = False) -> None:  # noqa: A002  Textual's name
        """``compact``: without gutter, and so without a visible cursor."""
        super().__init__(id=id)
        self.compact = compact
        self.unfolded: dict[int, tuple[str, ...]] = {}

    @property
    def _wraps(self) -> bool:
        """A pane of few rows shows the beginnings of lines: the end of one says nothing."""
        return self.wrapped and not (self.compact and self.size.height <= FEW_ROWS)

    class Wanted(Message):
        """Sent by wheel and pointer: rows to scroll, or the line for the cursor."""

        def __init__(self, *, rows: int = 0, line: int | None = None, extend: bool = False) -> None:
            super().__init__()
            self.rows, self.line, self.extend = rows, line, extend

    def to_end(self) -> None:
        """Scroll so that the last row is at the bottom."""
        self.cursor = max(0, len(self.window) - 1)
        self.top, self.skip = len(self.window), 0
        self._up(self.size.height)

    def scroll(self, rows: int) -> None:
        """Scroll down (positive) or up within the window; the cursor stays visible."""
        if rows < 0:
            self._up(-rows)
        else:
            for _ in range(rows):
                if self._rows_below(self.size.height) <= 0:
                    break
                self.skip += 1
                if self.skip >= self._rows_of(self.top):
                    self.top, self.skip = self.top + 1, 0
        first, last = self.visible_lines
        self.cursor = max(first, min(self.cursor, last))

    def move(self, lines: int) -> None:
        """Move the cursor, and scroll it into view."""
        self.cursor = max(0, min(len(self.window) - 1, self.cursor + lines))
        self.reveal()

    def reveal(self, share: float | None = None) -> None:
        """Scroll the cursor into view; ``share``: to this part of the height (0 top, 1 bottom) in any case."""
        if not len(self.window):
            return
        height = self.size.height
        first, last = self.visible_lines
        if share is None:
            if self.cursor < first or (self.cursor == self.top and self.skip):
                self.top, self.skip = self.cursor, 0
                return
            if self.cursor <= last and not self._cut_off(self.cursor):
                return
            share = 1.0
        self.top, self.skip = self.cursor, 0
        self._up(max(0, round(share * height) - self._rows_of(self.cursor)))
        if self.window.at_end:
            self._up(-self._rows_below(height))  # no empty rows below the end

    def shift(self, lines: int) -> None:
        """Adjust top and cursor after the window's lines moved down by this many (negative: up)."""
        self.top, self.cursor = max(0, self.top + lines), max(0, self.cursor + lines)

    @property
    def selection(self) -> tuple[int, int]:
        """Offsets of the first and last chosen line: the marked ones, else the cursor's."""
        if not len(self.window):
            return 0, -1
        here = self.window.lines[min(self.cursor, len(self.window) - 1)].offset
        other = here if self.marked_from is None else self.marked_from
        return min(here, other), max(here, other)

    @property
    def visible_lines(self) -> tuple[int, int]:
        """First and last line with a row in view."""
        room = self.size.height + self.skip
        at = self.top
        while at < len(self.window) - 1 and (room := room - self._rows_of(at)) > 0:
            at += 1
        return self.top, at

    def lines(self, width: int, height: int) -> list[Line]:
        """Rows from the top line on."""
        if not len(self.window):
            return [(("label", row),) for row in wrap_words(self.message, width)]
        rows: list[Line] = []
        at, skip = self.top, self.skip
        before = None
        while len(rows) < height and at < len(self.window):
            drawn, before = self._drawn(at, width, before)
            rows += drawn[skip:]
            at, skip = at + 1, 0
        return rows[:height]

    def on_resize(self, _: events.Resize) -> None:
        """Keep the end, or the top line, in place."""
        if self.following:
            self.to_end()
        elif len(self.window):
            self.skip = min(self.skip, self._rows_of(min(self.top, len(self.window) - 1)) - 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Wanted(rows=WHEEL_ROWS))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Wanted(rows=-WHEEL_ROWS))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Put the cursor on the line under the pointer."""
        self.post_message(self.Wanted(line=self._line_at(event.y - self.gutter.top), extend=event.shift))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark lines while dragging."""
        if event.button == 1:
            line = self._line_at(event.y - self.gutter.top)
            if line != self.cursor:
                self.post_message(self.Wanted(line=line, extend=True))

    def _line_at(self, y: int) -> int:
        at, room = self.top, y + self.skip
        while at < len(self.window) - 1 and (room := room - self._rows_of(at)) >= 0:
            at += 1
        return at

    def _up(self, rows: int) -> None:
        while rows > 0:
            if self.skip:
                step = min(self.skip, rows)
                self.skip -= step
            elif self.top > 0:
                self.top -= 1
                step = min(self._rows_of(self.top), rows)
                self.skip = self._rows_of(self.top) - step
            else:
                return
            rows -= step

    def _rows_below(self, height: int) -> int:
        """Rows under the lowest one in view, at most a screen of them."""
        rows = -self.skip
        for at in range(self.top, len(self.window)):
            rows += self._rows_of(at)
            if rows > 2 * height:
                break
        return rows - height

    def _cut_off(self, index: int) -> bool:
        rows = sum(self._rows_of(at) for at in range(self.top, index + 1)) - self.skip
        return rows > self.size.height

    def _rows_of(self, index: int) -> int:
        line = self.window.lines[index]
        rows = rows_of(line, self._room(self.size.width)) if self._wraps else 1
        return rows + len(self.unfolded.get(line.offset, ()))

    def _room(self, width: int) -> int:
        return max(8, width - self._gutter(width))

    def _gutter(self, width: int) -> int:
        """A sign and a space, before them the time if any is known."""
        if self.compact:
            return 0
        if not self.window.times or self.clock is None:
            return 2
        return 11 if width >= FULL_TIME_COLUMNS else 8

    def _drawn(self, index: int, width: int, before: str | None) -> tuple[list[Line], str | None]:
        """The rows of a line; its time is left out if the line above has the same."""
        line = self.window.lines[index]
        gutter = self._gutter(width)
        margin: list[Span] = []
        time = before
        if gutter > 2 and self.clock is not None:
            t = self.window.times.get(line.offset)
            time = self.clock(t)[: gutter - 3] if t is not None else None
            margin.append(("label", pad(time if time is not None and time != before else "", gutter - 2)))
        here = not self.following and index == self.cursor
        first, last = self.selection
        marked = self.marked_from is not None and first <= line.offset <= last
        sign = self.glyphs.cursor if here else BAR_SIGN[self.glyphs.name] if line.states > 1 else " "
        if gutter:
            margin.append(("accent", f"{sign} "))
        rows = drawn(
            line,
            self._room(width),
            self.pattern,
            self.glyphs.ellipsis,
            wrap=self._wraps,
            left=self.left,
            marked=marked,
        )
        blank: Span = ("text", " " * gutter)
        states = self.unfolded.get(line.offset, ())
        dot: tuple[Span, Span] = (("text", " " * (gutter - 2)), ("faint", f"{self.glyphs.dot} "))
        above: list[Line] = [(*dot, ("label", plain(EDGE.text(state)))) for state in states]
        below: list[Line] = [(*(margin if n == 0 else [blank]), *row) for n, row in enumerate(rows)]
        return above + below, time
