"""Search in a log of any size: the next match, which can be cancelled."""

import re
import threading
import time
from collections.abc import Callable

from ..background import Owner, Show, TaskQueue
from .log_driver import LogSource, guarded

BEYOND = 1 << 62
"""An offset past the end of any log."""
WORK_S, YIELD_S = 0.003, 0.0005
"""After WORK_S of work the search sleeps for YIELD_S, so that the screen's thread gets the interpreter."""


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
    """Searches one pattern in one file. ``pattern``: combined with the filter if there is one."""

    def __init__(self, owner: Owner, show_message: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.pattern: re.Pattern[str] | None = None
        self.looking = False
        self._show_message, self._changed = show_message, changed
        self._source: LogSource | None = None
        self._tasks = TaskQueue(owner, "log-find", in_order=True)
        self._stop = threading.Event()

    def close(self) -> None:
        self.cancel()
        self._tasks.close()

    def cancel(self) -> bool:
        """Cancel the running search; True if one was running."""
        busy, self.looking = self.looking, False
        self._stop.set()
        return busy

    def begin(self, source: LogSource, pattern: re.Pattern[str] | None) -> None:
        """Set another pattern or file."""
        self.cancel()
        self._source, self.pattern = source, pattern

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
        self._stop.set()
        self._stop = stop = threading.Event()
        self.looking = True

        def trouble(text: str) -> None:
            self.looking = False
            self._show_message(text)

        def look() -> Show:
            offset = None if stop.is_set() else work(source, yielding(stop))

            def show() -> None:
                if not stop.is_set():
                    self.looking = False
                    found(offset)

            return show

        self._tasks.submit(lambda: guarded(look, source.file.path, trouble))
        self._changed()
