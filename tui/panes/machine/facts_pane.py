"""Facts: labels and values, in columns if there is room."""

from collections.abc import Sequence

from textual import events

from ....core.views.machine.gauge import Fact
from ...ui.cells import Line, Span, fit, wrap_words
from ..pane import Pane

FACT_COLUMNS = 34
GAP = 2


class FactsPane(Pane):
    """Shows facts; the ones that are bad keep their colour and sign."""

    facts: tuple[Fact, ...] = ()
    message = ""
    top = 0

    def show(self, facts: Sequence[Fact], message: str = "") -> None:
        """Draw them; ``message``: why there are none."""
        self.facts, self.message = tuple(facts), message
        self.redraw()

    def scroll(self, rows: int) -> None:
        """Down (positive) or up."""
        self.top += rows
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """The facts that fit."""
        if not self.facts:
            return [(("label", row),) for row in wrap_words(self.message, width)]
        across = max(1, min((width + GAP) // (FACT_COLUMNS + GAP), -(-len(self.facts) // max(1, height))))
        down = -(-len(self.facts) // across)
        each = (width - GAP * (across - 1)) // across
        label = max(len(fact.label) for fact in self.facts) + 2
        lines: list[Line] = []
        for row in range(down):
            line: list[Span] = []
            for column in range(across):
                at = column * down + row
                cells = self._fact(self.facts[at], label) if at < len(self.facts) else ()
                line += [*([("text", " " * GAP)] if column else []), *fit(cells, each)]
            lines.append(tuple(line))
        self.top = max(0, min(self.top, len(lines) - height))
        return lines[self.top : self.top + height]

    def on_mouse_scroll_down(self, _: events.MouseScrollDown) -> None:
        self.scroll(2)

    def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        self.scroll(-2)

    def _fact(self, fact: Fact, label: int) -> Line:
        bad = fact.level in {"warning", "danger"}
        style = fact.level if bad or fact.level == "unknown" else "text"
        sign = f"{self.glyphs.levels[fact.level]} " if bad else ""
        return (("label", fact.label.ljust(label)), (style, f"{sign}{fact.text}"))
