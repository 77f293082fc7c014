"""A pane: draws its own lines, and repaints only the cells that changed."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..brush import Brush, Ink, ink_of
from ..cells import Line, fit, stretches
from ..glyphs import UNICODE, Glyphs
from ..kept import Kept

STYLES = (
    "text", "strong", "label", "faint", "accent", "safe", "warning", "danger", "underused", "unknown",
    "spark-safe", "spark-warning", "spark-danger", "spark-underused", "spark-unknown",
    "loss", "bar", "bar-rest", "match", "key", "cursor", "mark",
    "band-load", "band-train", "band-check", "band-save", "band-none",
)  # fmt: skip
"""What a span may be called; ``cell--NAME`` in pane.tcss says how it looks."""
CELL_CLASSES = frozenset(f"cell--{name}" for name in STYLES)
"""For screens with panes, once each: on every pane they would be worked out ten times before the first picture."""


class Pane(Widget, can_focus=False):
    """Base of all panes, for screens with CELL_CLASSES.

    Subclasses set ``self.content`` (a value) through ``show`` and implement ``lines``.
    """

    glyphs: Glyphs = UNICODE

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._asked: list[Line] = []
        """The lines as ``lines`` gave them, for which ``_lines`` were fitted."""
        self.kept = Kept()
        self._strips: dict[int, Strip] = {}
        self._looks: dict[str, Style] = {}
        self._inks: dict[str, Ink] = {}
        self._edges = ("", "")
        self.paints = 0
        """How often a line was repainted, for tests of the repaint budget."""

    def lines(self, width: int, height: int) -> list[Line]:
        """What to draw: at most ``height`` lines; they are fitted to ``width``."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Work out the lines anew and repaint the cells that differ from those on the screen."""
        width, height = self.size
        if not width or not height:
            return
        asked = self.lines(width, height)[:height]
        before, old = self._asked, self._lines
        same = len(before) if len(old) == height else 0
        drawn = [old[y] if y < same and before[y] == line else fit(line, width) for y, line in enumerate(asked)]
        blank: Line = (("text", " " * width),)
        new = tuple(drawn + [blank] * (height - len(drawn)))
        self._asked, self._lines = asked, new
        if len(old) != len(new):
            self._strips.clear()
            self.refresh()
            return
        brush = self._brush
        for y, (gone, come) in enumerate(zip(old, new, strict=True)):
            different = stretches(gone, come) if gone is not come else None
            if not different:
                continue
            if brush is None:
                self.leave_to_textual(y, different)
            else:
                brush.stroke(self, self, y, different)

    @property
    def _brush(self) -> Brush | None:
        """The application's, for panes that look as their lines say."""
        if type(self).render_line is not Pane.render_line or self._layout_required:
            return None
        return getattr(self.app, "brush", None)

    def line_at(self, y: int) -> Line | None:
        """The line that stands there."""
        return self._lines[y] if y < len(self._lines) else None

    def leave_to_textual(self, y: int, different: Sequence[tuple[int, int]]) -> None:
        """Have Textual paint stretches of a line."""
        self._strips.pop(y, None)
        first, (last, cells) = different[0][0], different[-1]
        self.refresh(Region(first, y, last + cells - first, 1))

    def painted(self, y: int) -> None:
        """A line was painted past Textual: what it kept of it is old."""
        self.paints += 1
        self._strips.pop(y, None)
        self._styles_cache.set_dirty(Region(0, y, 1, 1).translate(self.content_offset))

    def ink(self, style: str) -> Ink:
        """How a style looks on this terminal."""
        ink = self._inks.get(style)
        if ink is None:
            ink = self._inks[style] = ink_of(self.app, self._look(style), self.background_colors[1])
        return ink

    def set_title(self, title: str, subtitle: str = "") -> None:
        """Text on the border; repaints only the edge whose text is new (Textual's own setter: all of the pane)."""
        before, self._edges = self._edges, (title, subtitle)
        if not self._lines:
            self._border_title, self._border_subtitle = _edge(title), _edge(subtitle)
            self.refresh()
            return
        across, down = self.content_offset
        if title != before[0]:
            self._border_title = _edge(title)
            self.refresh(Region(-across, -down, self.outer_size.width, 1))
        if subtitle != before[1]:
            self._border_subtitle = _edge(subtitle)
            self.refresh(Region(-across, self.outer_size.height - 1 - down, self.outer_size.width, 1))

    class Pressed(Message):
        """Somebody clicked on the pane."""

        def __init__(self, pane: "Pane") -> None:
            super().__init__()
            self.pane = pane

    def on_click(self, event: Click) -> None:
        """Tell the screen."""
        del event
        self.post_message(self.Pressed(self))

    def render_line(self, y: int) -> Strip:
        """One line from the cache."""
        strip = self._strips.get(y)
        if strip is None:
            self.paints += 1
            width = self.size.width
            line = self._lines[y] if y < len(self._lines) else (("text", " " * width),)
            strip = Strip([Segment(text, self._look(style)) for style, text in line], width)
            self._strips[y] = strip
        return strip

    def plain_lines(self) -> list[str]:
        """The text on the screen, for tests."""
        return ["".join(text for _, text in line).rstrip() for line in self._lines]

    def on_resize(self, _: Resize) -> None:
        """Draw for the new size."""
        self._lines, self._asked = (), []
        self._strips.clear()
        self.redraw()

    def notify_style_update(self) -> None:
        """Forget colours when the theme changes."""
        super().notify_style_update()
        self._looks.clear()
        self._inks.clear()
        self._strips.clear()

    def _look(self, style: str) -> Style:
        look = self._looks.get(style)
        if look is None:
            look = self._looks[style] = self.screen.get_component_rich_style(f"cell--{style}")
        return look


def _edge(text: str) -> Content | None:
    """Text on a border as Textual keeps it."""
    return Content(text) if text else None
