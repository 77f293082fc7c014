"""The dashboard: everything about one run on one screen."""

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from trainwatch.core.views.panes.dashboard import DashboardView, dashboard_view

from ...core.model.ports import Attacher, LogReader, OpenRun, SupervisorStarter
from ...core.model.situation import Situation
from ..job import Jobs
from ..keys import ALSO, KEYS, Key, KeyContext, applying, why_not
from ..log.control import LogControl
from ..messages import Answered, Called, JobMoved, Seen
from ..operations import ACTS, Operations
from ..panes.pane import Pane
from ..poller import Look, Pulse
from ..suspend import visit
from ..terminal_title import Attention
from ..ui.glyphs import glyphs_for
from ..ui.series import alike
from ..ui.time_window import WHOLE, TimeWindow, window, zoomed_by
from .pane_focus import PaneMemory
from .pane_walk import PaneWalk
from .place_screen import PlaceScreen


class Dashboard(PaneWalk):
    """Shows one run. All reading is done by its pulse, all commands by its operations."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(k.key, f"operate('{k.action}')" if k.action in ACTS else k.action, show=False) for k in KEYS),
        *(Binding(key, action, show=False) for key, action in ALSO),
    ]

    def __init__(
        self,
        run: OpenRun,
        reader: LogReader,
        *,
        starter: SupervisorStarter | None = None,
        attacher: Attacher | None = None,
        read_only: bool = False,
        has_runs: bool = False,
        can_launch: bool = False,
        interval_s: float = 1.0,
        memory: PaneMemory | None = None,
    ) -> None:
        super().__init__()
        self.remembered = memory if memory is not None else PaneMemory()
        self.run, self.reader, self.starter, self.attacher = run, reader, starter, attacher
        self.read_only, self.has_runs, self.can_launch = read_only, has_runs, can_launch
        self.now = Situation()
        self.view: DashboardView = dashboard_view(self.now, run.name)
        self.look_seen: Look | None = None
        self.zoom: int | None = None
        self.operations = Operations(self)
        self.jobs = Jobs(self._job_moved)
        self.attention = Attention(run.screen, self._to_terminal, self._ring, glyphs_for())
        self.kept: dict[str, object] = {}
        """What the numbered screens remember while they are not shown."""
        self._interval_s = interval_s
        self.pulse = Pulse(run.feed, reader, lambda look: self.post_message(Seen(look)), interval_s)

    def made(self) -> Sequence[Pane]:
        """The panes, and who drives the log's."""
        panes = super().made()
        self.output = LogControl(self, self.log_pane)
        return panes

    def on_mount(self) -> None:
        """Draw the empty screen, then begin to look."""
        self.draw()
        if self._interval_s > 0:
            self.call_after_refresh(self.pulse.start)  # the first picture does not share the processor with a look

    def on_unmount(self) -> None:
        """End the pulse, and what was being worked on."""
        self.pulse.stop()
        self.jobs.leave()
        self.attention.leave()

    def on_resize(self, event: events.Resize) -> None:
        """Place the panes anew."""
        self.draw(event.size.width, event.size.height)
        self.pulse.hurry()

    def on_screen_resume(self) -> None:
        """What lay over it is gone: draw what was seen meanwhile."""
        if self.look_seen is not None:
            self.draw()
            self.pulse.hurry()

    def on_seen(self, message: Seen) -> None:
        """Draw what the pulse saw."""
        self.take(message.look)

    def look(self) -> None:
        """Look and draw at once, without the thread (tests, the first picture)."""
        self.take(self.pulse.once())
        self.take(self.pulse.once())

    def take(self, look: Look) -> None:
        """Remember a look and draw it."""
        self.look_seen = look
        if look.situation.story.seq or look.trouble is None:
            self.now = look.situation
        self.view = dashboard_view(self.now, self.run.name)
        (self.in_front or self).draw()
        self.operations.renew()
        self.attention.see(self.now, self.view.header)

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
        if self.in_front is not None:
            return
        if width is None or height is None:
            width, height = self.size
        self.place_panes(self.view, width, height)
        part = self.zoom is not None and self.zoom != WHOLE
        self.show_panes(self.view, self.look_seen, self.window, part=part)
        self.output.draw(self.look_seen)
        self.key_bar.show(self.offered(), self.key_bar.message)
        before, self.pulse.wishes = self.pulse.wishes, self.wishes()
        if not alike(before, self.pulse.wishes):
            self.pulse.hurry()

    def say(self, text: str) -> None:
        """A sentence in the footer for a few seconds, on whatever screen is in front."""
        if self.in_front is not None:
            self.in_front.say(text)
            return
        self.answer(text)

    @property
    def in_front(self) -> PlaceScreen | None:
        """The numbered screen that lies over this one."""
        return next((s for s in reversed(self.app.screen_stack) if isinstance(s, PlaceScreen)), None)

    def renew(self, place: str) -> None:
        """Work of a numbered screen changed something: it is drawn anew where it is the one in front."""
        if self.in_front is not None and self.in_front.place == place:
            self.in_front.renew()

    def _to_terminal(self, text: str) -> None:
        driver = self.app._driver  # noqa: SLF001  Textual has no door for the title
        if driver is not None:
            driver.write(text)

    def _ring(self) -> None:
        self.app.bell()

    def _job_moved(self) -> None:
        self.post_message(JobMoved())

    def on_job_moved(self, _: JobMoved) -> None:
        """Show how far it is."""
        if self.in_front is not None:
            self.in_front.draw()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Have something done on the screen's own thread; safe from any thread."""
        self.post_message(Called(call))

    def on_called(self, message: Called) -> None:
        """Do it."""
        message.call()

    def in_thread(self, work: Callable[[], str]) -> None:
        """Run something that may block; its sentence appears in the footer."""

        def run() -> None:
            self.post_message(Answered(work()))
            self.pulse.hurry()

        self.run_worker(run, thread=True, exit_on_error=False)

    def on_answered(self, message: Answered) -> None:
        """Show the sentence."""
        self.say(message.text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do not apply now do nothing; those that act on the run say why (but Enter means something else)."""
        name = str(parameters[0]) if action == "operate" else action
        key = next((k for k in KEYS if k.action.partition("(")[0] == name), None)
        if key is None or (key.acts and self.read_only):
            return key is None
        return key.when(self.context) or (action == "operate" and name != "start")

    def action_operate(self, name: str) -> None:
        """Do something to the run, or say why it cannot be done."""
        key = next(k for k in KEYS if k.action == name)
        if key.when(self.context):
            ACTS[name](self.operations)
        else:
            self.say(why_not(name, self.context))

    def action_explain(self) -> None:
        """Everything about the newest incident."""
        from ..dialogs.info_dialogs import incident_dialog

        if self.view.incidents:
            self.app.push_screen(incident_dialog(self.view.incidents[0]))

    def action_help(self) -> None:
        """The key table."""
        from ..dialogs.info_dialogs import help_dialog

        self.app.push_screen(help_dialog(self.context))

    def action_attach(self) -> None:
        """Leave to the trainer's terminal, and come back."""
        if self.attacher is None:
            self.say(f"Not from this screen; use: trainwatch attach {self.run.run_id}")
            return
        try:
            argv = self.attacher.command(self.run.run_id)
        except RuntimeError as error:
            self.say(str(error))
            return
        self.say(visit(self.app, argv))
        self.pulse.hurry()

    def action_zoom(self, steps: int) -> None:
        """All charts over a shorter or longer time."""
        self.zoom = zoomed_by(self.zoom, steps, self.view.timeline.now_t)
        self.draw()
        self.say(f"Charts show {self.window.words}; [ shorter, ] longer, Esc as before")

    def action_follow(self) -> None:
        """Hold the log, or follow it again."""
        self.output.follow(not self.output.pane.following)

    def action_follow_end(self) -> None:
        """Follow the log, whatever it showed."""
        self.output.follow(True)

    def action_scroll(self, rows: int) -> None:
        """Scroll the log."""
        self.output.scroll(rows)

    def find_in_log(self, log: str | None, line: int, text: str) -> None:
        """Show a line of evidence in the log pane, found by its words."""
        if log is None or log != self.output.path:
            self.say(f"Line {line:,} stands in the log of another try: {log or 'unknown'}")
            return
        self.output.answer(re.escape(text[:80]))

    def action_search(self) -> None:
        """Ask what to search for."""
        self.output.ask()

    def action_search_next(self, older: bool) -> None:
        """Go to the next match."""
        self.output.next(older=older)
