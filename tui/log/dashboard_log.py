"""The log of the newest attempt in the log pane of the dashboard."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from ...core.model.log_lines import LogFile
from ...core.model.ports import OpenRun
from ...core.model.story import RunStory, Situation
from ..panes.pane import Bar, Part
from ..ui.cells import Line, cut
from .log_driver import LogSource
from .log_view import LogView
from .log_viewer import LogViewer

if TYPE_CHECKING:
    from ..screens.pane_screen import PanedScreen


PATH_COLUMNS = 100
"""Narrower screens leave the path of the log out of its title."""


class DashboardLog:
    """Follows the end of the log, or holds and searches it; another attempt's log is opened when it starts."""

    def __init__(self, host: "PanedScreen", pane: LogView, run: OpenRun) -> None:
        self.viewer = LogViewer(host, pane, self.show)
        self._pane, self._run = pane, run
        self._now = Situation()
        self._trouble = ""
        self._columns = 0

    def update(self, now: Situation, trouble: str, columns: int) -> None:
        """Read what was written since the last call. ``trouble``: why the run cannot be read; ``columns``: screen."""
        self._now, self._trouble, self._columns = now, trouble, columns
        attempt, driver = now.story.attempt, self.viewer.driver
        path = attempt.log if attempt is not None else None
        if path is not None and path != self.path:
            self.viewer.open(LogSource(LogFile(path=path, label=path), self._run.logs))
        else:
            driver.look()
        self.show()

    @property
    def path(self) -> str | None:
        source = self.viewer.driver.source
        return source.file.path if source is not None else None

    def show(self) -> None:
        pane, pattern = self._pane, self.viewer.pattern
        path = self.path if self._columns >= PATH_COLUMNS else None
        searched = "" if pattern is None else f"/{pattern.pattern}"
        pane.message = self._message()
        title = " · ".join(filter(None, ("log", "following" if pane.following else "held", path, searched)))
        pane.set_title(title, "" if pane.following else "[space] follow")
        pane.redraw()

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
        if not self._now.story.attempts:
            return f"Enter would start, in {plan.cwd}: {' '.join(plan.command)}"
        nothing = self.viewer.driver.trouble or "Nothing written yet."
        return nothing if self.path is not None else "No log yet."


# A line of files to choose from; if not all fit, those around the chosen one.

LONGEST = 24


class FileTab(msgspec.Struct, frozen=True):
    """``mark``: a sign behind the label, with its style; empty = none."""

    label: str
    mark: str = ""
    style: str = "label"


class FileTabs(Bar):
    """``chosen`` is called with the index of a tab that was clicked."""

    tabs: tuple[FileTab, ...] = ()
    current = 0
    chosen: Callable[[int], None] | None = None

    def show(self, tabs: tuple[FileTab, ...], current: int) -> None:
        self.tabs, self.current = tabs, current
        self.redraw()

    def pressed(self, name: str) -> None:
        if self.chosen is not None:
            self.chosen(int(name))

    def parts(self, width: int) -> list[Part]:
        """The visible tabs: the current one and its neighbours."""
        if not self.tabs:
            return []
        texts = [f" {cut(tab.label, LONGEST)} " for tab in self.tabs]
        sizes = [len(text) + 1 + (2 if tab.mark else 0) for text, tab in zip(texts, self.tabs, strict=True)]
        first = last = min(self.current, len(self.tabs) - 1)
        room = width - sizes[first] - len("‹ › 99 more")
        while True:
            if last + 1 < len(texts) and sizes[last + 1] <= room:
                last += 1
                room -= sizes[last]
            elif first > 0 and sizes[first - 1] <= room:
                first -= 1
                room -= sizes[first]
            else:
                break
        parts: list[Part] = [("", (("faint", "‹ " if first > 0 else ""),))]
        for index in range(first, last + 1):
            tab, style = self.tabs[index], "cursor" if index == self.current else "label"
            mark: Line = ((tab.style, f"{tab.mark} "),) if tab.mark else ()
            parts.append((str(index), ((style, texts[index]), *mark, ("text", " "))))
        more = len(self.tabs) - 1 - last
        return [*parts, ("", (("faint", f"› {more} more"),))] if more else parts


# The files of a run that the log screen shows, and the marks on their tabs.


def log_files(story: RunStory, extra: Sequence[str]) -> tuple[LogFile, ...]:
    """Logs of all attempts, oldest first, then the run's others. A file that several attempts share is listed once."""
    by_path: dict[str, LogFile] = {}
    for attempt in story.attempts:
        if attempt.log is not None:
            by_path.pop(attempt.log, None)
            by_path[attempt.log] = LogFile(path=attempt.log, label=f"attempt {attempt.number}", attempt=attempt.number)
    for path in extra:
        by_path.setdefault(path, LogFile(path=path, label=PurePath(path).name))
    return tuple(by_path.values())


def mark_of(file: LogFile, story: RunStory) -> str:
    """How an attempt ended, as the name of a mark in Glyphs; empty for a running attempt and for other files."""
    attempt = next((a for a in story.attempts if a.number == file.attempt), None)
    if attempt is None or attempt.ended_t is None:
        return ""
    kinds = {i.kind for i in story.incidents if i.attempt == attempt.number}
    if "hang" in kinds:
        return "hang"
    return "crash" if attempt.how == "crashed" or "crash" in kinds else ""
