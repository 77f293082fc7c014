"""The log viewer of the dashboard and of the log screen: one log, followed or held, searched and filtered."""

import re
import threading
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Key as EventsKey
from textual.events import Resize
from textual.widgets import Input, Label

from ...core.model.log_lines import LEVELS, level_pattern, rank_of, rank_pattern
from ...core.views import quantity
from ..background import TaskQueue
from ..keys import HELP, Key
from ..ui.cells import cut
from .log_driver import LogDriver, LogSource, combined, compiled
from .log_view import LogView

if TYPE_CHECKING:
    from ..screens.pane_screen import PanedScreen


RANKS_SHOWN = 12


BEYOND = 1 << 62
"""An offset past the end of any log."""
WORK_S, YIELD_S = 0.003, 0.0005
"""After WORK_S of work a search sleeps for YIELD_S, so that the screen's thread gets the interpreter."""


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


class LogViewer:
    """``changed`` is called when something beside the lines may have changed: the title, the position."""

    def __init__(self, host: "PanedScreen", view: LogView, changed: Callable[[], None]) -> None:
        self.view = view
        self.pattern: re.Pattern[str] | None = None
        """What is searched for."""
        self.typed: re.Pattern[str] | None = None
        """What lines are limited to, beside ``level`` (of LEVELS) and ``rank`` (digits); "" = any."""
        self.level = self.rank = ""
        self.driver = LogDriver(view, host, host.show_message, changed)
        self.looking = False
        """A search runs."""
        self._host, self._changed = host, changed
        self._searches = TaskQueue(host, "log-find", in_order=True)
        self._stop = threading.Event()

    def close(self) -> None:
        self.driver.close()
        self.cancel()
        self._searches.close()

    def cancel(self) -> bool:
        """Cancel the running search; True if one was running."""
        busy, self.looking = self.looking, False
        self._stop.set()
        return busy

    def seek(self, work: Callable[[LogSource, Callable[[], bool]], int | None], missing: str) -> None:
        """Go to the offset that any search in the file that is shown now finds; it replaces the running one.

        ``missing``: the message if there is none.
        """
        source = self.driver.source
        if source is None:
            return
        self._stop.set()
        self._stop = stop = threading.Event()
        self.looking = True

        def taken(offset: int | None, trouble: str) -> None:
            if stop.is_set():
                return
            self.looking = False
            if trouble or offset is None:
                self._host.show_message(f"{source.file.path}: {trouble}" if trouble else missing)
            else:
                self._host.clear_message()
                self.driver.go(offset)
            self._changed()

        self._searches.fetch(lambda: None if stop.is_set() else work(source, yielding(stop)), taken)
        self._changed()

    def open(self, source: LogSource) -> None:
        """Show the end of another file; its matches are those of the pattern, too."""
        self.driver.open(source)
        self.cancel()
        self._changed()

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
        self.cancel()
        self._changed()
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

        source, side = self.driver.source, "older" if older else "newer"
        where = "log" if source is None or source.file.attempt is None else "attempt"
        self.find(combined(self.pattern, self.driver.only), f"No {side} match in this {where}", older=older)

    def find(self, pattern: re.Pattern[str], missing: str, *, older: bool) -> None:
        """Go to the next line above or below that matches."""
        place = self.driver.place
        at = (place if older else place + 1) if place is not None else BEYOND if older else 0
        self.seek(lambda s, stopped: s.find(pattern, at, backwards=older, stopped=stopped), missing)

    def _filter(self) -> None:
        found = (self.typed, level_pattern(self.level), rank_pattern(self.rank) if self.rank else None)
        only = None
        for pattern in found:
            only = pattern if only is None else only if pattern is None else combined(pattern, only)
        self.driver.filter(only)
        self.cancel()
        self._changed()

    def _compiled(self, text: str) -> re.Pattern[str] | None:
        if not text:
            return None
        try:
            return compiled(text)
        except (re.error, OverflowError, RecursionError) as error:
            self._host.show_message(f"Not a regular expression: {error}")
            return None


# The keys of the log screen.

