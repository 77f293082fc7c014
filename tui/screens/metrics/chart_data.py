"""The points of one run for its charts: read in a thread, first coarsely over the whole run, then what is shown."""

import math
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ....core.model.ports.screen import Feed, Point
from ....core.views.charts.chart_view import STEPS
from ....core.views.metric_words import in_order
from ...background import Show, TaskQueue

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
