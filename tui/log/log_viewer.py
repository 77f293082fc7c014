"""The log viewer of the dashboard and of the log screen: one log, followed or held, searched and filtered."""

import re
from collections.abc import Callable
from typing import Any, Protocol

from textual.widget import Widget

from ...core.model.text.log_filters import LEVELS, level_pattern, rank_of, rank_pattern
from ..background import Owner
from .log_driver import LogDriver
from .log_search import BEYOND, LogSearch
from .log_source import LogSource, combined, compiled
from .log_view import LogView

RANKS_SHOWN = 12


class Host(Owner, Protocol):
    """The screen that the viewer is part of."""

    def show_message(self, text: str) -> None:
        """Show a sentence in the footer."""
        ...

    def query(self, selector: type[Widget], /) -> Any:
        """The prompts that are open."""
        ...

    def mount(self, *widgets: Widget) -> Any: ...


class LogViewer:
    """``changed`` is called when something beside the lines may have changed: the title, the position, the count."""

    def __init__(self, host: Host, view: LogView, changed: Callable[[], None]) -> None:
        self.view = view
        self.pattern: re.Pattern[str] | None = None
        """What is searched for."""
        self.typed: re.Pattern[str] | None = None
        """What lines are limited to, beside ``level`` (of LEVELS) and ``rank`` (digits); "" = any."""
        self.level = self.rank = ""
        self.driver = LogDriver(view, host, host.show_message, changed)
        self.search = LogSearch(host, host.show_message, changed)
        self._host, self._changed = host, changed

    def close(self) -> None:
        self.driver.close()
        self.search.close()

    def open(self, source: LogSource) -> None:
        """Show the end of another file; a search goes on in it."""
        self.driver.open(source)
        self.restart_search()

    def ask_search(self, hint: str = "search upwards (regular expression); then n older, N newer") -> None:
        """Ask for a pattern and search upwards for it."""
        self.ask("/", self.pattern.pattern if self.pattern is not None else "", hint, self.search_for)

    def ask_filter(self) -> None:
        """Ask which lines to show."""
        before = self.typed.pattern if self.typed is not None else ""
        self.ask("only", before, "show only lines that match (regular expression); empty: all", self.filter_by)

    def ask_rank(self) -> None:
        """Ask for the rank whose lines are shown."""
        named = sorted({rank for line in self.view.window.lines if (rank := rank_of(line.text))}, key=int)
        known = f" Named here: {', '.join(named[:RANKS_SHOWN])}." if named else " No line here names one."
        self.ask("rank", self.rank, f"show only the lines of a rank; empty: all.{known}", self.limit_to_rank)

    def ask(self, sign: str, before: str, hint: str, answer: Callable[[str], None]) -> None:
        """Open the input line above the footer; Escape closes it without an answer."""
        from .prompt import LogPrompt  # the first picture does not wait for it

        if self._host.query(LogPrompt):
            return

        def answered(text: str | None) -> None:
            self._host.query(LogPrompt).remove()
            if text is not None:
                answer(text)

        self._host.mount(LogPrompt(sign, before, hint, answered))

    def search_for(self, text: str) -> None:
        """Search upwards for a regular expression; empty: end the search."""
        pattern = self._compiled(text)
        if text and pattern is None:
            return
        self.pattern = self.view.pattern = pattern
        self.restart_search()
        self.view.redraw()
        if pattern is not None:
            self.next_match(older=True)

    def filter_by(self, text: str) -> None:
        """Show only lines that match a regular expression; empty: all."""
        pattern = self._compiled(text)
        if text and pattern is None:
            return
        self.typed = pattern
        self._filter()

    def next_level(self) -> None:
        """All lines, then warnings and errors, then errors."""
        self.level = LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]
        self._filter()

    def limit_to_rank(self, number: str) -> None:
        """Show only the lines that name a rank; empty: all."""
        number = number.strip()
        if number and not (number.isascii() and number.isdigit()):
            self._host.show_message(f"A rank is a number: {number}")
            return
        self.rank = str(int(number)) if number else ""
        self._filter()

    def show_all(self) -> None:
        """Show all lines: end the filters of text, level and rank."""
        self.typed, self.level, self.rank = None, "", ""
        self._filter()

    def next_match(self, *, older: bool) -> None:
        """Go to the next match above or below."""
        if self.pattern is None:
            self._host.show_message("Nothing searched for yet: press /")
            return

        def found(offset: int | None) -> None:
            if offset is None:
                self._host.show_message(f"No {'older' if older else 'newer'} match")
            else:
                self.driver.go(offset)
                self.search.rank(offset)
            self._changed()

        self.search.find(self.start_of_search(older=older), backwards=older, found=found)

    def restart_search(self) -> None:
        """Count and find in the file that is shown now."""
        source = self.driver.source
        if source is not None:
            self.search.begin(source, None if self.pattern is None else combined(self.pattern, self.driver.only))
        self._changed()

    def start_of_search(self, *, older: bool) -> int:
        """The offset that a search upwards or downwards begins at."""
        place = self.driver.place
        if place is None:
            return BEYOND if older else 0
        return place if older else place + 1

    def _filter(self) -> None:
        found = (self.typed, level_pattern(self.level), rank_pattern(self.rank) if self.rank else None)
        only = None
        for pattern in found:
            only = pattern if only is None else only if pattern is None else combined(pattern, only)
        self.driver.filter(only)
        self.restart_search()

    def _compiled(self, text: str) -> re.Pattern[str] | None:
        if not text:
            return None
        try:
            return compiled(text)
        except (re.error, OverflowError, RecursionError) as error:
            self._host.show_message(f"Not a regular expression: {error}")
            return None
