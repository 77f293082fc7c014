"""Blocking work off the screen's thread. This is the only module of the screen that starts threads for work.

A task runs in a daemon thread, so that a stuck filesystem does not keep the process from ending. It returns a callable
that shows the result; that one is called on the screen's thread, unless the owner of the queue was removed meanwhile.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from textual.app import App
from textual.widget import Widget

from ..core.model.ports import Readings
from ..core.model.story import Situation
from ..core.model.text import next_round
from .ui.chart import Columns, SeriesCache, SeriesQuery

Show = Callable[[], None]
Task = Callable[[], Show]
"""Runs in a thread and handles its own errors."""
Round = Callable[[], Show | None]
"""A task that is repeated; None: nothing is to be shown, and the screen's thread is not woken."""
Progress = Callable[[int, int], None]
"""(done, total); raises Cancelled when the task was cancelled."""
LEAVE_S = 2.0
"""How long leaving the screen waits until a cancelled task has removed what it wrote (a half-made copy)."""


Result = TypeVar("Result")


def tried(work: Callable[[], Result]) -> tuple[Result | None, str]:
    """Its result, or None and what it raised says; an error of the system without its number."""
    try:
        return work(), ""
    except Exception as error:
        return None, str(getattr(error, "strerror", None) or error) or type(error).__name__


class TaskQueue:
    """The tasks of one screen: each in a thread of its own, or with ``in_order`` one after another in a single one.

    Its application's thread shows the results, unless the screen was removed.
    """

    def __init__(self, owner: Widget, name: str = "task", *, in_order: bool = False) -> None:
        self._owner, self._name, self._in_order = owner, name, in_order
        self._app: App[Any] | None = None
        self._waiting: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._round: Round | None = None
        self._period_s = self._due = 0.0

    def submit(self, task: Task) -> None:
        """Run a task. Called on the screen's thread."""
        self._app = self._owner.app
        if not self._in_order:
            self._start(lambda: self.show(task()))
            return
        self._waiting.put(task)
        if self._thread is None:
            self._thread = self._start(self._run)

    def fetch(self, work: Callable[[], Result], then: Callable[[Result | None, str], None]) -> None:
        """Call ``work`` in a thread, and ``then`` on the screen's thread with its result, or with what it raised."""

        def task() -> Show:
            result, trouble = tried(work)
            return lambda: then(result, trouble)

        self.submit(task)

    def repeat(self, task: Round, period_s: float) -> None:
        """Also run this one at every multiple of ``period_s``, from the first submitted task on. Called before that.

        The thread waits by itself: a timer of the screen would wake the screen's thread only to wake this one.
        """
        self._round, self._period_s = task, period_s

    def show(self, show: Show) -> None:
        """Call ``show`` on the screen's thread; for a task that reports before it ends. Called from any thread."""
        app = self._app
        if app is not None and app.is_running and self._owner.is_attached:
            app.call_later(self._show, show)

    def close(self) -> None:
        """Start no further task of an ordered queue, and show no result any more."""
        self._closed = True
        self._waiting.put(None)

    def _show(self, show: Show) -> None:
        if self._owner.is_attached and not self._closed:
            show()

    def _run(self) -> None:
        self._due = next_round(time.monotonic(), self._period_s) if self._round is not None else 0.0
        while (task := self._next()) is not None:
            show = task()
            if show is not None:
                self.show(show)

    def _next(self) -> Task | Round | None:
        """The next task, or the repeated one if it is due; None: none is started any more."""
        if self._round is None:
            return self._waiting.get()
        try:
            return self._waiting.get(timeout=max(0.0, self._due - time.monotonic()))
        except queue.Empty:
            self._due = next_round(time.monotonic(), self._period_s)
            return self._round

    def _start(self, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=self._name, daemon=True)
        thread.start()
        return thread


class Cancelled(Exception):  # noqa: N818  not an error: the user cancelled it
    """Raised through the progress callback of a long task."""


class LongTaskState(msgspec.Struct, frozen=True, kw_only=True):
    """``done``/``total`` in bytes; total 0: not known yet."""

    title: str
    done: int = 0
    total: int = 0
    cancelled: bool = False


