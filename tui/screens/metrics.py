"""Key 7: every metric of the run as a chart, in a grid or alone."""

from collections.abc import Sequence
from time import monotonic

import msgspec

from ...core.views.metrics import in_order, matching, overlaid, without_doubles
from ..keys import HELP, Key
from ..panes.charts_pane import ChartsPane
from ..panes.pane import Pane
from ..run_session import Box
from ..ui.chart import WHOLE, TimeWindow
from .place_screen import RunPage

METRIC_KEYS: tuple[Key, ...] = (
    Key("Enter", "single", "one/all", "the chosen chart alone, and back"),
    Key("← →", "choose(±1)", "choose", "choose a chart (also ↑ ↓, PgUp, PgDn)"),
    Key("[ ]", "zoom(±1)", "time", "all charts show a shorter or longer time"),
    Key("/", "filter", "filter", "show the metrics whose name contains a text"),
    HELP,
    Key("Esc", "back", "back", "take back the single chart, then the filter; then the previous screen", always=True),
)
AGAIN_S = 30.0
"""The names are read this often, seconds."""


class MetricsState(msgspec.Struct):
    """Kept while the page is closed."""

    chosen: str = ""
    single: bool = False
    filter: str = ""


class MetricsScreen(RunPage):
    """The page of charts. ``names``: metrics that have values, in the order of the page; None: not read yet."""

    place = "metrics"
    keys = METRIC_KEYS
    also = (
        ("up", "row(-1)"), ("k", "row(-1)"), ("down", "row(1)"), ("j", "row(1)"), ("pageup", "page(-1)"),
        ("pagedown", "page(1)"), ("home", "choose(-100000)"), ("end", "choose(100000)"), ("z", "single"),
    )  # fmt: skip
    kept = MetricsState
    state: MetricsState
    filtered = "metrics whose name"
    taken_back = ("single", "filter")
    names: tuple[str, ...] | None = None
    trouble = ""
    _read_at: float | None = None

    def bodies(self) -> Sequence[Pane]:
        self.pane = ChartsPane(id="charts")
        return (self.pane,)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        return {"charts": (0, top, width, height)}

    def on_unmount(self) -> None:
        self.session.read_series(None)

    @property
    def charts(self) -> dict[str, tuple[str, ...]]:
        """With a filter each metric that passes it, without one several GPUs in one chart."""
        found = matching(without_doubles(self.names or ()), self.state.filter)
        return {metric: (metric,) for metric in found} if self.state.filter else overlaid(found)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.charts)

    @property
    def window(self) -> TimeWindow:
        """All of the run, unless a part of it is chosen."""
        return self.session.window_of(WHOLE if self.session.zoom is None else self.session.zoom)

    def show(self) -> None:
        state, metrics, window = self.state, self.metrics, self.window
        if metrics and state.chosen not in metrics:
            state.chosen = metrics[0]
        pane = self.pane
        pane.charts, pane.chosen = tuple(self.charts.items()), self._chosen
        pane.message, pane.single = self._message(), state.single
        pane.show(self.session.view.timeline, self.series, window)
        below = 0 if state.single or not metrics else len(metrics) - pane.in_view.stop
        title = f"metrics · {len(metrics)}" + (f" · with “{state.filter}”" if state.filter else "")
        pane.set_title(title, " · ".join(filter(None, (f"{below} more ↓" if below else "", window.words))))
        if pane.charts:
            self.session.read_series(pane.series_queries())
        self._read_names()

    def _read_names(self) -> None:
        """Read in a thread which metrics have values."""
        if self._read_at is not None and monotonic() - self._read_at < AGAIN_S:
            return
        self._read_at = monotonic()
        feed, until_t = self.session.run.feed, max(self.session.view.timeline.now_t, 1.0)

        def read() -> tuple[str, ...]:
            points = feed.charts(feed.series_names(), 0.0, until_t, 1)
            return in_order([name for name, known in points.items() if known])

        def take(names: tuple[str, ...] | None, trouble: str) -> None:
            self.names, self.trouble = names, f"history: {trouble}" if trouble else ""

        self.read(read, take)

    def _message(self) -> str:
        if self.trouble:
            return self.trouble
        if not self.now.story.attempts:
            return "No metric yet: the run was not started."
        if self.names is None:
            return "Reading …"
        if self.state.filter and self.names:
            return f"No metric contains “{self.state.filter}”. / changes the filter, Esc ends it."
        return (
            "No values yet. GPU, host and process readings come about a second after the start; loss, lr and what else "
            "the trainer logs by name come with its first log lines."
        )

    @property
    def _chosen(self) -> int:
        metrics = self.metrics
        return metrics.index(self.state.chosen) if self.state.chosen in metrics else 0

    def _choose(self, number: int) -> None:
        metrics = self.metrics
        if metrics:
            self.state.chosen = metrics[max(0, min(number, len(metrics) - 1))]
            self.draw()

    def action_choose(self, charts: int) -> None:
        self._choose(self._chosen + charts)

    def action_row(self, rows: int) -> None:
        self._choose(self._chosen + rows * (1 if self.state.single else self.pane.grid(*self.pane.size)[0]))

    def action_page(self, pages: int) -> None:
        self._choose(self._chosen + pages * len(self.pane.in_view))

    def action_single(self) -> None:
        self.state.single = not self.state.single
        self.draw()

    def on_charts_pane_pointed(self, message: ChartsPane.Pointed) -> None:
        self._choose(message.chart)
