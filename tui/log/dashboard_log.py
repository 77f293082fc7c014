"""The log of the newest attempt in the log pane of the dashboard."""

from collections.abc import Callable

from ...core.model.ports.screen import OpenRun
from ...core.model.situation import Situation
from ...core.model.text.log_lines import LogFile
from ..background import Show
from ..poller import Aside
from .log_source import LogSource
from .log_view import LogView
from .log_viewer import Host, LogViewer

PATH_COLUMNS = 100
"""Narrower screens leave the path of the log out of its title."""


class DashboardLog:
    """Follows the end of the log, or holds and searches it; another attempt's log is opened when it starts."""

    def __init__(self, host: Host, pane: LogView, run: OpenRun) -> None:
        self.viewer = LogViewer(host, pane, self.show)
        self._pane, self._run = pane, run
        self._now = Situation()
        self._trouble = ""
        self._columns = 0
        self._read_ahead = False
        """The lines of this second were read together with the run."""
        self._ahead: Callable[[], tuple[bool, Show]] | None = None

    def ahead(self) -> Aside | None:
        """Read the gained lines, to be drawn by the next ``update``; None: nothing to read. Called from any thread."""
        read = self._ahead  # prepared on the screen's thread
        if read is None:
            return None
        began, show = read()

        def alone() -> None:
            show()
            self.update(self._now, self._trouble, self._columns)

        return Aside(news=began, show=show, alone=alone)

    def _taken(self) -> None:
        self._read_ahead = True

    def update(self, now: Situation, trouble: str, columns: int) -> None:
        """Read what was written since the last call. ``trouble``: why the run cannot be read; ``columns``: screen."""
        self._now, self._trouble, self._columns = now, trouble, columns
        attempt, driver = now.story.attempt, self.viewer.driver
        path = attempt.log if attempt is not None else None
        if self._run.logs is not None and path is not None and path != self.path:
            self.viewer.open(LogSource(LogFile(path=path, label=path), self._run.logs.browser))
        elif not self._read_ahead:
            driver.look()
        self._read_ahead = False
        self.show()

    @property
    def path(self) -> str | None:
        """Path of the log that is shown."""
        source = self.viewer.driver.source
        return source.file.path if source is not None else None

    def show(self) -> None:
        """Draw lines and title."""
        viewer, pane = self.viewer, self._pane
        parts = ["log", "following" if pane.following else "held"]
        if self.path is not None and self._columns >= PATH_COLUMNS:
            parts.append(self.path)
        if viewer.pattern is not None:
            parts.append(f"/{viewer.pattern.pattern} {viewer.search.words}".rstrip())
        pane.message = self._message()
        pane.set_title(" · ".join(parts), "" if pane.following else "[space] follow")
        pane.redraw()
        self._ahead = viewer.driver.ahead(self._taken)

    def follow(self, yes: bool) -> None:
        """Follow the end and end the search, or hold what is shown."""
        if yes and self.viewer.pattern is not None:
            self.viewer.search_for("")
        self.viewer.driver.follow(yes)

    def _message(self) -> str:
        plan = self._run.plan
        if self._trouble:
            return self._trouble
        if not self._now.now_wall:
            return "Reading …"
        if not self._now.story.attempts and plan is not None:
            return f"Enter would start, in {plan.cwd}: {' '.join(plan.command)}"
        if self._run.logs is None:
            return "This log cannot be read from here."
        nothing = self.viewer.driver.trouble or "Nothing written yet."
        return nothing if self.path is not None else "No log yet."