LOG_KEYS: tuple[Key, ...] = (
    Key("space", "follow", "follow", "hold the log, or follow its end"),
    Key("↑ ↓", "move(±1)", "line", footer=False,
        help="line by line (PgUp PgDn: screens; Home End: first line, follow the end; mouse wheel)"),
    Key("/", "search", "search", "search upwards (a regular expression; without capitals, case does not matter)"),
    Key("n N", "match(±1)", "match", "next older match, next newer match"),
    Key("f", "filter", "filter", "show only lines that match"),
    Key("L", "level", "level",
        "show only warnings and errors, then only errors (with the places of a traceback), then all lines"),
    Key("r", "rank", "rank", "show only the lines of one rank"),
    Key("[ ]", "error(±1)", "error", "the previous or next error"),
    Key("tab", "file(±1)", "file", "next file (shift+tab: the one before)"),
    Key("v", "mark", "mark", "begin or end marking lines (or drag with the mouse)"),
    Key("y", "copy", "copy", "copy the marked lines, or the one under the cursor"),
    Key("Esc", "back", "back", footer=False,
        help="stop a search; then clear mark, filter and search; then back to the dashboard"),
    Key("1", "app.place('dashboard')", "dashboard", "back to the dashboard"),
    HELP,
    Key("q", "app.leave", "leave", "leave the screen; training and supervisor continue", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("pageup", "page(-1)"), ("pagedown", "page(1)"), ("home", "top"), ("g", "top"), ("end", "end"), ("G", "end"),
    ("ampersand", "filter"),
)  # fmt: skip


# The input line above the footer: what to search for, which lines to show.


class LogPrompt(Horizontal):
    """A word and an input. ``answer`` is called with the text, or with None after Escape."""

    def __init__(self, sign: str, before: str, hint: str, answer: Callable[[str | None], None]) -> None:
        super().__init__()
        self._sign, self._before, self._hint, self._answer = sign, before, hint, answer

    def compose(self) -> ComposeResult:
        label = Label(self._sign)
        label.styles.width = len(self._sign) + 1
        yield label
        entry = Input(self._before, placeholder=self._hint)
        entry.cursor_blink = False
        yield entry

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_resize(self, event: Resize) -> None:
        self.query_one(Input).placeholder = cut(self._hint, max(1, event.size.width - len(self._sign) - 2))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(event.value)

    def on_key(self, event: EventsKey) -> None:
        if event.key == "escape":
            event.stop()
            self._answer(None)


# The texts around a log: its state in the title, the position below, and a sentence if there are no lines.

NAME_COLUMNS = 110
"""Narrower screens leave the file's name out of the title."""


def log_title_of(log: LogViewer, width: int, newer: str = "") -> str:
    """File, following or held, that there is a ``newer`` one, filter, search. The log of an older attempt has ended."""
    parts = ["held" if not log.view.following else "at its end" if newer else "following"]
    parts += [f"{newer} is newer"] if newer else []
    source = log.driver.source
    if source is not None and width >= NAME_COLUMNS:
        parts.insert(0, source.file.path)
    parts += [f"only {log.level}"] if log.level else []
    parts += [f"only rank {log.rank}"] if log.rank else []
    if log.typed is not None:
        parts.append(f"only /{log.typed.pattern}/")
    if log.pattern is not None:
        parts.append(f"/{log.pattern.pattern}")
    return " · ".join(parts)


def position_of(log: LogViewer) -> str:
    """How far down the file the lowest visible line is; nothing at its end, where it would change with each line."""
    window = log.view.window
    if not len(window) or log.view.following:
        return ""
    _, last = log.view.visible_lines
    line = window.lines[min(last, len(window) - 1)]
    share = min(1.0, (line.offset + line.size) / max(1, window.file_size))
    marked = "marking · " if log.view.marked_from is not None else ""
    return f"{marked}{quantity.percent(100 * share)} of {quantity.size(window.file_size)}"


def message_of(log: LogViewer) -> str:
    """Why no line is shown."""
    if log.driver.source is None:
        return "No log yet: nothing was started."
    if log.driver.only is not None:
        return (
            "Looking for lines that match …" if log.driver.scanning else "No line matches: Esc shows all lines again."
        )
    return log.driver.trouble or "Nothing written yet."


# Exports lines of a log to the terminal's clipboard, in a thread.

CLIPBOARD_LINES = 5000
CLIPBOARD_BYTES = 74_000
"""Terminals drop longer clipboard sequences (xterm, tmux: 100 000 characters of base64)."""


def copy_marked(log: LogViewer, copy: Callable[[str], None], show_message: Callable[[str], None]) -> None:
    """Copy the marked lines through the terminal."""
    (first, last), only, source = log.view.selection, log.driver.only, log.driver.source
    if source is None:
        return

    def taken(found: tuple[str, str] | None, trouble: str) -> None:
        if found is not None:
            copy(found[0])
        show_message(f"{source.file.path}: {trouble}" if found is None else found[1])

    log.driver.tasks.fetch(lambda: clipboard_text(source.texts(first, last, only)), taken)


def clipboard_text(texts: Iterable[str]) -> tuple[str, str]:
    """(text, a sentence that describes it), limited to what terminals accept."""
    lines: list[str] = []
    size = 0
    for text in islice(texts, CLIPBOARD_LINES + 1):
        size += len(text.encode()) + 1
        if len(lines) == CLIPBOARD_LINES or (size > CLIPBOARD_BYTES and lines):
            return "\n".join(lines), f"Copied the first {len(lines):,} lines"
        lines.append(text)
    return "\n".join(lines), f"Copied {quantity.plural(len(lines), 'line')}"
