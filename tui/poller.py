"""Polls the run in a background thread; snapshots are handed over on the screen's thread."""

import time
from collections.abc import Callable, Mapping

import msgspec

from ..core.model.ports.screen import Feed
from ..core.model.situation import Situation
from .background import Show, TaskQueue
from .ui.series import Columns, SeriesCache, SeriesQuery

REST_S = 2.0
"""The screen takes numbers that only move at multiples of this: waking and painting it costs more than the poll."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What one poll found. ``trouble``: why something could not be read."""

    situation: Situation
    series: Mapping[SeriesQuery, Columns]
    trouble: str | None = None


class Aside(msgspec.Struct, frozen=True):
    """What was read beside a poll. ``news``: it is to be shown at once.

    ``show`` is called right before a snapshot that draws it, so that the screen is painted once for both; ``alone``
    draws it without a snapshot.
    """

    news: bool
    show: Show
    alone: Show


class Poller:
    """Calls ``take`` with a snapshot on the screen's thread; ``series_queries``: the histories to read.

    Every ``period_s`` it polls by itself (0: only when asked). ``at_once`` is called in the thread of the poll: what
    the screen has to show at once. While that is the same as before, snapshots are dropped until the next multiple of
    REST_S; if it is None, none is. ``aside``: called in the same thread before a poll, for what is read beside it.
    """

    def __init__(
        self,
        feed: Feed,
        tasks: TaskQueue,
        take: Callable[[Snapshot], None],
        *,
        period_s: float = 0.0,
        at_once: Callable[[Situation], object] = lambda _: None,
        aside: Callable[[], Aside | None] = lambda: None,
    ) -> None:
        self.series_queries: tuple[SeriesQuery, ...] = ()
        self.period_s = period_s
        self._feed, self._tasks, self._take, self._at_once, self._aside = feed, tasks, take, at_once, aside
        self._cache = SeriesCache()
        self._polling = self._again = False
        self._handed = False
        """Something was handed over that the screen's thread has not shown yet."""
        self._given: tuple[float, object] = (0.0, None)
        """When a snapshot was handed over last, and what it had to show at once."""
        if period_s > 0:
            tasks.repeat(self._regular, period_s)

    def poll(self) -> None:
        """Poll now, in the background; while a poll that was asked for runs, once more after it."""
        if self._polling:
            self._again = True
            return
        self._polling, self._again = True, False
        self._tasks.submit(self._asked)

    def once(self) -> Snapshot:
        """Poll on the calling thread."""
        return self._with_series(self._feed.poll())

    def _with_series(self, now: Situation) -> Snapshot:
        series_queries = self.series_queries
        self._cache.forget(series_queries)
        trouble: str | None = None
        series: dict[SeriesQuery, Columns] = {}
        for series_query in series_queries:
            try:
                series[series_query] = self._cache.get(series_query, now.now_t, self._feed.series)
            except Exception as error:
                trouble = f"history: {error}"
        return Snapshot(situation=now, series=series, trouble=trouble)

    def _asked(self) -> Show:
        found = self._found(waits=False)
        assert found is not None

        def show() -> None:
            self._polling = False
            found()
            if self._again:
                self.poll()

        return show

    def _regular(self) -> Show | None:
        """A poll that was not asked for; none while the screen's thread does not come to show the one before."""
        return None if self._handed else self._found(waits=True)

    def _found(self, *, waits: bool) -> Show | None:
        """Poll; what shows the result, None: it ``waits``, since nothing is to be shown at once."""
        aside = self._aside()
        try:
            now = self._feed.poll()
            given = (time.monotonic() // REST_S, self._at_once(now))
            if waits and given[1] is not None and given == self._given:
                return self._handing(aside.alone) if aside is not None and aside.news else None
            snapshot = self._with_series(now)
            self._given = given
        except Exception as error:
            snapshot = Snapshot(situation=Situation(), series={}, trouble=f"cannot read the run: {error}")

        def show() -> None:
            if aside is not None:
                aside.show()
            self._take(snapshot)

        return self._handing(show)

    def _handing(self, show: Show) -> Show:
        self._handed = True

        def shown() -> None:
            self._handed = False
            show()

        return shown
