"""The head of the numbered screens: tabs, and the sentence of the run."""

from textual import events

from ...core.views.panes.header import HeaderView
from ..places import PLACES, Place
from ..ui.cells import Line, Span, cut, width_of
from .head import EMPTY, verdict_rows
from .pane import Pane

MOST_ROWS = 3
"""Rows of the sentence if what is wrong needs them; a third of the screen at most."""


def tab_rows(view: HeaderView, width: int, height: int) -> int:
    """Rows of the tabs and the sentence, on a screen of this size."""
    if height < 3:
        return max(1, height - 1)
    return 1 + len(verdict_rows(view.verdict, width - 2, 1, max(1, min(MOST_ROWS, height // 3))))


class TabBar(Pane):
    """Tabs on the first line, the run's sentence on the second. A click on a tab presses its key."""

    current = ""
    view = EMPTY
    offered: tuple[Place, ...] = PLACES

    def show(self, current: str, view: HeaderView, offered: tuple[Place, ...] = PLACES) -> None:
        """Draw it. ``offered``: the places that can be opened now."""
        self.current, self.view, self.offered = current, view, offered
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """Tabs, then the sentence."""
        name = self._name_of(width)
        tabs: list[Span] = [("strong", name)] if name else []
        for place, text, _ in self._placed(width):
            here = place.name == self.current
            tabs += [("key", place.key), ("cursor" if here else "label", text), ("text", " ")]
        lines: list[Line] = [tuple(tabs)]
        if height > 1 and self.view.verdict.clauses:
            verdict = self.view.verdict
            glyph = self.glyphs.levels[verdict.level]
            style = "text" if verdict.level in {"safe", "unknown"} else verdict.level
            signs = (f"{glyph} ", *("  " for _ in range(height)))
            rows = verdict_rows(verdict, width - 2, 1, height - 1)
            lines += [((verdict.level, sign), (style, row)) for sign, row in zip(signs, rows, strict=False)]
        return lines

    def on_click(self, event: events.Click) -> None:
        """Go to the place under the pointer."""
        x = event.x - self.gutter.left
        if event.y != self.gutter.top:
            return
        for place, text, start in self._placed(self.size.width):
            if start <= x < start + len(place.key) + len(text):
                self.app.simulate_key(place.key)

    def _name_of(self, width: int) -> str:
        name = self.view.name
        needed = sum(len(p.key) + len(p.name) + 3 for p in self.offered)
        room = width - needed - 2
        return f"{cut(name, room)}  " if name and room >= 4 else ""

    def _placed(self, width: int) -> list[tuple[Place, str, int]]:
        """(place, its words, first column): all words if they fit, else short ones, else that of the current place."""
        x = width_of((("strong", self._name_of(width)),))
        words = next((w for w in self._forms() if sum(len(t) + 4 for t in w) <= width + 1), None)
        placed = []
        for number, place in enumerate(self.offered):
            word = words[number] if words is not None else place.name if place.name == self.current else ""
            text = f" {word} " if word else " "
            placed.append((place, text, x))
            x += len(place.key) + len(text) + 1
        return placed

    def _forms(self) -> tuple[list[str], ...]:
        """The words of all tabs, the longest form first."""
        return (
            [p.name for p in self.offered],
            [p.name if p.name == self.current else p.short or p.name for p in self.offered],
            [p.short or p.name for p in self.offered],
        )
