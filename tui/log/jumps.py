"""Jumps in the logs of a run: to errors, incidents and starts of attempts."""

from functools import partial
from typing import TYPE_CHECKING, Literal

from ...core.model.attempt import Incident
from ...core.model.log_lines import ALARM
from ...core.views.words import title_of
from .log_search import BEYOND

if TYPE_CHECKING:
    from ..screens.log_screen import LogScreen


Jump = Literal["error", "incident", "attempt"]


class LogJumps:
    """``direction``: -1 to what is older, 1 to what is newer."""

    def __init__(self) -> None:
        self.last: Jump = "error"
        self._incident: int | None = None

    def go(self, screen: "LogScreen", kind: Jump, direction: int) -> None:
        """Jump from the current position."""
        self.last = kind
        {"error": self._error, "incident": self._to_incident, "attempt": self._attempt}[kind](screen, direction)

    def to_line(self, screen: "LogScreen", log: str | None, number: int) -> None:
        """To a line, counted from 1, of one of the run's logs."""
        file = next((f for f in screen.files if f.path == log), None)
        if file is None:
            screen.show_message(f"Line {number:,} is in a log that does not belong to this run: {log or 'no log'}")
            return
        if screen.file != file:
            screen.choose(file)
        screen.show_message(f"Looking for line {number:,} …")
        found = partial(_arrive, screen, f"The log has no line {number:,} any more")
        source = screen.viewer.driver.source
        screen.viewer.search.seek(lambda s, stopped: s.browser.line_at(s.file.path, number, stopped), found, source)

    def _error(self, screen: "LogScreen", direction: int) -> None:
        older = direction < 0
        at = screen.viewer.start_of_search(older=older)
        screen.show_message("Looking for an error …")
        found = partial(_arrive, screen, f"No error {'above' if older else 'below'}")
        alarm = ALARM.compiled()
        screen.viewer.search.seek(lambda s, stopped: s.find(alarm, at, backwards=older, stopped=stopped), found)

    def _to_incident(self, screen: "LogScreen", direction: int) -> None:
        incidents = sorted(screen.now.story.incidents, key=lambda i: (i.t, i.id))
        incidents = [i for i in incidents if any(f.attempt == i.attempt for f in screen.files)]
        at = next((n for n, i in enumerate(incidents) if i.id == self._incident), None)
        if at is None:
            at = self._nearest(screen, incidents, direction)
        else:
            at += direction
        if not 0 <= at < len(incidents):
            screen.show_message(
                "No incident yet" if not incidents else f"No {'older' if direction < 0 else 'newer'} incident"
            )
            return
        self._show(screen, incidents[at])

    def _nearest(self, screen: "LogScreen", incidents: list[Incident], direction: int) -> int:
        """The newest of this attempt or older ones going back, the oldest of it or newer ones going forward."""
        number = screen.file.attempt if screen.file is not None else None
        if number is None:
            return len(incidents) - 1 if direction < 0 else 0
        if direction < 0:
            return sum(1 for i in incidents if i.attempt <= number) - 1
        return sum(1 for i in incidents if i.attempt < number)

    def _show(self, screen: "LogScreen", incident: Incident) -> None:
        self._incident = incident.id
        file = next(f for f in screen.files if f.attempt == incident.attempt)
        if screen.file != file:
            screen.choose(file)
        title = f"{screen.clock(incident.t)} {incident.kind}: {title_of(incident)}"
        screen.show_message(f"{title} …")

        def found(offset: int | None) -> None:
            if offset is None:
                screen.viewer.driver.go(BEYOND, share=1.0)
                screen.show_message(f"{title} (its place in the log is not known; this is the log's end)")
                return
            screen.viewer.driver.go(offset)
            screen.show_message(f"{title} · {incident.reason}")

        source = screen.viewer.driver.source
        screen.viewer.search.seek(lambda s, stopped: s.place_of(incident, stopped), found, source)

    def _attempt(self, screen: "LogScreen", direction: int) -> None:
        """Back: to the start of this attempt's log, then of the one before. Forward: to the start of the next."""
        own = [f for f in screen.files if f.attempt is not None]
        if screen.file not in own:
            target = own[-1] if own else None
        else:
            at = own.index(screen.file)
            inside = direction < 0 and screen.viewer.driver.place != 0
            at = at if inside else at + direction
            target = own[at] if 0 <= at < len(own) else None
        if target is None:
            screen.show_message(f"No {'earlier' if direction < 0 else 'later'} attempt")
            return
        if target != screen.file:
            screen.choose(target)
        screen.viewer.driver.to_start()
        screen.show_message(f"start of {target.label}")


def _arrive(screen: "LogScreen", missing: str, offset: int | None) -> None:
    """Go to an offset; None: show ``missing`` in the footer."""
    if offset is None:
        screen.show_message(missing)
        return
    screen.clear_message()
    screen.viewer.driver.go(offset)
