"""A widget that draws its own lines and refreshes only the regions whose cells changed."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..ui.cells import UNICODE, Glyphs, Line, Span, changed_cells, fit, size_of
from ..ui.terminal import look

Row = TypeVar("Row")
WHOLE_FOR = 3
"""A pane is drawn so often before it is cut into pieces: the first picture does not wait until they are mounted."""
OWN_COLOUR = "own:"
"""Before a style of a log's own colours: words such as ``bold red on #112233``."""


class Sheet(Widget, can_focus=False):
    """Lines of exactly its size. What is drawn is kept as strips; only the cells that differ are refreshed."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._strips: dict[int, Strip] = {}

    def styled(self, style: str) -> Style:
        """The style of spans with this name."""
        raise NotImplementedError

    @property
    def columns(self) -> int:
        """Cells of each line."""
        return self.size.width

    def painted(self) -> None:
        """A line is repainted."""

    def put_lines(self, lines: Sequence[Line], rows: Iterable[int]) -> None:
        """Show these lines, of which only ``rows`` may differ from those on the screen."""
        old, self._lines = self._lines, tuple(lines)
        if len(old) != len(self._lines):
            self._strips.clear()
            self.refresh()
            return
        regions = []
        for y in rows:
            changed = changed_cells(old[y], self._lines[y])
            if changed is not None:
                self._strips.pop(y, None)
                regions.append(Region(changed[0], y, changed[1], 1))
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """One line from the cache."""
        strip = self._strips.get(y)
        if strip is None:
            self.painted()
            width = self.columns
            line = self._lines[y] if y < len(self._lines) else (("text", " " * width),)
            strip = self._strips[y] = Strip([Segment(text, self.styled(style)) for style, text in line], width)
        return strip

    def notify_style_update(self) -> None:
        """Forget colours when the theme changes."""
        super().notify_style_update()
        self._strips.clear()


class Pane(Sheet):
    """Base class of all panes.

    Subclasses take their view in ``show`` and implement ``lines``.
    """

    glyphs: Glyphs = UNICODE
    early = False
    """Whether the first picture has its lines, before it is told its size. Not if ``lines`` sets the title."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._asked: list[Line] = []
        """The return value of ``lines`` that ``_lines`` were fitted from."""
        self._fitted: Size | None = None
        """The size that they were fitted to."""
        self._looks: dict[str, Style] = {}
        self._edges = ("", "")
        self._draws = 0
        self._pieces: list[Piece] = []
        self._cuts: tuple[int, ...] | None = ()
        """None: they depend on a size that has changed."""
        self.paints = 0
        """How often a line was repainted, for tests of the repaint budget."""

    def lines(self, width: int, height: int) -> list[Line]:
        """What to draw: at most ``height`` lines; they are fitted to ``width``."""
        raise NotImplementedError

    def cuts(self, width: int) -> tuple[int, ...]:
        """Columns at which the pane is cut into pieces: what changes often begins at one. None: it stays whole."""
        del width
        return ()

    def redraw(self) -> None:
        """Compute the lines, and refresh the cells that differ from those on the screen."""
        size = self.size
        if not size.width or not size.height:
            return
        if size != self._fitted:
            self._lines, self._asked, self._cuts = (), [], None
            self._strips.clear()
        old, new, (width, height) = self._lines, self._fit(size), size
        self._draws += 1
        wanted = self.cuts(width) if self._draws > WHOLE_FOR else ()
        cuts = tuple(sorted({at for at in wanted if 0 < at < width}))
        if cuts != self._cuts:
            self._cut(cuts, width, height)
        if self._cuts:
            rows = [y for y, line in enumerate(new) if len(old) != height or old[y] is not line]
            self._lines = new
            for piece in self._pieces[: len(cuts) + 1]:
                piece.take(new, rows)
        else:
            self.put_lines(new, range(height))

    def _fit(self, size: Size) -> tuple[Line, ...]:
        width, height = self._fitted = size
        asked = self.lines(width, height)[:height]
        before, old = self._asked, self._lines
        same = len(before) if len(old) == height else 0
        drawn = [old[y] if y < same and before[y] == line else fit(line, width) for y, line in enumerate(asked)]
        blank: Line = (("text", " " * width),)
        self._asked = asked
        return tuple(drawn + [blank] * (height - len(drawn)))

    def _cut(self, cuts: tuple[int, ...], width: int, height: int) -> None:
        """Cut the pane at these columns."""
        self._cuts = cuts
        needed = len(cuts) + 1 if cuts else 0
        more = [Piece(self) for _ in range(needed - len(self._pieces))]
        self._pieces += more
        starts = (0, *cuts, width)
        for number, piece in enumerate(self._pieces):
            if number < needed:
                piece.put(starts[number], starts[number + 1] - starts[number], height)
            else:
                piece.display = False
        if more:
            self.mount(*more)
        if not cuts:
            self._strips.clear()
            self.refresh()

    def painted(self) -> None:
        self.paints += 1

    def set_title(self, title: str, subtitle: str = "") -> None:
        """Set the texts on the border. Textual repaints the whole pane then, so equal texts are not set again."""
        if (title, subtitle) != self._edges:
            before, self._edges = self._edges, (title, subtitle)
            if title != before[0]:
                self.border_title = _edge(title)
            if subtitle != before[1]:
                self.border_subtitle = _edge(subtitle)

    class Pressed(Message):
        """The pane was clicked."""

        def __init__(self, pane: "Pane") -> None:
            super().__init__()
            self.pane = pane

    def on_click(self, event: Click) -> None:
        del event
        self.post_message(self.Pressed(self))

    def wheel(self, steps: int) -> None:
        """The wheel of the mouse was turned, down (positive) or up."""

    def on_mouse_scroll_down(self, _: MouseScrollDown) -> None:
        self.wheel(1)

    def on_mouse_scroll_up(self, _: MouseScrollUp) -> None:
        self.wheel(-1)

    def render_line(self, y: int) -> Strip:
        """One line from the cache."""
        if self.early and not self._lines:
            self._lines = self._fit(self.size)
        return super().render_line(y)

    def plain_lines(self) -> list[str]:
        """The text on the screen, for tests."""
        return ["".join(text for _, text in line).rstrip() for line in self._lines]

    def on_resize(self, _: Resize) -> None:
        self.redraw()
        if self._cuts:  # its pieces are moved a frame later: until then they may have been painted over its border
            self.call_after_refresh(self.refresh)

    def notify_style_update(self) -> None:
        """Forget colours when the theme changes."""
        super().notify_style_update()
        self._looks.clear()

    def styled(self, style: str) -> Style:
        """The style of spans with this name, by the theme."""
        if style not in self._looks:
            own = style.removeprefix(OWN_COLOUR)
            plain = self.styled("text") + Style.parse(own) if own != style else look(style, self.app.theme_variables)
            self._looks[style] = plain
        return self._looks[style]


