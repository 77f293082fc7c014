"""The pane *machine* of the dashboard: RAM, available, swap, CPU of the trainer, disk."""

from collections.abc import Mapping

from ....core.views.panes.memory import MemoryView
from ...ui.cells import Line, wrap_words
from ...ui.series import Columns, SeriesQuery
from ...ui.time_window import Charts, TimeWindow
from ..pane import Pane
from .meters import meter_cuts, meter_lines, meter_queries


class MemoryPane(Pane):
    view = MemoryView()
    window = TimeWindow()
    charts = Charts()

    def show(self, view: MemoryView, series: Mapping[SeriesQuery, Columns], window: TimeWindow) -> None:
        """Draw it; ``series`` answers ``series_queries``; the border names the window of the sparklines."""
        self.view, self.window = view, window
        self.charts = self.charts.followed_by(series, window, self.series_queries())
        self.set_title("machine", view.note or (window.words if view.meters else ""))
        self.redraw()

    def series_queries(self) -> list[SeriesQuery]:
        """The queries for the charts of this pane at its size."""
        return meter_queries(self.view.meters, self.size.width, self.window)

    def cuts(self, width: int) -> tuple[int, ...]:
        """Values and sparklines."""
        return meter_cuts(self.view.meters, width) if self.view.meters else ()

    def lines(self, width: int, height: int) -> list[Line]:
        """The pane's content."""
        if not self.view.meters:
            return [(("label", row),) for row in wrap_words(self.view.message or "", width)]
        window, series = self.charts.window, self.charts.series
        return meter_lines(
            self.view.meters[:height], width, window, series, glyphs=self.glyphs, last_values=self.last_values
        )
