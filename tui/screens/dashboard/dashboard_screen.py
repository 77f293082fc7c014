"""The dashboard: everything about one run on one screen."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import ModalScreen

from ....core.model.ports.screen import Attacher, OpenRun, SupervisorStarter
from ....core.model.situation import Situation
from ....core.model.text.suggestion import typed
from ....core.views.panes.dashboard import DashboardView, dashboard_view
from ...background import LongTask, Show, TaskQueue
from ...keys import ALSO, KEYS, Key, KeyContext, applying, why_not
from ...log.dashboard_log import DashboardLog
from ...log.log_view import LogView
from ...operations import ACTS, Operations
from ...panes.pane import Pane
from ...poller import Aside, Poller, Snapshot
from ...terminal_title import TerminalTitle
from ...ui.glyphs import glyphs_for
from ...ui.series import SeriesQuery, same_charts
from ...ui.time_window import WHOLE, TimeWindow, window, zoomed_by
from ..away_watch import AwayWatch
from ..pane_screen import is_place
from .at_once import at_once
from .dashboard_panes import FocusedPanes
from .pane_focus import PaneFocus

if TYPE_CHECKING:
    from ..place_screen import PlaceScreen

BELOW_DIALOG_S = 12.0
"""How often the screen below a dialog is drawn if nothing happens: Textual paints all of the terminal each time."""


class Dashboard(FocusedPanes):
    """Shows one run. Its poller reads, its operations send commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(k.key, f"operate('{k.action}')" if k.action in ACTS else k.action, show=False) for k in KEYS),
        *(Binding(key, action, show=False) for key, action in ALSO),
    ]

    def __init__(
        self,
        run: OpenRun,
        *,
        starter: SupervisorStarter | None = None,
        attacher: Attacher | None = None,
        read_only: bool = False,
        has_runs: bool = False,
        can_launch: bool = False,
        interval_s: float = 1.0,
        memory: PaneFocus | None = None,
    ) -> None:
        super().__init__()
        self.remembered = memory if memory is not None else PaneFocus()
        self.run, self.starter, self.attacher = run, starter, attacher
        self.read_only, self.has_runs, self.can_launch = read_only, has_runs, can_launch
        self.now = Situation()
        self.view: DashboardView = dashboard_view(self.now, run.name)
        self._polled = (self.now, self.view)
        """What the newest poll found, from its thread."""
        self.snapshot: Snapshot | None = None
        self.zoom: int | None = None
        self.operations = Operations(self)
        self.tasks = TaskQueue(self)
        self.long_task = LongTask(self, self._long_task_changed)
        self.terminal_title = TerminalTitle(run.screen, self._to_terminal, self._ring, glyphs_for())
        self.screen_states: dict[str, object] = {}
        """By numbered screen: what it restores when it is opened again."""
        self._interval_s = interval_s
        self._left = False
        self._drawn_at = 0.0
        self._drawn: tuple[object, ...] = ()
        """What had happened then."""
        self._in_sight = False
        """No other screen and no dialog is over this one."""
        self._polls = TaskQueue(self, "poll", in_order=True)
        self.poller = Poller(
            run.feed, self._polls, self.take, period_s=interval_s, at_once=self._at_once, aside=self._log_ahead
        )
        self.away: AwayWatch | None = None

    def made(self) -> Sequence[Pane]:
        """The panes, and the viewer that fills the log pane."""
        panes = super().made()
        self.output = DashboardLog(self, self.log_pane, self.run)
        return panes

    def on_mount(self) -> None:
        """Draw the empty screen, then poll."""
        self.draw(*self.app.size)  # its own size is not known yet
        if self.away is not None:
            self.away.begin()
        if self._interval_s > 0:
            self.call_later(self.poll)  # after the first paint, by ScreenResume: both together would delay it

    def on_unmount(self) -> None:
        self.leave()

    def leave(self) -> None:
        """End reading, and cancel the long task: the dashboard of another run takes its place."""
        if self._left:
            return
        self._left = True
        self._polls.close()
        self.output.viewer.close()
        self.long_task.leave()
        if self.away is not None:
            self.away.leave()
        self.terminal_title.restore()

    def on_resize(self, event: events.Resize) -> None:
        self.draw(event.size.width, event.size.height)
        if self.snapshot is not None:
            self.poll()

    def on_screen_resume(self) -> None:
        """Draw the newest snapshot after a screen over it was closed."""
        self._in_sight = True
        if self.snapshot is not None:
            self.draw()
            self.poll()

    def on_screen_suspend(self) -> None:
        """Another screen is over this one: it shows each poll."""
        self._in_sight = False

    def poll(self) -> None:
        """Take a snapshot in the background now; with ``interval_s`` 0 only ``look`` takes one."""
        if self._interval_s > 0 and not self._left:
            self.poller.poll()

    def look(self) -> None:
        """Poll and draw on the calling thread, log included (tests, pictures)."""
        self.take(self.poller.once())
        self.take(self.poller.once())
        self.output.viewer.driver.look(wait=True)

    def _at_once(self, now: Situation) -> object:
        """What is shown without waiting for the next two seconds; None: everything. In the thread of the poll."""
        self._polled = (now, dashboard_view(now, self.run.name))
        return at_once(*self._polled) if self._in_sight else None

    def _log_ahead(self) -> Aside | None:
        """Read the log in the thread of the poll; None if the dashboard is not drawn."""
        return self.output.ahead() if self._in_sight else None

    def take(self, snapshot: Snapshot) -> None:
        """Keep a snapshot and draw it."""
        self.snapshot = snapshot
        if snapshot.situation.story.seq or snapshot.trouble is None:
            self.now = snapshot.situation
        polled, view = self._polled
        self.view = view if polled is self.now else dashboard_view(self.now, self.run.name)
        if not self._waits_below_dialog():
            (self.in_front or self).draw()
        self.operations.renew()
        self.terminal_title.update(self.now, self.view.header)
        if self.away is not None:
            self.away.see(self.now)

    def _waits_below_dialog(self) -> bool:
        now, story = time.monotonic(), self.now.story
        happened = (story.state, len(story.incidents), self.view.header.verdict.level, self.app.size)
        below = self._interval_s > 0 and isinstance(self.app.screen, ModalScreen)
        if below and happened == self._drawn and now < self._drawn_at + BELOW_DIALOG_S:
            return True
        self._drawn_at, self._drawn = now, happened
        return False

    @property
    def context(self) -> KeyContext:
        """What decides which keys apply."""
        return KeyContext(
            now=self.now,
            startable=self.starter is not None,
            has_runs=self.has_runs,
            samples=self.run.samples is not None,
            launchable=self.can_launch,
            read_only=self.read_only,
        )

    @property
    def window(self) -> TimeWindow:
        """The stretch of the run that the charts show."""
        story, timeline, cursor = self.now.story, self.view.timeline, self.timeline.cursor
        return window(
            self.zoom,
            now_t=timeline.now_t,
            over=timeline.over,
            cursor_t=cursor.t if cursor is not None else None,
            marks=[i.t for i in story.incidents if i.severity != "info"],
            wall0=story.wall0,
        )

    def offered(self) -> tuple[Key, ...]:
        """Keys that do something now, what to do first in front."""
        return applying(self.context)

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Update all panes; a dashboard that another screen covers waits until it is resumed.

        Textual would repaint the screen in front for each region that changes on the one below it.
        """
        if self.in_front is not None or self._left:
            return
        if width is None or height is None:
            width, height = self.size
        self.place_panes(self.view, width, height)
        part = self.zoom is not None and self.zoom != WHOLE
        self.show_panes(self.view, self.snapshot, self.window, part=part)
        self.output.update(self.now, self.snapshot.trouble or "" if self.snapshot else "", width)
        self.key_bar.show(self.offered(), self.key_bar.message)
        self.read_series(None)

    def read_series(self, series_queries: tuple[SeriesQuery, ...] | None) -> None:
        """Have these charts read with each poll, at once if they are others; None: those of the dashboard."""
        before = self.poller.series_queries
        self.poller.series_queries = self.series_queries() if series_queries is None else series_queries
        if not same_charts(before, self.poller.series_queries):
            self.poll()

    def zoom_time(self, steps: int) -> None:
        """All charts over a shorter or longer time."""
        self.zoom = zoomed_by(self.zoom, steps, self.view.timeline.now_t)
        self.call_later(self.poll)  # once the charts are known that are wanted now

    def show_message(self, text: str) -> None:
        """A sentence in the footer for a few seconds, on whatever screen is in front."""
        if self.in_front is not None:
            self.in_front.show_message(text)
            return
        self.answer(text)

    @property
    def in_front(self) -> "PlaceScreen | None":
        """The numbered screen over this one."""
        return next((s for s in reversed(self.app.screen_stack) if is_place(s)), None)

    def renew(self, place: str) -> None:
        """A task of a numbered screen changed something: redraw it if it is in front."""
        if self.in_front is not None and self.in_front.place == place:
            self.in_front.renew()

    def _to_terminal(self, text: str) -> None:
        driver = self.app._driver  # noqa: SLF001  no public way to write an escape sequence
        if driver is not None:
            driver.write(text)

    def _ring(self) -> None:
        self.app.bell()

    def _long_task_changed(self) -> None:
        if self.in_front is not None:
            self.in_front.draw()

    def in_thread(self, work: Callable[[], str]) -> None:
        """Run something that may block; its sentence appears in the footer."""

        def task() -> Show:
            text = work()

            def show() -> None:
                self.show_message(text)
                self.poll()

            return show

        self.tasks.submit(task)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do not apply now do nothing; those of operations show why (except Enter)."""
        name = str(parameters[0]) if action == "operate" else action
        key = next((k for k in KEYS if k.action.partition("(")[0] == name), None)
        if key is None or (key.acts and self.read_only):
            return key is None
        return key.when(self.context) or (action == "operate" and name != "start")

    def action_operate(self, name: str) -> None:
        """Run an operation, or show why it does not apply."""
        key = next(k for k in KEYS if k.action == name)
        if key.when(self.context):
            ACTS[name](self.operations)
        else:
            self.show_message(why_not(name, self.context))

    class Explain(Message):
        """An incident is to be explained."""

        def __init__(self, incident: int) -> None:
            super().__init__()
            self.incident = incident

    def action_explain(self) -> None:
        """The card of the newest incident, open ones first."""
        if self.view.incidents:
            self.post_message(self.Explain(self.view.incidents[0].id))

    def action_summary(self) -> None:
        """What happened since the last look."""
        if self.away is not None:
            self.away.show()

    def action_help(self) -> None:
        from ...dialogs.info_dialogs import HelpDialog

        self.app.push_screen(HelpDialog(self.context))

    def action_attach(self) -> None:
        """Leave to the trainer's terminal, and come back."""
        from ...suspend import run_in_terminal

        if self.attacher is None:
            self.show_message(f"Not from this screen; use: {typed('attach', self.run.run_id)}")
            return
        try:
            argv = self.attacher.command(self.run.run_id)
        except RuntimeError as error:
            self.show_message(str(error))
            return
        self.show_message(run_in_terminal(self.app, argv))
        self.poll()

    def action_zoom(self, steps: int) -> None:
        """All charts over a shorter or longer time."""
        self.zoom_time(steps)
        self.draw()
        self.show_message(f"Charts show {self.window.words}; [ shorter, ] longer, Esc as before")

    def on_log_view_wanted(self, message: LogView.Wanted) -> None:
        """Scroll by the wheel."""
        self.output.viewer.driver.scroll(message.rows)

    def action_follow(self) -> None:
        """Hold the log, or follow it again."""
        self.output.follow(not self.log_pane.following)

    def action_follow_end(self) -> None:
        """Follow the log and end the search."""
        self.output.follow(True)

    def action_scroll(self, rows: int) -> None:
        """Scroll the log up (positive) or down."""
        self.output.viewer.driver.scroll(-rows)

    def action_log_start(self) -> None:
        """Show the first line of the log."""
        self.output.viewer.driver.to_start()

    def action_search(self) -> None:
        """Ask for a pattern and search upwards for it."""
        self.output.viewer.ask_search("search the log (regular expression), Enter, then n and N")

    def action_search_next(self, older: bool) -> None:
        """Go to the next match."""
        self.output.viewer.next_match(older=older)