def _edge(text: str) -> Content | None:
    """Text for a border: as Content, square brackets are not parsed as markup."""
    return Content(text) if text else None


class ScrolledPane(Pane):
    """Shows the rows from ``top`` on of more than it has room for."""

    top = 0
    wheel_rows = 2
    _titles, _hidden = ("", ""), ""

    def scroll(self, rows: int) -> None:
        """Down (positive) or up."""
        self.top += rows
        self.redraw()

    def wheel(self, steps: int) -> None:
        self.scroll(steps * self.wheel_rows)

    def set_title(self, title: str, subtitle: str = "") -> None:
        """The texts on the border; on the lower one also how much is out of sight."""
        self._titles = (title, subtitle)
        super().set_title(title, " · ".join(filter(None, (subtitle, self._hidden))))

    def tell_hidden(self, hidden: str) -> None:
        """What is out of sight, in words."""
        if hidden != self._hidden:
            self._hidden = hidden
            self.set_title(*self._titles)

    def in_view(self, rows: "Sequence[Row]", height: int) -> "Sequence[Row]":
        """Those that have room; ``top`` is moved if the last ones would leave it empty."""
        self.top = max(0, min(self.top, len(rows) - height))
        return rows[self.top : self.top + height]


Part = tuple[str, Line]
"""What a click on it presses, and what it shows."""


class Bar(Pane):
    """A line of parts that can be clicked."""

    def parts(self, width: int) -> Sequence[Part]:
        raise NotImplementedError

    def lines(self, width: int, height: int) -> list[Line]:
        del height
        return [self.row(width)]

    def pressed(self, name: str) -> None:
        """A part was clicked; most are keys."""
        self.app.simulate_key(name)

    def row(self, width: int) -> Line:
        return tuple(span for _, shown in self.parts(width) for span in shown)

    def on_click(self, event: Click) -> None:
        x = event.x - self.gutter.left
        for name, shown in self.parts(self.size.width) if event.y == self.gutter.top else ():
            size = sum(size_of(text) for _, text in shown)
            if 0 <= x < size and name:
                self.pressed(name)
                return
            x -= size


# Pieces of a pane: columns of it that are widgets of their own.


class Piece(Sheet):
    """Draws the columns of a pane from ``first`` on."""

    def __init__(self, pane: Pane) -> None:
        super().__init__()
        self.first, self.cells = 0, 0
        self.styled, self.painted = pane.styled, pane.painted  # type: ignore[method-assign]

    @property
    def columns(self) -> int:
        """As it is placed: its size follows a frame later."""
        return self.cells

    def put(self, first: int, cells: int, height: int) -> None:
        """Place it over these columns of the pane."""
        self.first, self.cells = first, cells
        self._lines = ()
        self._strips.clear()
        self.display = True
        self.styles.offset = (first, 0)
        self.styles.width, self.styles.height = cells, height

    def take(self, lines: Sequence[Line], rows: Sequence[int]) -> None:
        """Show these lines of the pane, of which only ``rows`` have changed since the last call."""
        same = len(self._lines) == len(lines)
        known: list[Line] = list(self._lines) if same else [()] * len(lines)
        for y in rows if same else range(len(lines)):
            known[y] = section(lines[y], self.first, self.cells)
        self.put_lines(known, rows)


def section(line: Line, first: int, cells: int) -> Line:
    """The cells of a line from ``first`` on. Half of a wide character becomes a blank."""
    spans: list[Span] = []
    at, end = 0, first + cells
    for style, text in line:
        size = size_of(text)
        since, until = max(first, at) - at, min(end, at + size) - at
        if since < until:
            spans.append((style, Segment(text).split_cells(until)[0].split_cells(since)[1].text))
        at += size
        if at >= end:
            break
    return tuple(spans)
