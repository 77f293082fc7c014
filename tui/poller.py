"""Polls the run once a second in a background thread; snapshots are handed over on the screen's thread."""

from collections.abc import Callable, Mapping

import msgspec

from ..core.model.ports.screen import Feed
from ..core.model.situation import Situation
from .background import Show, Task, TaskQueue
from .ui.series import Columns, SeriesCache, SeriesQuery


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What one poll found. ``trouble``: why something could not be read."""

    situation: Situation
    series: Mapping[SeriesQuery, Columns]
    trouble: str | None = None


class Poller:
    """Calls ``take`` with a snapshot on the screen's thread; ``series_queries``: the histories to read.

    ``beside``: called on the screen's thread before a poll; what it returns is done in the same background thread, and
    shown right before the snapshot, so that the screen is painted once for both.
    """

    def __init__(
        self,
        feed: Feed,
        tasks: TaskQueue,
        take: Callable[[Snapshot], None],
        beside: Callable[[], Task | None] = lambda: None,
    ) -> None:
        self.series_queries: tuple[SeriesQuery, ...] = ()
        self._feed, self._tasks, self._take, self._beside = feed, tasks, take, beside
        self._cache = SeriesCache()
        self._polling = self._again = False

    def poll(self) -> None:
        """Poll in the background; while a poll runs, once more after it."""
        if self._polling:
            self._again = True
            return
        self._polling, self._again = True, False
        beside = self._beside()
        self._tasks.submit(lambda: self._task(beside))

    def once(self) -> Snapshot:
        """Poll on the calling thread."""
        now = self._feed.poll()
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

    def _task(self, beside: Task | None) -> Show:
        show_beside = None if beside is None else beside()
        try:
            snapshot = self.once()
        except Exception as error:
            snapshot = Snapshot(situation=Situation(), series={}, trouble=f"cannot read the run: {error}")

        def show() -> None:
            self._polling = False
            if show_beside is not None:
                show_beside()
            self._take(snapshot)
            if self._again:
                self.poll()

        return show
