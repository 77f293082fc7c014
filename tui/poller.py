"""The heartbeat of the screen: a thread that looks once a second and posts what it saw. It never touches a widget."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..core.model.ports import Feed, LogPage, LogReader
from ..core.model.situation import Situation
from .ui.series import Columns, SeriesCache, Wish

LOG_LINES = 400
"""Lines of the log that are read at each look: enough for the tallest pane and a scroll upwards."""
EMPTY_PAGE = LogPage(lines=(), start=0, end=0, at_end=True)


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found. ``log`` None: not asked for; ``trouble``: why something could not be read."""

    situation: Situation
    series: Mapping[Wish, Columns]
    log_path: str | None = None
    log: LogPage | None = None
    trouble: str | None = None


class Pulse:
    """Looks, on its own thread (``start``) or when told (``once``)."""

    def __init__(self, feed: Feed, reader: LogReader, seen: Callable[[Look], Any], interval_s: float) -> None:
        self.wishes: tuple[Wish, ...] = ()
        self.follow_log = True
        self._feed, self._reader, self._seen, self._interval_s = feed, reader, seen, interval_s
        self._cache = SeriesCache()
        self._wake = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin looking every ``interval_s``."""
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; a look under way is not waited for (a stuck filesystem must not keep the screen from closing)."""
        self._ended = True
        self._wake.set()

    def hurry(self) -> None:
        """Look at once."""
        self._wake.set()

    def once(self) -> Look:
        """One look, on the calling thread."""
        now = self._feed.poll()
        wishes = self.wishes
        self._cache.forget(wishes)
        trouble: str | None = None
        series: dict[Wish, Columns] = {}
        for wish in wishes:
            try:
                series[wish] = self._cache.get(wish, now.now_t, self._feed.series)
            except Exception as error:
                trouble = f"history: {error}"
        attempt = now.story.attempt
        path = attempt.log if attempt is not None else None
        page: LogPage | None = None
        if path is not None and self.follow_log:
            try:
                page = self._reader.tail(path, LOG_LINES)
            except Exception as error:
                page, trouble = EMPTY_PAGE, f"{path}: {getattr(error, 'strerror', None) or error}"
        return Look(situation=now, series=series, log_path=path, log=page, trouble=trouble)

    def _run(self) -> None:
        while not self._ended:
            self._wake.clear()
            try:
                look = self.once()
            except Exception as error:
                look = Look(situation=Situation(), series={}, trouble=f"cannot look at the run: {error}")
            if not self._ended:
                self._seen(look)
            self._wake.wait(self._interval_s)
