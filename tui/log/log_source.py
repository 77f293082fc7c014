"""Reads one log: pages with their times, the next match, the offset of an incident. Used in threads."""

import re
from collections.abc import Callable, Iterable

import msgspec

from ...core.model.incident import Incident
from ...core.model.ports.screen import LogBrowser, LogStamps
from ...core.model.text.edge import EDGE
from ...core.model.text.log_lines import LogFile, LogStretch, Stopped
from .log_window import Reading

PAGE_LINES = 200
"""Lines read at once: a few screens."""
ABOVE_LINES = 120
"""Lines read above a target offset."""
SAME_CHARS = 40
"""A line must agree with the evidence in so many characters, else its line number is not used."""


class LogSource(msgspec.Struct, frozen=True):
    """One file, how to read it, and when its lines were written. All calls may block and raise OSError."""

    file: LogFile
    browser: LogBrowser
    stamps: LogStamps | None = None

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
        return self._timed(
            LogStretch(
                lines=above.lines + below.lines,
                start=above.start,
                end=below.end,
                file_size=below.file_size,
                open_size=below.open_size,
            )
        )

    def find(self, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped) -> int | None:
        """The nearest match that begins before ``offset`` or behind it."""
        return self.browser.find(self.file.path, pattern, offset, backwards=backwards, stopped=stopped)

    def place_of(self, incident: Incident, stopped: Stopped) -> int | None:
        """Offset of an incident: its line of evidence if the text agrees, else by its time, else None."""
        for evidence in incident.evidence:
            if evidence.line is None:
                continue
            offset = self.browser.line_at(self.file.path, evidence.line, stopped)
            if offset is None:
                continue
            line = next(iter(self.browser.after(self.file.path, offset, 1).lines), None)
            if line is not None and _same(line.text, evidence.what):
                return offset
        if self.stamps is not None and self.file.attempt is not None:
            end = self.stamps.offset_at(self.file.attempt, incident.t)
            if end:
                newest = self.browser.before(self.file.path, end, 1).lines
                return newest[-1].offset if newest else None
        return None

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
        times = ((line.offset, stamps.time_of(attempt, line.offset)) for line in stretch.lines)
        return Reading(stretch, {offset: t for offset, t in times if t is not None})


def combined(search: re.Pattern[str], only: re.Pattern[str] | None) -> re.Pattern[str]:
    """A pattern for lines that match both."""
    if only is None:
        return search
    return re.compile(f"^(?=.*{_scoped(only)}).*{_scoped(search)}")


def compiled(text: str) -> re.Pattern[str]:
    """Compile a typed pattern; without a capital letter, case is ignored. Raises re.error."""
    return re.compile(text, 0 if any(c.isupper() for c in text) else re.IGNORECASE)


def guarded(
    work: Callable[[], Callable[[], None]], path: str, show_message: Callable[[str], None]
) -> Callable[[], None]:
    """Do the work; if the file cannot be read, return a callable that shows the error."""
    try:
        return work()
    except (OSError, RecursionError, OverflowError) as error:
        text = f"{path}: {getattr(error, 'strerror', None) or error}"
        return lambda: show_message(text)


def _scoped(pattern: re.Pattern[str]) -> str:
    return f"(?i:{pattern.pattern})" if pattern.flags & re.IGNORECASE else f"(?:{pattern.pattern})"


def _same(text: str, what: str) -> bool:
    a, b = text.strip()[:SAME_CHARS], what.strip()[:SAME_CHARS]
    return bool(a) and bool(b) and (a in what or b in text)
