"""A short text on the lower border of a pane that changes often.

Textual repaints the whole pane for each new ``border_subtitle``: 40 kB on a large terminal.
"""

from ..ui.cells import Line, cut, size_of
from .pane import Pane

EDGE_CELLS = 40
"""Its columns; what is left of the text looks like the border."""


class EdgeLabel(Pane):
    """Stands over the border of its pane, at the right."""

    text = ""

    def show(self, text: str) -> None:
        self.text = text
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """The border, and the text at its end."""
        del height
        text = cut(self.text, width - 2, self.glyphs.ellipsis)
        shown = f" {text} " if text else ""
        return [(("faint", self.glyphs.line * (width - size_of(shown))), ("label", shown))]
