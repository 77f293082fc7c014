"""The progress of a long task."""

from textual.events import Click

from ...core.views import quantity
from ..background import LongTaskState
from ..ui.cells import Line, cut
from ..ui.chart import bar
from .pane import Pane

BAR_LEAST = 10


class TaskPane(Pane):
    """Shows a LongTaskState; a click cancels it."""

    state: LongTaskState | None = None

    def show(self, state: LongTaskState | None) -> None:
        self.state = state
        self.set_title(state.title if state is not None else "", "[Esc] cancel")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """A bar with bytes or minutes."""
        del height
        state = self.state
        if state is None:
            return []
        if state.cancelled:
            return [(("warning", "cancelled, cleaning up …"),)]
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
        del event
        self.app.simulate_key("escape")
