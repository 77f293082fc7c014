"""Search in a log: the next match, and in the background the number of matches. Both can be cancelled."""

import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from functools import partial

from ...core.model.log_lines import LogTally
from ..background import Owner, Show, TaskQueue
from .log_driver import LogSource, guarded

BEYOND = 1 << 62
"""An offset past the end of any log."""
TELL_S = 0.3
"""How often a running count reports its progress, seconds."""
TALLY_BYTES = 4 << 20
"""A tally is kept for every so many bytes, so that the number of a match is found by reading at most that much."""


WORK_S, YIELD_S = 0.003, 0.0005
"""After WORK_S of work the search sleeps for YIELD_S, so that the screen's thread gets the interpreter."""

PAUSE_S = 0.05


def yielding(stop: threading.Event) -> Callable[[], bool]:
    """A function for the browser to call between blocks: True = stop; it also yields to the screen's thread."""
    began = time.monotonic()

    def stopped() -> bool:
        nonlocal began
        if time.monotonic() - began > WORK_S:
            time.sleep(YIELD_S)
            began = time.monotonic()
        return stop.is_set()

    return stopped


class LogSearch:
    """Searches one pattern in one file."""

    def __init__(self, owner: Owner, show_message: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.pattern: re.Pattern[str] | None = None
        """What is searched for, combined with the filter if there is one."""
        self.total: int | None = None
        self.number: int | None = None
        """The match under the cursor is the ``number``-th of ``total``; None while that is not known."""
        self.so_far = 0
        self.share = 0.0
        self.looking = False
        self._show_message, self._changed = show_message, changed
        self._source: LogSource | None = None
        self._finding = TaskQueue(owner, "log-find", in_order=True)
        self._counting = TaskQueue(owner, "log-count", in_order=True)
        self._stop_find, self._stop_count = threading.Event(), threading.Event()
        self._tallies: list[LogTally] = [LogTally(0, 0)]

    def close(self) -> None:
        self.cancel()
        self._finding.close()
        self._counting.close()

    def cancel(self) -> bool:
        """Cancel the running search and count; True if one was running."""
        busy = self.looking or (self.pattern is not None and self.total is None and not self._stop_count.is_set())
        self._stop_find.set()
        self._stop_count.set()
        self.looking = False
        return busy

    def begin(self, source: LogSource, pattern: re.Pattern[str] | None) -> None:
        """Set another pattern or file, and count its matches."""
        self.cancel()
        self._source, self.pattern = source, pattern
        self.total = self.number = None
        self.so_far, self.share = 0, 0.0
        self._tallies = [LogTally(0, 0)]
        if pattern is not None:
            self._stop_count = threading.Event()
            self._count(None)

    def find(self, offset: int, *, backwards: bool, found: Callable[[int | None], None]) -> None:
        """Call ``found`` with the nearest match before ``offset`` (backwards), else at or after it; or None."""
        pattern = self.pattern
        if pattern is not None:
            self.seek(lambda s, stopped: s.find(pattern, offset, backwards=backwards, stopped=stopped), found)

    def seek(
        self,
        work: Callable[[LogSource, Callable[[], bool]], int | None],
        found: Callable[[int | None], None],
        source: LogSource | None = None,
    ) -> None:
        """Run any search for an offset; it replaces the running one."""
        source = source or self._source
        if source is None:
            return
        self._stop_find.set()
        self._stop_find = stop = threading.Event()
        self.looking = True

        def trouble(text: str) -> None:
            self.looking = False
            self._show_message(text)

        def run() -> Show:
            if stop.is_set():
                return _nothing
            return guarded(partial(look, source), source.file.path, trouble)

        def look(source: LogSource) -> Show:
            offset = work(source, yielding(stop))

            def show() -> None:
                if not stop.is_set():
                    self.looking = False
                    found(offset)

            return show

        self._finding.submit(run)
        self._changed()

    def rank(self, offset: int) -> None:
        """Find the number of the match at ``offset``, after the count is done."""
        self.number = None
        if self.pattern is not None:
            self._count(offset)

    @property
    def words(self) -> str:
        """``3 of 17``, or the progress of the count."""
        if self.total is not None:
            return f"{self.number:,} of {self.total:,}" if self.number is not None else f"{self.total:,}"
        if self._stop_count.is_set():
            return ""
        return f"{self.so_far:,} so far, {100 * self.share:.0f} %"

    def _count(self, hit: int | None) -> None:
        """Count the rest of the file; ``hit``: then find the number of the match there."""
        source, pattern, stop, tallies = self._source, self.pattern, self._stop_count, self._tallies
        if source is None or pattern is None:
            return

        def run() -> Show:
            return _nothing if stop.is_set() else guarded(work, source.file.path, self._show_message)

        def work() -> Show:
            browser, path = source.browser, source.file.path
            size = max(1, browser.size(path))
            last, reported = tallies[-1], time.monotonic()
            newest = last
            for tally in browser.tally(path, pattern, last.offset, BEYOND, self._after_find(stop)):
                newest = LogTally(tally.offset, last.matches + tally.matches)
                if newest.offset - tallies[-1].offset >= TALLY_BYTES:
                    tallies.append(newest)
                if time.monotonic() - reported >= TELL_S:
                    reported = time.monotonic()
                    self._progress(stop, newest.matches, newest.offset / size)
            if stop.is_set():
                return _nothing
            tallies.append(newest)
            number = None if hit is None else self._number(source, pattern, tallies, hit, stop)
            return partial(self._counted, stop, newest.matches, number)

        self._counting.submit(run)

    def _after_find(self, stop: threading.Event) -> Callable[[], bool]:
        """The count pauses while a search runs."""
        stopped = yielding(stop)

        def waiting() -> bool:
            while self.looking and not stop.wait(PAUSE_S):
                pass
            return stopped()

        return waiting

    def _number(
        self, source: LogSource, pattern: re.Pattern[str], tallies: list[LogTally], hit: int, stop: threading.Event
    ) -> int:
        near = tallies[bisect_right(tallies, hit, key=lambda t: t.offset) - 1]
        matches = 0
        for tally in source.browser.tally(source.file.path, pattern, near.offset, hit, yielding(stop)):
            matches = tally.matches
        return near.matches + matches + 1

    def _progress(self, stop: threading.Event, matches: int, share: float) -> None:
        def show() -> None:
            if not stop.is_set():
                self.so_far, self.share = matches, min(1.0, share)
                self._changed()

        self._counting.show(show)

    def _counted(self, stop: threading.Event, total: int, number: int | None) -> None:
        if not stop.is_set():
            self.total = total
            self.number = number if number is not None else self.number
            self._changed()


def _nothing() -> None:
    """The result of a cancelled task."""
