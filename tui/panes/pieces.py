"""Pieces of a pane: columns of it that are widgets of their own.

Textual writes a changed row from the left edge of its widget to the last changed cell. A pane that changes often is
cut into pieces, so that a new value writes its own piece of the row and not all cells to the left of it.
"""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ..ui.cells import Line, Span, changed_cells, size_of

Look = Callable[[str], Style]
"""Style name → style."""


class Piece(Widget, can_focus=False):
    """Draws the columns of a pane from ``first`` on. ``look``: the pane's styles; ``painted`` counts painted rows."""

    def __init__(self, look: Look, painted: Callable[[], None]) -> None:
        super().__init__()
        self.first, self.cells = 0, 0
        self._look, self._painted = look, painted
        self._lines: list[Line] = []
        self._strips: dict[int, Strip] = {}

    def put(self, first: int, cells: int, height: int) -> None:
        """Place it over these columns of the pane."""
        self.first, self.cells = first, cells
        self._lines.clear()
        self._strips.clear()
        self.display = True
        self.styles.offset = (first, 0)
        self.styles.width, self.styles.height = cells, height

    def take(self, lines: Sequence[Line], rows: Sequence[int]) -> None:
        """Show these lines of the pane, of which only ``rows`` have changed since the last call."""
        if len(self._lines) != len(lines):
            self._lines = [section(line, self.first, self.cells) for line in lines]
            self._strips.clear()
            self.refresh()
            return
        regions = []
        for y in rows:
            line = section(lines[y], self.first, self.cells)
            changed = changed_cells(self._lines[y], line)
            if changed is not None:
                self._lines[y] = line
                self._strips.pop(y, None)
                regions.append(Region(changed[0], y, changed[1], 1))
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """One line from the cache."""
        strip = self._strips.get(y)
        if strip is None:
            self._painted()
            line = self._lines[y] if y < len(self._lines) else (("text", " " * self.cells),)
            strip = self._strips[y] = Strip([Segment(text, self._look(style)) for style, text in line], self.cells)
        return strip

    def notify_style_update(self) -> None:
        """Forget colours when the theme changes."""
        super().notify_style_update()
        self._strips.clear()


def section(line: Line, first: int, cells: int) -> Line:
    """The cells of a line from ``first`` on. Half of a wide character becomes a blank."""
    spans: list[Span] = []
    at, end = 0, first + cells
    for style, text in line:
        size = size_of(text)
        since, until = max(first, at) - at, min(end, at + size) - at
        if since < until:
            spans.append((style, text[since:until] if size == len(text) else _part(text, since, until)))
        at += size
        if at >= end:
            break
    return tuple(spans)


def _part(text: str, since: int, until: int) -> str:
    """The cells of a text with wide characters."""
    shown, at = "", 0
    for char in text:
        size = cell_len(char)
        inside = min(until, at + size) - max(since, at)
        if inside == size and (size or since < at):
            shown += char
        elif inside > 0:
            shown += " " * inside
        at += size
    return shown
