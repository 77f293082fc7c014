"""The pane that shows a part of a log: lines with times in the gutter, a cursor, marked lines."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise

import msgspec
from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message

from ...core.model.log_lines import ALARM, WARN, LogLine, LogStretch
from ...core.model.redact import EDGE
from ..panes.pane import OWN_COLOUR, Pane
from ..ui.cells import Line, Span, cut, pad, plain, sentence, wrapped

# The rows that a line of a log takes on the screen, in its own colours.

INDENT = "  "
Paint = tuple[int, int, str]
"""(first character, end, style)."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a line that stands on rows of its own: a message, or the bar before it."""

    text: str
    style: str
    paints: tuple[Paint, ...] = ()


@lru_cache(maxsize=256)
def pieces_of(line: LogLine) -> tuple[Piece, ...]:
    """The message of a line, and before it the bar that it was printed behind or over. A new line moves all others."""
    text = EDGE.text(line.text)
    colours = colours_of(line) if text == line.text else ()  # what is hidden has moved the rest
    at = line.cut if text == line.text else 0
    over = (Piece(plain(EDGE.text(line.bar)), "label"),) if line.bar else ()
    if not at:
        return (*over, _piece(text, colours))
    moved = tuple((max(0, begin - at), end - at, style) for begin, end, style in colours if end > at)
    return (*over, _piece(text[:at].rstrip(), colours), _piece(text[at:], moved))


def colours_of(line: LogLine) -> tuple[Paint, ...]:
    """The colours that the program asked for, without blinking and hiding: a log cannot hide a line."""
    shown = Text.from_ansi(line.ansi, end="")
    if not line.ansi or not shown.plain.startswith(line.text):
        return ()
    found = []
    for begin, end, asked in shown.spans:
        style = asked if isinstance(asked, Style) else Style.parse(asked)
        forms = {name: getattr(style, name) or None for name in ("bold", "dim", "italic", "underline", "reverse")}
        kept = Style(color=style.color, bgcolor=style.bgcolor, **forms)
        if kept and begin < len(line.text):
            found.append((begin, min(end, len(line.text)), str(kept)))
    return tuple(found)


def rows_of(line: LogLine, room: int) -> int:
    """How many rows ``drawn`` returns with ``wrap``."""
    if not line.cut and not line.bar and len(line.text) <= room and line.text.isascii():
        return 1
    return sum(len(wrapped(piece.text, room, len(INDENT))) for piece in pieces_of(line))


def drawn(
    line: LogLine, room: int, pattern: re.Pattern[str] | None, ellipsis: str, *, wrap: bool, marked: bool = False
) -> list[Line]:
    """Rows of ``room`` cells. Without ``wrap``: one row."""
    pieces = pieces_of(line)
    if marked:
        pieces = tuple(Piece(piece.text, "cursor") for piece in pieces)
    if not wrap:
        return [_cut_row(pieces[-1], room, pattern, ellipsis)]
    rows: list[Line] = []
    for piece in pieces:
        for number, (begin, end) in enumerate(wrapped(piece.text, room, len(INDENT))):
            indent: Line = ((piece.style, INDENT),) if number else ()
            rows.append((*indent, *_spans(piece, begin, end, pattern)))
    return rows


def _cut_row(piece: Piece, room: int, pattern: re.Pattern[str] | None, ellipsis: str) -> Line:
    """One row of the message: lines that are cut have one row each, so the bar before it is left out."""
    text = piece.text
    shown = cut(text, room, ellipsis)
    end = len(text) if shown == text else max(0, len(shown) - len(ellipsis))
    rest: Line = () if shown == text else ((piece.style, ellipsis),)
    return (*_spans(piece, 0, end, pattern), *rest)


def _piece(text: str, colours: tuple[Paint, ...]) -> Piece:
    style = "spark-danger" if ALARM.search(text) else "warning" if WARN.search(text) else "text"
    widened = plain(text)
    if not colours:
        return Piece(widened, style)
    starts = [len(plain(text[:at])) if len(widened) != len(text) else at for at, _, _ in colours]
    ends = [len(plain(text[:at])) if len(widened) != len(text) else at for _, at, _ in colours]
    words = [OWN_COLOUR + colour for _, _, colour in colours]
    return Piece(widened, style, tuple(zip(starts, ends, words, strict=True)))


def _spans(piece: Piece, begin: int, end: int, pattern: re.Pattern[str] | None) -> list[Span]:
    """Characters ``begin`` to ``end`` in their colours, with what the pattern finds in them marked."""
    text, style, paints = piece.text, piece.style, piece.paints
    found = [] if pattern is None else [m.span() for m in pattern.finditer(text, begin, end) if m.end() > m.start()]
    if not paints and not found:
        return [(style, text[begin:end])]
    edges = {begin, end, *(x for a, b in found for x in (a, b)), *(x for a, b, _ in paints for x in (a, b))}
    points = sorted(x for x in edges if begin <= x <= end)
    first = [a for a, _, _ in paints]
    spans: list[Span] = []
    for a, b in pairwise(points):
        if any(x <= a < y for x, y in found):
            spans.append(("match", text[a:b]))
            continue
        at = bisect_right(first, a) - 1
        inside = at >= 0 and paints[at][1] > a
        spans.append((paints[at][2] if inside else style, text[a:b]))
    return spans


