"""Key 7: every metric of the run as a chart, in a grid or alone."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec
from textual.binding import BindingType
from textual.timer import Timer

from ...core.model.screen_ports import Feed, Point
from ...core.model.situation import Situation
from ...core.views import quantity
from ...core.views.chart_view import (
    STEPS,
    ChartOptions,
    ChartView,
    RunSeries,
    chart_view,
    marks_on,
    seconds_in,
    x_bounds,
)
from ...core.views.charts import (
    LEVELS,
    AttemptSpan,
    Span,
    at_end,
    attempt_spans,
    grown,
    moved,
    showing,
    silences,
    step_label,
    ticks,
    zoomed,
)
from ...core.views.metrics import in_order, matching, without_doubles, words_of
from ...core.views.timeline import TimelineView, timeline_view
from ...core.views.timeline import ticks as clock_ticks
from ..background import Show, TaskQueue
from ..keys import Key
from ..panes.charts_pane import ChartsPane, ChartsView
from ..panes.pane import Pane
from ..run_session import Box
from ..ui.looks import LastValue
from .place_screen import RunPage, bindings_of

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


# What the metrics page shows: which charts, which part of their axis, and how they are drawn.

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


# The keys of the metrics page.

METRIC_KEYS: tuple[Key, ...] = (
    Key(key="enter", shown="Enter", action="single", label="one/all", help="the chosen chart alone, and back"),
    Key(key="left", shown="← →", action="left(-1)", label="choose", footer=False,
        help="choose a chart; in a single chart: move the cursor (shift: by ten columns)"),
    Key(key="up", shown="↑ ↓", action="up(-1)", label="chart", footer=False,
        help="choose a chart; in a single chart: the previous or next metric"),
    Key(key="comma", shown=", .", action="cursor(-1)", label="cursor",
        help="move the cursor over all charts (also a click); it shows their values there"),
    Key(key="plus", shown="+ -", action="closer(1)", label="zoom",
        help="a shorter or longer part of the axis, about the cursor (also [ ], and the wheel)"),
    Key(key="less_than_sign", shown="< >", action="pan(-1)", label="move", help="move along the axis"),
    Key(key="0", shown="0", action="whole", label="all of it", help="the whole axis, without a cursor", footer=False),
    Key(key="x", shown="x", action="axis", label="axis", help="the x axis: time or steps"),
    Key(key="s", shown="s", action="smooth", label="smooth",
        help="smoothing: off, 0.6, 0.9, 0.97 (an exponential mean; the values stay behind it)"),
    Key(key="l", shown="l", action="log", label="log y", help="values on a log scale, and back"),
    Key(key="slash", shown="/", action="filter", label="filter", help="show the metrics whose name contains a text"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back",
        help="take back the newest of: cursor, zoom, single chart, filter; then the previous screen", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("right", "left(1)"), ("down", "up(1)"), ("shift+left", "cursor(-10)"), ("shift+right", "cursor(10)"),
    ("full_stop", "cursor(1)"), ("minus", "closer(-1)"), ("equals_sign", "closer(1)"),
    ("left_square_bracket", "closer(1)"), ("right_square_bracket", "closer(-1)"), ("greater_than_sign", "pan(1)"),
    ("pageup", "page(-1)"), ("pagedown", "page(1)"), ("home", "to_end(False)"), ("end", "to_end(True)"),
    ("z", "single"),
)  # fmt: skip


# The points of one run for its charts: read in a thread, first coarsely over the whole run, then what is shown.

BASE_POINTS = 512
"""Points of a whole run: enough for a chart in a grid."""
FIRST = 24
"""Metrics that are read with the names: what the first picture shows, in one task."""
POINTS_A_DOT = 2
"""Finer points are read for the part that is shown and as much again around it, so many for each dot of a chart."""
AGAIN_S = 5.0
"""The newest values are read this often, seconds."""


class Answer(msgspec.Struct, frozen=True, eq=False):
    """The points of a metric between two times, run seconds. ``width_s``: of a point."""

    since_t: float
    until_t: float
    width_s: float
    points: tuple[Point, ...]


class Wanted(msgspec.Struct, frozen=True):
    """``visible``: metrics on the screen. ``end_t``: of the run so far; ``shown``: run seconds, None = all of it.

    ``dots``: of a curve, from left to right.
    """

    visible: tuple[str, ...] = ()
    end_t: float = 1.0
    shown: tuple[float, float] | None = None
    dots: int = 64


class ChartData:
    """``changed`` is called on the screen's thread when there is more to draw."""

    def __init__(self, feed: Feed, tasks: TaskQueue, changed: Callable[[], None]) -> None:
        self._feed, self._tasks, self._changed = feed, tasks, changed
        self.names: tuple[str, ...] | None = None
        """None: not read yet."""
        self.trouble = ""
        self._base: dict[str, Answer] = {}
        self._close: dict[str, Answer] = {}
        self._stale: set[str] = set()
        """Metrics of the base that have newer values."""
        self._wanted = Wanted()
        self._reading = False
        self._read_at = 0.0

    @property
    def with_values(self) -> tuple[str, ...]:
        """Metrics that have values, or whose values have not been read yet, in the order of the page."""
        return tuple(n for n in self.names or () if n not in self._base or self._base[n].points)

    @property
    def is_read(self) -> bool:
        """Whether every metric has been read once."""
        return self.names is not None and all(n in self._base for n in self.names)

    def points(self, shown: tuple[float, float] | None) -> Mapping[str, Sequence[Point]]:
        """By metric; the finer points where they cover what is ``shown`` (run seconds; None: all of the run)."""
        found: dict[str, Sequence[Point]] = {}
        for name, base in self._base.items():
            close = self._close.get(name)
            covers = shown is not None and close is not None and _covers(close, shown, base.until_t)
            found[name] = close.points if covers and close is not None else base.points
        return found

    def want(self, wanted: Wanted) -> None:
        """Read what these charts lack."""
        self._wanted = wanted
        self._read_next()

    def again(self, wanted: Wanted) -> None:
        """Read the newest values too, if the last time is long enough ago."""
        if time.monotonic() - self._read_at >= AGAIN_S and self.names is not None:
            self._read_at = time.monotonic()
            for name in (*wanted.visible, STEPS):
                base = self._base.get(name)
                if base is not None and wanted.end_t - base.until_t >= base.width_s:
                    self._stale.add(name)
        self.want(wanted)

    def _read_next(self) -> None:
        work = None if self._reading else self._missing()
        if work is None:
            return
        self._reading = True

        def task() -> Show:
            trouble = ""
            take: Show = lambda: None  # noqa: E731  nothing was read
            try:
                take = work()
            except Exception as error:
                trouble = f"history: {error}"

            def show() -> None:
                self._reading, self.trouble = False, trouble
                take()
                self._changed()
                if not trouble:
                    self._read_next()

            return show

        self._tasks.submit(task)

    def _missing(self) -> Callable[[], Show] | None:
        """What to read next: the names, the visible ones, the rest, newer points, finer points; None: nothing."""
        if self.names is None:
            return self._read_names
        known, end_t = self.names, self._wanted.end_t
        visible = [n for n in dict.fromkeys((*self._wanted.visible, STEPS)) if n in known]
        for some in (visible, known, [n for n in visible if n in self._stale]):
            lacking = [n for n in some if n not in self._base or n in self._stale]
            if some is known:
                lacking = [n for n in lacking if n not in self._base]
            if lacking:
                return self._reader(self._base, lacking, 0.0, max(end_t, 1.0), BASE_POINTS)
        if self._wanted.shown is None:
            return None
        since_t, until_t = max(0.0, self._wanted.shown[0]), min(self._wanted.shown[1], end_t)
        lacking = [n for n in visible if not self._is_fine(n, since_t, until_t)]
        if not lacking or until_t <= since_t:
            return None
        margin = (until_t - since_t) / 2
        first_t, last_t = max(0.0, since_t - margin), min(end_t, until_t + margin)
        width_s = max((until_t - since_t) / (self._wanted.dots * POINTS_A_DOT), 1.0)
        return self._reader(self._close, lacking, first_t, last_t, math.ceil((last_t - first_t) / width_s))

    def _is_fine(self, name: str, since_t: float, until_t: float) -> bool:
        """The points of this part are fine and new enough."""
        base, close = self._base[name], self._close.get(name)
        wanted_s = max((until_t - since_t) / self._wanted.dots, 1.0)
        if base.width_s <= wanted_s:
            return True
        if close is None or close.width_s > wanted_s:
            return False
        return _covers(close, (since_t, until_t), until_t - AGAIN_S)

    def _read_names(self) -> Show:
        names = in_order(self._feed.series_names())
        first = dict.fromkeys((*names[:FIRST], *(n for n in names if n == STEPS)))
        values = self._reader(self._base, tuple(first), 0.0, max(self._wanted.end_t, 1.0), BASE_POINTS)()

        def take() -> None:
            self.names = names
            values()

        return take

    def _reader(
        self, into: dict[str, Answer], names: Sequence[str], since_t: float, until_t: float, points: int
    ) -> Callable[[], Show]:
        def read() -> Show:
            charts = self._feed.charts(names, since_t, until_t, points)
            width = (until_t - since_t) / points
            answers = {n: Answer(since_t, until_t, width, tuple(charts.get(n, ()))) for n in names}

            def take() -> None:
                into.update(answers)
                self._stale.difference_update(names)

            return take

        return read


