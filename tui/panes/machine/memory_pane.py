"""The pane *machine* of the dashboard: RAM, available, swap, CPU of the trainer, disk."""

from collections.abc import Mapping

from ....core.views.panes.memory import MemoryView
from ...ui.cells import Line, wrap_words
from ...ui.series import Columns, SeriesQuery
from ...ui.time_window import TimeWindow
from ..pane import Pane
from .meters import meter_lines, meter_queries


class MemoryPane(Pane):
    view = MemoryView()
    series: Mapping[SeriesQuery, Columns] = {}
    window = TimeWindow()

    def show(self, view: MemoryView, series: Mapping[SeriesQuery, Columns], window: TimeWindow) -> None:
        """Draw it; ``series`` answers ``series_queries``; the border names the window of the sparklines."""
        self.view, self.series, self.window = view, series, window
        self.set_title("machine", view.note or (window.words if view.meters else ""))
        self.redraw()

    def series_queries(self) -> list[SeriesQuery]:
        """The queries for the charts of this pane at its size."""
        return meter_queries(self.view.meters, self.size.width, self.window)

    def lines(self, width: int, height: int) -> list[Line]:
        """The pane's content."""
        if not self.view.meters:
            return [(("label", row),) for row in wrap_words(self.view.message or "", width)]
        return meter_lines(
            self.view.meters[:height], width, self.window, self.series, glyphs=self.glyphs, last_values=self.last_values
        )
