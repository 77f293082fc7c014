"""Key 7: every metric of the run as a chart, in a grid or alone."""

import math
from collections.abc import Sequence
from typing import ClassVar

import msgspec
from textual.binding import BindingType
from textual.timer import Timer

from ....core.views.charts.attempts import AttemptSpan, attempt_spans, silences
from ....core.views.charts.chart_view import (
    STEPS,
    ChartView,
    RunSeries,
    chart_view,
    marks_on,
    seconds_in,
    x_bounds,
)
from ....core.views.charts.smoothing import LEVELS
from ....core.views.charts.zoom import Span, grown
from ....core.views.metric_words import matching, without_doubles, words_of
from ....core.views.panes.timeline import TimelineView, timeline_view
from ...panes.charts_pane import ChartsPane, ChartsView
from ...panes.pane import Pane
from ...run_session import Application, RunSession
from ...ui.last_value import LastValue
from ..box import Box
from ..place_screen import PlaceScreen, bindings_of
from .chart_data import ChartData, Wanted
from .chart_words import ChartWords
from .metric_keys import ALSO, METRIC_KEYS
from .metrics_state import MetricsState

REST_S = 0.12
"""After zooming the charts are drawn from what is known; finer points are read after this rest."""


class MetricsScreen(PlaceScreen):
    """The page of charts."""

    place = "metrics"
    keys = METRIC_KEYS
    edged: ClassVar[frozenset[str]] = frozenset({"charts"})
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(METRIC_KEYS, ALSO)

    def __init__(self, application: Application, session: RunSession) -> None:
        super().__init__(application, session)
        self.session: RunSession = session
        state = session.screen_states.setdefault("metrics", MetricsState())
        assert isinstance(state, MetricsState)
        self.state = state
        self.data = ChartData(session.run.feed, self.tasks, self.draw)
        self.charts: tuple[ChartView, ...] = ()
        self.last_values = LastValue()
        self._visible: tuple[str, ...] = ()
        self._drawn: float | None = None
        self._resting: Timer | None = None

    def bodies(self) -> Sequence[Pane]:
        self.pane = ChartsPane(id="charts")
        return (self.pane,)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """One pane for all charts."""
        return {"charts": (0, top, width, height)}

    # ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that pass the filter."""
        return matching(without_doubles(self.data.with_values), self.state.filter)

    @property
    def series(self) -> RunSeries:
        attempts = attempt_spans(self.now.story, self._end_t)
        return RunSeries(
            name=self.session.run.name,
            points=self.data.points(self._shown_t(attempts)),
            attempts=attempts,
            marks=self.timeline.marks,
        )

    @property
    def timeline(self) -> TimelineView:
        """The marks and the end of the run."""
        now = self.now
        return self.last_values.get("timeline", (id(now),), lambda: timeline_view(now))

    @property
    def _end_t(self) -> float:
        return max(self.timeline.now_t, 1.0)

    def _shown_t(self, attempts: Sequence[AttemptSpan]) -> tuple[float, float] | None:
        """The run seconds that are visible; None: all of it."""
        return seconds_in(self.state.zoom, self.state.options, self.data.points(None).get(STEPS, ()), attempts)

    def show(self) -> None:
        """Draw the charts from what is known, and read what they lack."""
        state = self.state
        run = self.series
        metrics = self.metrics
        if metrics and state.chosen not in metrics:
            state.chosen = metrics[0]
        chosen = self._chosen
        since, until = x_bounds(run, state.options, self._end_t)
        whole = Span(since, grown(until, state.zoom.length if state.zoom is not None else until))
        shown = state.extend(whole)
        self.whole, self.shown = whole, shown
        view = ChartsView(
            charts=tuple(ChartView(metric=m, title=words_of(m).title, unit="") for m in metrics),
            chosen=chosen,
            single=state.single,
            shown=shown,
            log=state.options.log,
            marks=marks_on(run, state.options),
            silences=self._silences(run),
            cursor=state.cursor,
            legend=state.options.overlaid,
            message=self._message(),
        )
        self.pane.view = view
        visible = set(self.pane.in_view())
        self.charts = tuple(self._chart(c, run) if n in visible else c for n, c in enumerate(view.charts))
        below = 0 if state.single else len(metrics) - 1 - max(self.pane.in_view(), default=0)
        words = self._words
        self.pane.set_title(words.title(len(metrics)), words.subtitle(below))
        self.pane.show(msgspec.structs.replace(view, charts=self.charts), self._words.labels)
        self._visible = tuple(m for n, m in enumerate(metrics) if n in visible)
        moved_on, self._drawn = self._drawn not in {None, shown.length}, shown.length
        if self._resting is not None:
            self._resting.stop()
            self._resting = None
        if moved_on:
            self._resting = self.set_timer(REST_S, self._read)
        else:
            self._read()

    def _read(self) -> None:
        """Read what the charts that are shown lack."""
        attempts = attempt_spans(self.now.story, self._end_t)
        self.data.again(Wanted(self._visible, self._end_t, self._shown_t(attempts), self.pane.columns * 2))

    def _chart(self, blank: ChartView, run: RunSeries) -> ChartView:
        """The chart of a metric, made again only if there are other points, attempts or options."""
        metric, options = blank.metric, self.state.options
        points = run.points.get(metric, ()), run.points.get(STEPS, ())
        depends = (options, *points, tuple(a.since_t for a in run.attempts))
        return self.last_values.get(metric, depends, lambda: chart_view(metric, run, options))

    @property
    def _words(self) -> ChartWords:
        return ChartWords(self.state, self.shown, self.timeline, self.now)

    def _silences(self, run: RunSeries) -> tuple[tuple[float, float], ...]:
        """Stretches without steps, if the axis is the time of the run."""
        options, still_t = self.state.options, self.timeline.steps_until_t
        if options.x == "step" or options.overlaid:
            return ()
        steps, is_silence = run.points.get(STEPS, ()), self.timeline.is_silence

        def work() -> tuple[tuple[float, float], ...]:
            found = silences([(p[0], p[3]) for p in steps], run.attempts, still_t)
            return found if is_silence else tuple(each for each in found if not math.isinf(each[1]))

        depends = (steps, tuple((a.since_t, a.ended) for a in run.attempts), still_t, is_silence)
        return self.last_values.get("silences", depends, work)

    def _message(self) -> str:
        if self.data.trouble:
            return self.data.trouble
        if not self.now.story.attempts:
            return "No metric yet: the run was not started."
        if self.data.names is None or not self.data.is_read:
            return "Reading …"
        if self.state.filter and self.data.with_values:
            return f"No metric contains “{self.state.filter}”. / changes the filter, Esc ends it."
        return (
            "No values yet. GPU, host and process readings come about a second after the start; loss, lr and what else "
            "the trainer logs by name come with its first log lines."
        )

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _choose(self, number: int) -> None:
        metrics = self.metrics
        if metrics:
            self.state.chosen = metrics[max(0, min(number, len(metrics) - 1))]
            self.draw()

    @property
    def _chosen(self) -> int:
        metrics = self.metrics
        return metrics.index(self.state.chosen) if self.state.chosen in metrics else 0

    def action_single(self) -> None:
        self.state.single = not self.state.single
        self.draw()

    def action_left(self, columns: int) -> None:
        if self.state.single:
            self.action_cursor(columns)
        else:
            self._choose(self._chosen + columns)

    def action_up(self, rows: int) -> None:
        self._choose(self._chosen + rows * (1 if self.state.single else self._across))

    def action_page(self, pages: int) -> None:
        self._choose(self._chosen + pages * (1 if self.state.single else max(1, len(self.pane.in_view()))))

    @property
    def _across(self) -> int:
        return self.pane.grid(*self.pane.size)[0]

    def action_cursor(self, columns: int) -> None:
        """Move the cursor by columns of the chart; it begins at the newest value."""
        state = self.state
        step = self.shown.length / max(8, self.pane.columns)
        at = state.cursor if state.cursor is not None else self.shown.until - step
        self._set_cursor(at + columns * step)

    def _set_cursor(self, x: float) -> None:
        self.state.point_at(x, self.whole)
        self.draw()

    def action_closer(self, steps: int, about: float | None = None) -> None:
        self.state.closer(steps, about, self.shown, self.whole)
        self.draw()

    def action_pan(self, quarters: int) -> None:
        if self.state.pan(quarters, self.whole):
            self.draw()
        else:
            self.show_message("All of the run is shown: + shows a shorter part.")

    def action_to_end(self, newest: bool) -> None:
        self._set_cursor(self.shown.until if newest else self.shown.since)

    def action_whole(self) -> None:
        self.state.show_all()
        self.draw()

    def _turn(self, **changes: object) -> None:
        self.state.options = msgspec.structs.replace(self.state.options, **changes)
        self.draw()

    def action_axis(self) -> None:
        """Time or steps; the visible part and the cursor belong to the old axis."""
        x = "time" if self.state.options.x == "step" else "step"
        if x == "step" and not self.data.points(None).get(STEPS):
            self.show_message("The log of this run has shown no step number yet.")
            return
        self.state.show_all()
        self._turn(x=x)

    def action_smooth(self) -> None:
        levels = LEVELS
        at = levels.index(self.state.options.smooth) if self.state.options.smooth in levels else 0
        self._turn(smooth=levels[(at + 1) % len(levels)])

    def action_log(self) -> None:
        self._turn(log=not self.state.options.log)

    def action_overlay(self) -> None:
        """Only useful after a restart."""
        if len(self.now.story.attempts) < 2 and not self.state.options.overlaid:
            self.show_message("There is one attempt only.")
            return
        self.state.show_all()
        self._turn(overlaid=not self.state.options.overlaid)

    def action_export(self) -> None:
        """Save the numbers of the chosen chart or of all, as far as they are visible."""
        from .chart_export import Export, ask_export

        metrics, attempts = self.metrics, attempt_spans(self.now.story, self._end_t)
        if not metrics:
            self.show_message("There is no chart to save.")
            return
        since_t, until_t = self._shown_t(attempts) or (0.0, self._end_t)
        run = self.session.run
        export = Export(
            name=run.name, feed=run.feed, attempts=attempts, wall0=self.now.story.wall0,
            since_t=max(0.0, since_t), until_t=min(until_t, self._end_t),
            chosen=metrics[self._chosen], metrics=metrics,
        )  # fmt: skip
        ask_export(self.app, self.tasks, export, self.show_message)

    def action_filter(self) -> None:
        """Ask for a text; nothing shows all of them."""
        from ...dialogs.ask_filter import AskFilter

        def answered(text: str | None) -> None:
            if text is not None:
                self.state.filter = text
                self.draw()

        self.app.push_screen(AskFilter("metrics whose name", self.state.filter), answered)

    def action_back(self) -> None:
        """Take back what was changed last; then leave."""
        if self.state.back():
            self.draw()
        else:
            self.application.action_leave_place()

    def on_charts_pane_pointed(self, message: ChartsPane.Pointed) -> None:
        """A click chooses a chart and puts the cursor there; the wheel zooms about the pointer."""
        metrics = self.metrics
        if message.chart < len(metrics):
            self.state.chosen = metrics[message.chart]
        if message.what == "click":
            if message.x is not None:
                self._set_cursor(message.x)
            self.draw()
        elif message.x is not None:
            self.action_closer(1 if message.what == "in" else -1, message.x)
