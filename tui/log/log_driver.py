"""Moves a LogView over a log of any size: follows its end, pages, goes to offsets. Files are read in a thread."""

import re
from collections.abc import Callable, Iterable
from functools import partial

import msgspec
from textual.widget import Widget

from ...core.model.log_lines import LogFile, LogStretch, Stopped
from ...core.model.ports import LogBrowser
from ...core.model.redact import EDGE
from ..background import Show, TaskQueue, tried
from .log_view import LogView, LogWindow, Reading

# Reads one log: pages with their times, the next match, the offset of an incident. Used in threads.

PAGE_LINES = 200
"""Lines read at once: a few screens."""
ABOVE_LINES = 120
"""Lines read above a target offset."""


class LogSource(msgspec.Struct, frozen=True):
    """One file, how to read it, and when its lines were written. All calls may block and raise OSError."""

    file: LogFile
    browser: LogBrowser
    stamps: Callable[[int, int], float | None] | None = None

    def tail(self, lines: int, only: re.Pattern[str] | None) -> Reading:
        return self._timed(self.browser.before(self.file.path, self.browser.size(self.file.path), lines, only))

    def before(self, offset: int, only: re.Pattern[str] | None) -> Reading:
        """A page that ends at ``offset``."""
        return self._timed(self.browser.before(self.file.path, offset, PAGE_LINES, only))

    def after(self, offset: int, only: re.Pattern[str] | None) -> Reading:
        """A page that begins at ``offset``."""
        return self._timed(self.browser.after(self.file.path, offset, PAGE_LINES, only))

    def around(self, offset: int, only: re.Pattern[str] | None) -> Reading:
        """Lines above and below a line."""
        above = self.browser.before(self.file.path, offset, ABOVE_LINES, only)
        below = self.browser.after(self.file.path, offset, PAGE_LINES, only)
        return self._timed(msgspec.structs.replace(below, lines=above.lines + below.lines, start=above.start))

    def find(self, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped) -> int | None:
        """The nearest match that begins before ``offset`` or behind it."""
        return self.browser.find(self.file.path, pattern, offset, backwards=backwards, stopped=stopped)

    def texts(self, first: int, last: int, only: re.Pattern[str] | None) -> Iterable[str]:
        """Texts of the lines that begin in ``[first, last]``."""
        at = first
        while at <= last:
            page = self.browser.after(self.file.path, at, PAGE_LINES, only)
            yield from (EDGE.text(line.text) for line in page.lines if line.offset <= last)
            if page.end <= at:
                return
            at = page.end

    def _timed(self, stretch: LogStretch) -> Reading:
        stamps, attempt = self.stamps, self.file.attempt
        if stamps is None or attempt is None:
            return Reading(stretch)
        times = ((line.offset, stamps(attempt, line.offset)) for line in stretch.lines)
        return Reading(stretch, {offset: t for offset, t in times if t is not None})


def combined(search: re.Pattern[str], only: re.Pattern[str] | None) -> re.Pattern[str]:
    """A pattern for lines that match both."""
    if only is None:
        return search
    return re.compile(f"^(?=.*{_scoped(only)}).*{_scoped(search)}")


def compiled(text: str) -> re.Pattern[str]:
    """Compile a typed pattern; without a capital letter, case is ignored. Raises re.error."""
    return re.compile(text, 0 if any(c.isupper() for c in text) else re.IGNORECASE)


def _scoped(pattern: re.Pattern[str]) -> str:
    return f"(?i:{pattern.pattern})" if pattern.flags & re.IGNORECASE else f"(?:{pattern.pattern})"


JUMP_BYTES = 65536
"""A log that grew by more since the last read is read from its end; the lines between are in the file."""
MARGIN_ROWS = 150
"""The next page is read when no more than a screen, or so many rows, are left in the window."""
HIT_SHARE = 0.35
"""The line at a target offset is shown at this share of the height."""


