"""The log screen: every log of the run at full size, from its end to its beginning."""

from collections.abc import Sequence

import msgspec

from ...core.model.log_lines import ALARM, LogFile
from ...core.views import quantity
from ..keys import Key
from ..log.dashboard_log import FileTab, FileTabs, log_files, mark_of
from ..log.log_driver import LogSource
from ..log.log_view import LogView
from ..log.log_viewer import ALSO, LOG_KEYS, LogViewer, copy_marked, log_title_of, message_of, position_of
from ..panes.pane import Pane
from ..run_session import Box
from .place_screen import RunPage

FOLLOW_S = 0.5
"""How often the end of a followed log is read, seconds, at the usual ``refresh_s``."""


class LogPlace(msgspec.Struct):
    """Where the page was left. ``file`` None: the newest was followed; ``place``: of the line under the cursor."""

    file: LogFile | None = None
    place: int | None = None


class LogScreen(RunPage):
    """Shows one file at a time; searching and filtering work on files of any size."""

    place = "log"
    keys = LOG_KEYS
    also = ALSO
    kept = LogPlace
    state: LogPlace
    files: tuple[LogFile, ...] = ()
    file: LogFile | None = None

    def bodies(self) -> Sequence[Pane]:
        self.file_tabs = FileTabs(id="files", classes="-bare")
        self.file_tabs.chosen = lambda index: self.choose(self.files[index])
        self.view = LogView(id="lines")
        self.view.clock = self.clock
        self.viewer = LogViewer(self, self.view, self.head)
        self.driver = self.viewer.driver
        return (self.file_tabs, self.view)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """A line with the files if there are several, the log below."""
        tabs = 1 if len(self.files) > 1 and height > 6 else 0
        boxes: dict[str, Box] = {"lines": (0, top + tabs, width, height - tabs)}
        return boxes | ({"files": (0, top, width, 1)} if tabs else {})

    def on_mount(self) -> None:
        super().on_mount()
        if self.application.interval_s > 0:
            self.set_interval(FOLLOW_S * self.session.run.plan.settings.screen.refresh_s, self.look)
        file, place = self.state.file, self.state.place
        if file is not None and file in self.files:
            self.choose(file)
            if place is not None:
                self.driver.go(place)

    def on_unmount(self) -> None:
        if self.file is not None:
            self.state.place = self.driver.place
            follows = self.state.place is None and self.file == self._newest()
            self.state.file = None if follows else self.file
        self.viewer.close()

    def look(self) -> None:
        self.driver.look()

    def show(self) -> None:
        """Draw; if the newest log is followed and a new attempt begins, follow that one."""
        story = self.now.story
        files = log_files(story, self.session.run.plan.logs)
        if files != self.files:
            was_newest = self.file is None or self.file == self._newest()
            self.files = files
            if was_newest and self.view.following and files:
                self.choose(self._newest() or files[-1])
            self.call_later(self.draw)
        self.head()
        self.view.redraw()

    def choose(self, file: LogFile) -> None:
        """Show another file, from its end."""
        self.file = file
        run = self.session.run
        self.viewer.open(LogSource(file, run.logs, run.services.time_of))

    def head(self) -> None:
        view, story = self.view, self.now.story
        marks = [(mark_of(f, story), f.label) for f in self.files]
        tabs = tuple(FileTab(label, view.glyphs.marks.get(mark, ""), "danger") for mark, label in marks)
        self.file_tabs.show(tabs, self.files.index(self.file) if self.file in self.files else 0)
        view.message = message_of(self.viewer)
        newest, attempt = self._newest(), self.file and self.file.attempt
        newer = newest.label if newest is not None and attempt not in {None, newest.attempt} else ""
        view.set_title(log_title_of(self.viewer, self.size.width, newer), position_of(self.viewer))
        self.key_bar.show(self.offered(), self.key_bar.message)

    def clock(self, t: float) -> str:
        """Time of day of run seconds."""
        return quantity.clock(self.now.story.wall0 + t, seconds=True)

    def offered(self) -> tuple[Key, ...]:
        """Space holds a log that is followed."""
        label = "hold" if self.view.following else "follow"
        return tuple(
            msgspec.structs.replace(key, label=label) if key.action == "follow" else key for key in super().offered()
        )

    def idle(self) -> tuple[str, ...]:
        """Matches are those of a search."""
        return () if self.viewer.pattern is not None else ("match",)

    def on_log_view_wanted(self, message: LogView.Wanted) -> None:
        if message.rows:
            self.driver.scroll(message.rows)
        elif message.line is not None:
            if not message.extend:
                self.view.marked_from = None
            elif self.view.marked_from is None:
                self.view.marked_from = self.view.selection[0]
            self.driver.put_cursor(message.line)

    def action_follow(self) -> None:
        self.driver.follow(not self.view.following)

    def action_move(self, lines: int) -> None:
        self.driver.move(lines)

    def action_page(self, screens: int) -> None:
        self.driver.scroll(screens * max(1, self.view.size.height - 1))

    def action_top(self) -> None:
        self.driver.to_start()

    def action_end(self) -> None:
        self.driver.follow(True)

    def action_file(self, steps: int) -> None:
        if self.file in self.files and len(self.files) > 1:
            self.choose(self.files[(self.files.index(self.file) + steps) % len(self.files)])
        else:
            self.show_message("There is no other log of this run.")

    def action_search(self) -> None:
        self.viewer.ask_search()

    def action_match(self, direction: int) -> None:
        self.viewer.next_match(older=direction < 0)

    def action_filter(self) -> None:
        self.viewer.ask_filter()

    def action_level(self) -> None:
        self.viewer.next_level()

    def action_rank(self) -> None:
        self.viewer.ask_rank()

    def action_error(self, direction: int) -> None:
        """To the previous (-1) or next error."""
        self.show_message("Looking for an error …")
        self.viewer.find(ALARM.compiled(), f"No error {'above' if direction < 0 else 'below'}", older=direction < 0)

    def to_line(self, log: str | None, number: int) -> None:
        """To a line, counted from 1, of one of the run's logs."""
        file = next((f for f in self.files if f.path == log), None)
        if file is None:
            self.show_message(f"Line {number:,} is in a log that does not belong to this run: {log or 'no log'}")
            return
        if self.file != file:
            self.choose(file)
        self.show_message(f"Looking for line {number:,} …")
        missing = f"The log has no line {number:,} any more"
        self.viewer.seek(lambda s, stopped: s.browser.line_at(s.file.path, number, stopped), missing)

    def action_mark(self) -> None:
        if self.view.following:
            self.driver.follow(False)
        self.view.marked_from = self.driver.place if self.view.marked_from is None else None
        self.view.redraw()

    def action_copy(self) -> None:
        copy_marked(self.viewer, self.app.copy_to_clipboard, self.show_message)

    def action_back(self) -> None:
        """Cancel the search, mark, filter or pattern, in this order; else go back."""
        if self.viewer.cancel():
            self.show_message("Search stopped")
        elif self.view.marked_from is not None:
            self.view.marked_from = None
            self.view.redraw()
        elif self.driver.only is not None:
            self.viewer.show_all()
        elif self.viewer.pattern is not None:
            self.viewer.search_for("")
        else:
            self.application.action_leave_place()

    def _newest(self) -> LogFile | None:
        return next((f for f in reversed(self.files) if f.attempt is not None), None)