class LongTask:
    """At most one long task at a time, with progress, that can be cancelled.

    It belongs to the run's dashboard, so it continues while other screens are shown. ``changed`` is called on the
    screen's thread when there is new progress.
    """

    def __init__(self, owner: Widget, changed: Show) -> None:
        self._queue, self._changed = TaskQueue(owner, "long-task"), changed
        self._cancel, self._ended = threading.Event(), threading.Event()
        self._state: LongTaskState | None = None
        self._drawing = False

    @property
    def state(self) -> LongTaskState | None:
        """The running task; None if there is none."""
        return self._state

    def start(self, title: str, work: Callable[[Progress], Any], then: Callable[[Any, str], None]) -> bool:
        """Start; ``then(result, error message)`` is called on the screen's thread. False if another task runs."""
        if self._state is not None:
            return False
        self._cancel.clear()
        self._ended.clear()
        self._state = LongTaskState(title=title)

        def progress(done: int, total: int) -> None:
            if self._cancel.is_set():
                raise Cancelled(f"{title}: cancelled")
            self._state = LongTaskState(title=title, done=done, total=total)
            if not self._drawing:  # not more often than the screen draws it
                self._drawing = True
                self._queue.show(self._draw)

        def task() -> Any:
            try:
                return work(progress)
            finally:
                self._state = None
                self._ended.set()

        self._queue.fetch(task, then)
        return True

    def cancel(self) -> None:
        """End the task at its next progress report."""
        if self._state is not None:
            self._cancel.set()
            self._state = msgspec.structs.replace(self._state, cancelled=True)
            self._changed()

    def leave(self) -> None:
        """Cancel, and wait a moment for the task to clean up; a stuck disk is not waited for."""
        if self._state is not None:
            self._cancel.set()
            self._ended.wait(LEAVE_S)

    def _draw(self) -> None:
        self._drawing = False
        self._changed()


# Polls the run in a background thread; snapshots are handed over on the screen's thread.

REST_S = 2.0
"""The screen takes numbers that only move at multiples of this: waking and painting it costs more than the poll."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What one poll found. ``trouble``: why something could not be read."""

    situation: Situation
    series: Mapping[SeriesQuery, Columns]
    trouble: str | None = None


class Poller:
    """Calls ``take`` with a snapshot on the screen's thread; ``series_queries``: the histories to read.

    Every ``period_s`` it polls by itself (0: only when asked). ``at_once`` is called in the thread of the poll: what
    the screen has to show at once. While that is the same as before, snapshots are dropped until the next multiple of
    REST_S; if it is None, none is.
    """

    def __init__(
        self,
        feed: Readings,
        tasks: TaskQueue,
        take: Callable[[Snapshot], None],
        *,
        period_s: float = 0.0,
        at_once: Callable[[Situation], object] = lambda _: None,
    ) -> None:
        self.series_queries: tuple[SeriesQuery, ...] = ()
        self.period_s = period_s
        self._feed, self._tasks, self._take, self._at_once = feed, tasks, take, at_once
        self._cache = SeriesCache()
        self._polling = self._again = False
        self._handed = False
        """Something was handed over that the screen's thread has not shown yet."""
        self._given: tuple[float, object] = (0.0, None)
        """When a snapshot was handed over last, and what it had to show at once."""
        if period_s > 0:
            # None while the screen's thread does not come to show the one before.
            tasks.repeat(lambda: None if self._handed else self._found(waits=True), period_s)

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

    def _found(self, *, waits: bool) -> Show | None:
        """Poll; what shows the result, None: it ``waits``, since nothing is to be shown at once."""
        try:
            now = self._feed.poll()
            given = (time.monotonic() // REST_S, self._at_once(now))
            if waits and given[1] is not None and given == self._given:
                return None
            snapshot = self._with_series(now)
            self._given = given
        except Exception as error:
            snapshot = Snapshot(situation=Situation(), series={}, trouble=f"cannot read the run: {error}")

        self._handed = True

        def show() -> None:
            self._handed = False
            self._take(snapshot)

        return show
