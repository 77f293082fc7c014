"""How far a long piece of work is."""

from textual.events import Click

from trainwatch.core.views import quantity

from ..job import JobState
from ..ui.cells import Line, cut
from ..ui.chart import bar
from .pane import Pane

BAR_LEAST = 10


class JobPane(Pane):
    """Shows a JobState; a click calls it off."""

    state: JobState | None = None

    def show(self, state: JobState | None) -> None:
        """Draw it."""
        self.state = state
        self.set_title(state.title if state is not None else "", "[Esc] call it off")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """A bar with bytes or minutes."""
        del height
        state = self.state
        if state is None:
            return []
        if state.ending:
            return [(("warning", "called off, tidying up …"),)]
        if not state.total:
            return [(("label", "reading …"),)]
        share = state.done / state.total
        if state.timed:
            words = f"  {quantity.duration(state.done)} of {quantity.duration(state.total)}"
        else:
            words = f"  {100 * share:3.0f} %  {quantity.size_of(state.done, state.total)}"
        cells = max(BAR_LEAST, width - len(words))
        full, rest = bar(share, cells, self.glyphs)
        return [(("bar", full), ("bar-rest", rest), ("text", cut(words, max(0, width - cells))))]

    def on_click(self, event: Click) -> None:
        """Call it off."""
        del event
        self.app.simulate_key("escape")
