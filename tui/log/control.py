"""Following, holding, paging and searching the log of the dashboard. Reading happens in threads."""

import re
from collections.abc import Callable
from typing import Any, Protocol

from textual.app import App
from textual.geometry import Size
from textual.widget import Widget

from ...core.model.ports import LogReader, OpenRun
from ...core.model.situation import Situation
from ..poller import Look, Pulse
from .log_pane import LogPane
from .search import Hit, find

PAGE_LINES = 400
CONTEXT_ROWS = 2
"""Lines shown above a match, where the pane has room for them."""
BEYOND = 1 << 62
"""An offset behind the end of every log."""
KEPT_LINES = 4000
"""A held page grows upwards to this many lines; then its lower end is let go."""


class LogHolder(Protocol):
    """The screen that the pane stands on."""

    run: OpenRun
    now: Situation
    reader: LogReader
    pulse: Pulse

    @property
    def app(self) -> App[Any]:
        """Where what was read is called back."""
        ...

    @property
    def size(self) -> Size:
        """In cells."""
        ...

    def say(self, text: str) -> None:
        """A sentence in the footer."""
        ...

    def query(self, selector: type[Widget], /) -> Any:
        """The lines that ask, where there are any."""
        ...

    def mount(self, *widgets: Widget) -> Any:
        """Show a widget."""
        ...

    def run_worker(self, work: Callable[[], None], /, *, thread: bool, exit_on_error: bool) -> Any:
        """Run something that may block."""
        ...


class LogControl:
    """Drives one LogPane."""

    def __init__(self, on: LogHolder, pane: LogPane) -> None:
        self.pane = pane
        self.path: str | None = None
        self._on = on
        self._start = 0
        self._match: int | None = None
        self._reading = False
        self._trouble = ""

    def draw(self, look: Look | None) -> None:
        """Show the newest page while following."""
        pane = self.pane
        if look is not None:
            if look.log_path != self.path:
                self.path = look.log_path
                pane.page = ()
                self.follow(True)
            self._trouble = look.trouble or ""
            if pane.following and look.log is not None:
                bar = (look.log.unfinished,) if look.log.unfinished else ()
                pane.page, self._start = look.log.lines + bar, look.log.start
        self._show()

    def follow(self, yes: bool) -> None:
        """Follow the end, or hold what is shown."""
        pane = self.pane
        pane.following = yes
        self._on.pulse.follow_log = yes
        if yes:
            pane.back, pane.top, pane.pattern, self._match = 0, None, None, None
            self._on.pulse.hurry()
        self._show()

    def scroll(self, rows: int) -> None:
        """Up (positive) or down. Scrolling up holds; scrolling down past the end follows again."""
        pane = self.pane
        if pane.following:
            if rows < 0:
                return
            self.follow(False)
        if pane.scroll(rows) and self._start > 0:
            self._read_older()
        elif rows < 0 and pane.back == 0:
            self._read_newer()

    def ask(self) -> None:
        """Open the line that asks for a pattern."""
        from .prompt import SearchBar

        if self._on.query(SearchBar):
            return
        before = "" if self.pane.pattern is None else self.pane.pattern.pattern.removeprefix("(?i)")
        self._on.mount(SearchBar(before, self.answer))

    def answer(self, text: str | None) -> None:
        """The pattern that was typed; None = closed without one."""
        from .prompt import SearchBar

        self._on.query(SearchBar).remove()
        if not text:
            return
        try:
            self.pane.pattern = re.compile(text if text != text.lower() else f"(?i){text}")
        except re.error as error:
            self._on.say(f"Not a regular expression: {error}")
            return
        self._match = None
        self.next(older=True)

    def next(self, *, older: bool) -> None:
        """Go to the next match; the first search goes backwards from the end."""
        pattern, path = self.pane.pattern, self.path
        if pattern is None or path is None:
            self._on.say("Nothing searched for yet: press /")
            return
        reader = self._on.reader
        at = self._match

        def search() -> Callable[[], None]:
            offset = BEYOND if at is None else at
            hit = find(reader, path, pattern.pattern, offset, older=older)
            return lambda: self._found(hit, older=older)

        self._read(search)

    def _found(self, hit: Hit | None, *, older: bool) -> None:
        if hit is None:
            self._on.say(f"No {'older' if older else 'newer'} match")
            self._show()
            return
        self.follow(False)
        pane = self.pane
        above = min(CONTEXT_ROWS, pane.size.height // 3)
        pane.page, pane.top, pane.back = hit.lines, max(0, hit.top - above), 0
        self._start, self._match = hit.start, hit.offset
        self._show()

    def _read_older(self) -> None:
        path, start, reader = self.path, self._start, self._on.reader
        if path is None:
            return

        def read() -> Callable[[], None]:
            page = reader.before(path, start, PAGE_LINES)

            def show() -> None:
                if page.lines and self._start == start:
                    kept = self.pane.page[: max(0, KEPT_LINES - len(page.lines))]
                    self.pane.back = max(0, self.pane.back - (len(self.pane.page) - len(kept)))
                    self.pane.page, self._start = page.lines + kept, page.start
                    self._show()

            return show

        self._read(read)

    def _read_newer(self) -> None:
        """Down from the end of a held page: it is the end of the file only after a scroll up, so follow again."""
        if self._match is None:
            self.follow(True)

    def _read(self, work: Callable[[], Callable[[], None]]) -> None:
        if self._reading:
            return
        self._reading = True

        def run() -> None:
            try:
                show = work()
            except Exception as error:
                text = str(getattr(error, "strerror", None) or error)
                show = lambda: self._on.say(f"{self.path}: {text}")  # noqa: E731

            def back() -> None:
                self._reading = False
                show()

            self._on.app.call_later(back)

        self._on.run_worker(run, thread=True, exit_on_error=False)

    def _show(self) -> None:
        title = self.path if self.path is not None and self._on.size.width >= 100 else ""
        self.pane.show(self.pane.page, title=title, message=self._message())

    def _message(self) -> str:
        plan = self._on.run.plan
        if self._trouble:
            return self._trouble
        if not self._on.now.story.attempts and plan is not None:
            return f"Enter would start, in {plan.cwd}: {' '.join(plan.command)}"
        return "Nothing written yet." if self.path else "No log yet."