def _covers(answer: Answer, shown: tuple[float, float], end_t: float) -> bool:
    slack = answer.width_s * 2
    return answer.since_t <= max(0.0, shown[0]) + slack and answer.until_t >= min(shown[1], end_t) - slack


# What stands above and below the charts: titles, the visible part of the axis, and its ticks.

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
        return " · ".join(parts)

    def subtitle(self, below: int) -> str:
        """Where the cursor is, else what is visible. ``below``: charts that are out of sight."""
        axis = self._cursor() or f"{self.state.options.x}: {self._range()}"
        return f"{below} more ↓ · {axis}" if below > 0 else axis

    def labels(self, columns: int, shown: Span) -> Sequence[tuple[float, str]]:
        """The ticks of the axis."""
        options = self.state.options
        if options.x == "step":
            return [(x, step_label(x)) for x in ticks(shown.since, shown.until, max(1, columns // STEP_COLUMNS))]
        return clock_ticks(self.timeline, columns, TICK_COLUMNS, (shown.since, shown.until))

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
        return quantity.clock(self.now.story.wall0 + x, self.now.now_wall, seconds=True)


REST_S = 0.12
"""After zooming the charts are drawn from what is known; finer points are read after this rest."""


class MetricsScreen(RunPage):
    """The page of charts."""

    place = "metrics"
    keys = METRIC_KEYS
    edged: ClassVar[frozenset[str]] = frozenset({"charts"})
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(METRIC_KEYS, ALSO)

    def __init__(self, application: "TrainwatchApp", session: "Dashboard") -> None:
        super().__init__(application, session)
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
        if options.x == "step":
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

    def action_filter(self) -> None:
        """Ask for a text; nothing shows all of them."""
        from ..dialogs.dialog import ask_filter

        def answered(text: str | None) -> None:
            if text is not None:
                self.state.filter = text
                self.draw()

        self.app.push_screen(ask_filter("metrics whose name", self.state.filter), answered)

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
