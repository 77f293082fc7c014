"""A widget that draws its own lines and refreshes only the regions whose cells changed."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..ui.cells import UNICODE, Glyphs, Line, Span, changed_cells, cut, fit, size_of
from ..ui.terminal import LastValue, look

WHOLE_FOR = 3
"""A pane is drawn so often before it is cut into pieces: the first picture does not wait until they are mounted."""
OWN_COLOUR = "own:"
"""Before a style of a log's own colours: words such as ``bold red on #112233``."""


class Pane(Widget, can_focus=False):
    """Base class of all panes.

    Subclasses take their view in ``show`` and implement ``lines``.
    """

    glyphs: Glyphs = UNICODE
    edge: "EdgeLabel | None" = None
    """Shows the subtitle, if it changes often."""
    early = False
    """Whether the first picture has its lines, before it is told its size. Not if ``lines`` sets the title."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._asked: list[Line] = []
        """The return value of ``lines`` that ``_lines`` were fitted from."""
        self._fitted: Size | None = None
        """The size that they were fitted to."""
        self.last_values = LastValue()
        self._strips: dict[int, Strip] = {}
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
        old = self._lines
        self._fit(size)
        new, (width, height) = self._lines, size
        self._draws += 1
        wanted = self.cuts(width) if self._draws > WHOLE_FOR else ()
        cuts = tuple(sorted({at for at in wanted if 0 < at < width}))
        if cuts != self._cuts:
            self._cut(cuts, width, height)
        if self._cuts:
            rows = [y for y, line in enumerate(new) if len(old) != height or old[y] is not line]
            for piece in self._pieces[: len(cuts) + 1]:
                piece.take(new, rows)
            return
        if len(old) != len(new):
            self._strips.clear()
            self.refresh()
            return
        regions = []
        for y, (before_line, line) in enumerate(zip(old, new, strict=True)):
            changed = changed_cells(before_line, line)
            if changed is not None:
                self._strips.pop(y, None)
                regions.append(Region(changed[0], y, changed[1], 1))
        if regions:
            self.refresh(*regions)

    def _fit(self, size: Size) -> None:
        width, height = self._fitted = size
        asked = self.lines(width, height)[:height]
        before, old = self._asked, self._lines
        same = len(before) if len(old) == height else 0
        drawn = [old[y] if y < same and before[y] == line else fit(line, width) for y, line in enumerate(asked)]
        blank: Line = (("text", " " * width),)
        self._asked, self._lines = asked, tuple(drawn + [blank] * (height - len(drawn)))

    def _cut(self, cuts: tuple[int, ...], width: int, height: int) -> None:
        """Cut the pane at these columns."""
        self._cuts = cuts
        needed = len(cuts) + 1 if cuts else 0
        more = self._new_pieces(needed - len(self._pieces))
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

    def _new_pieces(self, count: int) -> "list[Piece]":
        if count <= 0:
            return []

        return [Piece(self._look, self._painted) for _ in range(count)]

    def _painted(self) -> None:
        self.paints += 1

    def set_title(self, title: str, subtitle: str = "") -> None:
        """Set the texts on the border. Textual repaints the whole pane then, so equal texts are not set again."""
        if (title, subtitle) != self._edges:
            before, self._edges = self._edges, (title, subtitle)
            if title != before[0]:
                self.border_title = _edge(title)
            if self.edge is not None:
                self.edge.show(subtitle)
            elif subtitle != before[1]:
                self.border_subtitle = _edge(subtitle)

    @property
    def subtitle(self) -> str:
        return self._edges[1]

    class Pressed(Message):
        """The pane was clicked."""

        def __init__(self, pane: "Pane") -> None:
            super().__init__()
            self.pane = pane

    def on_click(self, event: Click) -> None:
        del event
        self.post_message(self.Pressed(self))

    def render_line(self, y: int) -> Strip:
        """One line from the cache."""
        strip = self._strips.get(y)
        if strip is None:
            self._painted()
            if self.early and not self._lines:
                self._fit(self.size)
            width = self.size.width
            line = self._lines[y] if y < len(self._lines) else (("text", " " * width),)
            strip = Strip([Segment(text, self._look(style)) for style, text in line], width)
            self._strips[y] = strip
        return strip

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
        self._strips.clear()

    def _look(self, style: str) -> Style:
        known = self._looks.get(style)
        if known is None:
            known = self._looks[style] = self._new_look(style)
        return known

    def _new_look(self, style: str) -> Style:
        if style.startswith(OWN_COLOUR):
            return self._look("text") + Style.parse(style.removeprefix(OWN_COLOUR))
        return look(style, self.app.theme_variables)


def _edge(text: str) -> Content | None:
    """Text for a border: as Content, square brackets are not parsed as markup."""
    return Content(text) if text else None


# A short text on the lower border of a pane that changes often.
#
# Textual repaints the whole pane for each new ``border_subtitle``: 40 kB on a large terminal.

EDGE_CELLS = 40
"""Its columns; what is left of the text looks like the border."""


class EdgeLabel(Pane):
    """Stands over the border of its pane, at the right."""

    text = ""

    def show(self, text: str) -> None:
        self.text = text
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        del height
        text = cut(self.text, width - 2, self.glyphs.ellipsis)
        shown = f" {text} " if text else ""
        return [(("faint", self.glyphs.line * (width - size_of(shown))), ("label", shown))]


# Pieces of a pane: columns of it that are widgets of their own.


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
