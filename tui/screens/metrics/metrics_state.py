"""What the metrics page shows: which charts, which part of their axis, and how they are drawn."""

import msgspec

from ....core.views.charts.chart_view import ChartOptions
from ....core.views.charts.zoom import Span, at_end, moved, showing, zoomed

ZOOM = 0.5
"""Share of the axis that one step closer shows."""
PAN = 0.25


class MetricsState(msgspec.Struct):
    """Kept while the page is closed. ``whole`` in its methods: the axis of all of the run.

    ``zoom``: the visible part, None = all; ``follows``: it moves on with the newest values.
    """

    chosen: str = ""
    single: bool = False
    options: ChartOptions = ChartOptions()
    zoom: Span | None = None
    follows: bool = True
    cursor: float | None = None
    filter: str = ""

    def extend(self, whole: Span) -> Span:
        """The part that is visible now; with the newest values in it if it follows them."""
        if self.zoom is not None and self.follows:
            self.zoom = Span(max(whole.since, whole.until - self.zoom.length), whole.until)
        return self.zoom or whole

    def point_at(self, x: float, whole: Span) -> None:
        """Put the cursor there, and show it."""
        self.cursor = min(max(x, whole.since), whole.until)
        if self.zoom is not None:
            self.zoom = showing(self.zoom, whole, self.cursor)
            self.follows = at_end(self.zoom, whole)

    def closer(self, steps: int, about: float | None, shown: Span, whole: Span) -> None:
        """Zoom about ``about``, the cursor, or the newest values while they are followed."""
        if about is None:
            about = self.cursor
        if about is None and self.follows:
            about = shown.until
        self.zoom = zoomed(shown, whole, ZOOM**steps, about)
        self.follows = self.zoom is None or at_end(self.zoom, whole)

    def pan(self, quarters: int, whole: Span) -> bool:
        """Move the visible part; False if all is visible."""
        if self.zoom is None:
            return False
        self.zoom = moved(self.zoom, whole, quarters * PAN)
        self.follows = at_end(self.zoom, whole)
        return True

    def show_all(self) -> None:
        """Show the whole axis without a cursor: visible part and cursor belong to one kind of axis."""
        self.zoom, self.cursor, self.follows = None, None, True

    def back(self) -> bool:
        """Take back the newest of: cursor, zoom, single chart, filter; False if there is none."""
        if self.cursor is not None:
            self.cursor = None
        elif self.zoom is not None:
            self.zoom, self.follows = None, True
        elif self.single:
            self.single = False
        elif self.filter:
            self.filter = ""
        else:
            return False
        return True