class LogDriver:
    """``changed`` is called when something other than the rows may have changed (the title, the position)."""

    def __init__(
        self, view: LogView, owner: Widget, show_message: Callable[[str], None], changed: Callable[[], None]
    ) -> None:
        self.view = view
        self.source: LogSource | None = None
        self.only: re.Pattern[str] | None = None
        self.scanning = False
        """A filter has not read enough of the file yet to fill the screen."""
        self._show_message, self._changed = show_message, changed
        self.tasks = TaskQueue(owner, "log-pages", in_order=True)
        self._generation = 0
        self.busy = False
        self.trouble = ""
        """Why the newest reading failed; empty if it did not."""

    def close(self) -> None:
        self._generation += 1
        self.tasks.close()

    def open(self, source: LogSource | None) -> None:
        """Show the end of another file."""
        self.source = source
        self._renew()
        self.follow(True)

    def filter(self, only: re.Pattern[str] | None) -> None:
        """Show matching lines only; a held screen stays where it was."""
        at = self.place
        self.only = only
        self._renew()
        if at is None:
            self.follow(True)
        else:
            self.go(at)

    @property
    def place(self) -> int | None:
        """Offset of the line under the cursor; None while the end is followed."""
        view = self.view
        if view.following or not len(view.window):
            return None
        return view.window.lines[min(view.cursor, len(view.window) - 1)].offset

    def follow(self, yes: bool) -> None:
        """Follow the end, or hold what is shown."""
        view = self.view
        view.following, view.marked_from = yes, None
        if yes:
            self._generation += 1
            self.busy = False
            if not view.window.at_end:
                view.window = LogWindow()
            view.to_end()
            self.look()
        self._show()

    def look(self, *, wait: bool = False) -> None:
        """Read what was written since, if the end is followed. ``wait``: on the calling thread (tests)."""
        source, view, window, only = self.source, self.view, self.view.window, self.only
        if source is None or not view.following or (self.busy and not wait):
            return
        known, end, height = window.file_size, window.end, max(1, view.size.height)
        whole = bool(len(window)) and window.at_end

        def read() -> Show:
            size = source.browser.size(source.file.path)
            if size == known and whole:
                return lambda: None
            if whole and end < size and (only is not None or size - end <= JUMP_BYTES):
                more = source.after(end, only)
                if more.stretch.end + JUMP_BYTES >= more.stretch.file_size:
                    return partial(self._gain, more)
            return partial(self._gain, source.tail(2 * height, only), whole=True)

        self._read(read, wait=wait)

    def scroll(self, rows: int) -> None:
        """Scroll the text up (positive) or down."""
        self._moved(rows, self.view.scroll, lambda: (self.view.top, self.view.skip))

    def move(self, lines: int) -> None:
        """Move the cursor down (positive) or up."""
        self._moved(lines, self.view.move, lambda: self.view.cursor)

    def _moved(self, by: int, move: Callable[[int], None], place: Callable[[], object]) -> None:
        """Upwards it holds; downwards from the end it follows again."""
        view = self.view
        if view.following and by >= 0:
            return
        view.following, before = False, place()
        move(by)
        if by > 0 and place() == before and view.window.at_end:
            self.follow(True)
        self._show()

    def put_cursor(self, line: int) -> None:
        """Put the cursor on a line of the window."""
        self.view.following = False
        self.view.cursor = max(0, min(len(self.view.window) - 1, line))
        self._show()

    def to_start(self) -> None:
        """Go to the first line of the file."""
        self.go(0, share=0.0)

    def go(self, offset: int, share: float = HIT_SHARE) -> None:
        """Hold, with the line at ``offset`` under the cursor."""
        source, view, only = self.source, self.view, self.only
        if source is None:
            return
        view.following = False
        self._generation += 1
        self.busy = False

        def read() -> Callable[[], None]:
            reading = source.around(offset, only)

            def take() -> None:
                view.window = LogWindow(reading)
                view.cursor = view.window.index_of(offset)
                view.reveal(share)

            return take

        self._read(read)

    def _gain(self, reading: Reading, *, whole: bool = False) -> None:
        """Show lines at the end; ``whole``: in place of the window."""
        view = self.view
        if not view.following:
            return
        if whole:
            view.window = LogWindow(reading)
        else:
            view.window.add_below(reading)
        view.to_end()

    def _renew(self) -> None:
        self._generation += 1
        self.busy, self.scanning = False, False
        view = self.view
        view.window, view.top, view.skip, view.cursor, view.marked_from = LogWindow(), 0, 0, 0, None

    def _show(self) -> None:
        self._fill()
        self.view.redraw()
        self._changed()

    def _fill(self) -> None:
        """Read the next page before it is needed."""
        view, window, source, only = self.view, self.view.window, self.source, self.only
        if self.busy or source is None:
            return
        margin = min(MARGIN_ROWS, max(1, view.size.height))
        _, last = view.visible_lines
        start, end = window.start, window.end
        self.scanning = False
        if not view.following and len(window) - last <= margin and not window.at_end:

            def below() -> Callable[[], None]:
                reading = source.after(end, only)
                return lambda: view.shift(-window.add_below(reading))

            self.scanning = only is not None
            self._read(below)
        elif view.top <= margin and not window.at_start and not (view.following and (view.top or len(window) > margin)):

            def above() -> Callable[[], None]:
                reading = source.before(start, only)

                def take() -> None:
                    view.shift(window.add_above(reading))
                    if view.following:
                        view.to_end()

                return take

            self.scanning = only is not None
            self._read(above)

    def _read(self, work: Callable[[], Show], *, wait: bool = False) -> None:
        """Call ``work`` in a thread, then what it returns. An error is told once, not at each look."""
        source, generation = self.source, self._generation
        if source is None:
            return
        self.busy = True

        def taken(take: Show | None, trouble: str) -> None:
            if generation != self._generation:
                return
            self.busy = False
            before, self.trouble = self.trouble, f"{source.file.path}: {trouble}" if trouble else ""
            if self.trouble and self.trouble != before:
                self._show_message(self.trouble)
            if take is not None:
                take()
            self._show()

        if wait:
            taken(*tried(work))
        else:
            self.tasks.fetch(work, taken)
