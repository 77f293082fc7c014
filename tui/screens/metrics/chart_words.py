"""What stands above and below the charts: titles, the visible part of the axis, and its ticks."""

from collections.abc import Sequence
from typing import NamedTuple

from ....core.model.situation import Situation
from ....core.views import quantity
from ....core.views.charts.axis import span_label, span_ticks, step_label, ticks
from ....core.views.charts.zoom import Span
from ....core.views.panes.timeline import TimelineView
from ....core.views.panes.timeline import ticks as clock_ticks
from .metrics_state import MetricsState

TICK_COLUMNS, STEP_COLUMNS = 12, 8
"""Columns for each tick of a time axis, and of steps."""


class ChartWords(NamedTuple):
    """``shown``: the visible part."""

    state: MetricsState
    shown: Span
    timeline: TimelineView
    now: Situation

    def title(self, count: int) -> str:
        """``metrics · 12 · smoothed 0.6``: how many charts there are, and how they are drawn."""
        options = self.state.options
        parts = [f"metrics · {count}"]
        if self.state.filter:
            parts.append(f"with “{self.state.filter}”")
        if options.smooth:
            parts.append(f"smoothed {options.smooth:g}")
        if options.log:
            parts.append("log y")
        if options.overlaid:
            parts.append("attempts over each other")
        return " · ".join(parts)

    def subtitle(self, below: int) -> str:
        """Where the cursor is, else what is visible. ``below``: charts that are out of sight."""
        axis = self._cursor() or f"{self._axis()}: {self._range()}"
        return f"{below} more ↓ · {axis}" if below > 0 else axis

    def labels(self, columns: int, shown: Span) -> Sequence[tuple[float, str]]:
        """The ticks of the axis."""
        options = self.state.options
        if options.x == "step":
            return [(x, step_label(x)) for x in ticks(shown.since, shown.until, max(1, columns // STEP_COLUMNS))]
        if options.overlaid:
            return span_ticks(shown.since, shown.until, max(1, columns // TICK_COLUMNS))
        return clock_ticks(self.timeline, columns, TICK_COLUMNS, (shown.since, shown.until))

    def _axis(self) -> str:
        options = self.state.options
        if options.x == "step":
            return "step"
        if options.overlaid:
            return "time since the attempt's start"
        return "time"

    def _range(self) -> str:
        if self.state.zoom is None:
            return "all of the run"
        if self.state.options.x == "step":
            return f"{quantity.count(self.shown.since)} to {quantity.count(self.shown.until)}"
        ends = " until now" if self.state.follows else f" until {self._moment(self.shown.until)}"
        return f"{quantity.duration(self.shown.length)}{ends}"

    def _cursor(self) -> str:
        cursor = self.state.cursor
        if cursor is None:
            return ""
        return f"at step {quantity.count(cursor)}" if self.state.options.x == "step" else f"at {self._moment(cursor)}"

    def _moment(self, x: float) -> str:
        if self.state.options.overlaid:
            return f"{span_label(x)} after the start"
        return quantity.clock(self.now.story.wall0 + x, self.now.now_wall, seconds=True)