# The part of a log that is in memory: some hundred lines around the visible ones, whatever the file's size.

KEPT_LINES = 600
"""A window that grows at one end drops lines at the other."""


class Reading(msgspec.Struct, frozen=True):
    """A stretch as it was read, with the known times (run seconds) of its lines by offset."""

    stretch: LogStretch = LogStretch()
    times: Mapping[int, float] = {}


class LogWindow:
    """Lines of ``[start, end)``, oldest first, and perhaps an open one behind them."""

    def __init__(self, reading: Reading | None = None) -> None:
        stretch = reading.stretch if reading is not None else LogStretch()
        self.lines: list[LogLine] = list(stretch.lines)
        self.times: dict[int, float] = dict(reading.times) if reading is not None else {}
        self.start, self.end, self.file_size = stretch.start, stretch.end, stretch.file_size
        self.open_size = stretch.open_size

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def at_start(self) -> bool:
        return self.start <= 0

    @property
    def at_end(self) -> bool:
        """The window reaches the end of the file as last read."""
        return self.end + self.open_size >= self.file_size

    def index_of(self, offset: int) -> int:
        """Index of the line that contains ``offset``, else of the last one before it; 0 in an empty window."""
        return max(0, bisect_right(self.lines, offset, key=lambda line: line.offset) - 1)

    def add_above(self, reading: Reading) -> int:
        """Add older lines on top. Returns how many lines the others moved down."""
        older = reading.stretch
        if older.end != self.start:
            return 0
        self.lines[:0] = older.lines
        self.start, self.file_size = older.start, max(self.file_size, older.file_size)
        self.times.update(reading.times)
        if len(self.lines) > KEPT_LINES:
            self.end, self.open_size = self.lines[KEPT_LINES].offset, 0
            self._forget(self.lines[KEPT_LINES:])
            del self.lines[KEPT_LINES:]
        return len(older.lines)

    def add_below(self, reading: Reading) -> int:
        """Add newer lines at the end. Returns how many lines the others moved up."""
        newer = reading.stretch
        if newer.start != self.end:
            return 0
        if self.lines and self.lines[-1].open:
            self._forget([self.lines.pop()])
        self.lines += newer.lines
        self.end, self.file_size, self.open_size = newer.end, newer.file_size, newer.open_size
        self.times.update(reading.times)
        surplus = len(self.lines) - KEPT_LINES
        if surplus <= 0:
            return 0
        self._forget(self.lines[:surplus])
        del self.lines[:surplus]
        self.start = self.lines[0].offset
        return surplus

    def _forget(self, lines: list[LogLine]) -> None:
        for line in lines:
            self.times.pop(line.offset, None)


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

    @property
    def _wraps(self) -> bool:
        """A pane of few rows shows the beginnings of lines: the end of one says nothing."""
        return not (self.compact and self.size.height <= FEW_ROWS)

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
            visible = self.cursor <= last
            if visible and sum(map(self._rows_of, range(self.top, self.cursor + 1))) - self.skip <= height:
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
        return self.top, self._line_at(self.size.height - 1)

    def lines(self, width: int, height: int) -> list[Line]:
        if not len(self.window):
            return sentence(self.message, width)
        rows: list[Line] = []
        at, skip = self.top, self.skip
        before = None
        while len(rows) < height and at < len(self.window):
            drawn, before = self._drawn(at, width, before)
            rows += drawn[skip:]
            at, skip = at + 1, 0
        return rows[:height]

    def on_resize(self, _: events.Resize) -> None:
        if self.following:
            self.to_end()
        elif len(self.window):
            self.skip = min(self.skip, self._rows_of(min(self.top, len(self.window) - 1)) - 1)

    def wheel(self, steps: int) -> None:
        self.post_message(self.Wanted(rows=steps * WHEEL_ROWS))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.post_message(self.Wanted(line=self._line_at(event.y - self.gutter.top), extend=event.shift))

    def on_mouse_move(self, event: events.MouseMove) -> None:
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

    def _rows_of(self, index: int) -> int:
        line = self.window.lines[index]
        return rows_of(line, self._room(self.size.width)) if self._wraps else 1

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
        rows = drawn(line, self._room(width), self.pattern, self.glyphs.ellipsis, wrap=self._wraps, marked=marked)
        blank: Span = ("text", " " * gutter)
        return [(*(margin if n == 0 else [blank]), *row) for n, row in enumerate(rows)], time
