"""The memory pane: RAM, available, swap, CPU of the trainer, disk."""

from collections.abc import Mapping

from ...core.views.memory import MemoryView
from ..cells import Line, wrap_words
from ..series import Columns, Wish
from .meters import meter_lines, meter_wishes
from .pane import Pane


class MemoryPane(Pane):
    """Shows a MemoryView."""

    view = MemoryView()
    series: Mapping[Wish, Columns] = {}
    window_s = 60.0

    def show(self, view: MemoryView, series: Mapping[Wish, Columns], window_s: float, caption: str) -> None:
        """Draw it; ``series`` answers ``wishes``; ``caption`` says which stretch the sparklines show."""
        self.view, self.series, self.window_s = view, series, window_s
        self.set_title("memory", caption if view.meters else "")
        self.redraw()

    def wishes(self) -> list[Wish]:
        """The histories this pane draws at its size."""
        return meter_wishes(self.view.meters, self.size.width, self.window_s)

    def lines(self, width: int, height: int) -> list[Line]:
        """The pane's content."""
        if not self.view.meters:
            return [(("label", row),) for row in wrap_words(self.view.message or "", width)]
        return meter_lines(self.view.meters[:height], width, self.window_s, self.series, self.glyphs)
