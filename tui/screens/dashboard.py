"""The dashboard: everything about one run on one screen."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec
from textual import events
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ...core.model.ports import OpenRun
from ...core.model.story import Situation
from ...core.model.text import typed
from ...core.views.dashboard import DashboardView, dashboard_view
from ...core.views.incidents import incident_card
from ...core.views.state.verdict import named_incident
from ..background import LongTask, Poller, Snapshot, TaskQueue
from ..keys import ALSO, BY_ACTION, KEYS, Key, KeyContext, applying, head_here, why_not
from ..log.dashboard_log import DashboardLog
from ..log.log_view import LogView
from ..operations import ACTS, Operations
from ..panes.dashboard_panes import CheckpointsPane, GpuPane, IncidentsPane, MemoryPane, beside_numbers, pressing
from ..panes.head import Head, KeyBar, head_rows
from ..panes.pane import Pane
from ..panes.timeline_pane import TimelinePane
from ..places import TerminalTitle
from ..run_session import PANES, PLACE_OF_MARK, PLACE_OF_PANE, AwayWatch, Band, Box, stack
from ..ui.cells import glyphs_for
from ..ui.chart import WHOLE, SeriesQuery, TimeWindow, same_charts, window, zoomed_by
from ..ui.terminal import in_browser
from .pane_screen import PanedScreen, is_place

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .place_screen import PlaceScreen


BELOW_DIALOG_S = 12.0
"""How often the screen below a dialog is drawn if nothing happens: Textual paints all of the terminal each time."""


class Dashboard(PanedScreen):
    """Shows one run. Its poller reads, its operations send commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"operate('{action}')" if action in ACTS else action, show=False)
        for key, action in (*(each for k in KEYS for each in k.bindings), *ALSO)
    ]

    usual_pane = "log"

    def __init__(self, application: "TrainwatchApp", run: OpenRun) -> None:
        super().__init__()
        self.application, self.run, self.remembered = application, run, application.pane_focus
        self.now = Situation()
        self.view: DashboardView = dashboard_view(self.now, run.name)
        self._polled = (self.now, self.view)
        """What the newest poll found, from its thread."""
        self.snapshot: Snapshot | None = None
        self.zoom: int | None = application.dashboard.zoom if application.dashboard is not None else None
        """That of the dashboard before it."""
        self.operations = Operations(self)
        self.tasks = TaskQueue(self)
        self.long_task = LongTask(self, self._long_task_changed)
        screen = run.plan.settings.screen
        self.terminal_title = TerminalTitle(screen, self._to_terminal, application.bell, glyphs_for())
        self.screen_states: dict[str, object] = {}
        """By numbered screen: what it restores when it is opened again."""
        self._interval_s = screen.refresh_s if application.interval_s > 0 else 0.0
        self._left = False
        self._drawn_at = 0.0
        self._drawn: tuple[object, ...] = ()
        """What had happened then."""
        self._in_sight = False
        """No other screen and no dialog is over this one."""
        self._polls = TaskQueue(self, "poll", in_order=True)
        self.poller = Poller(run.feed, self._polls, self.take, period_s=self._interval_s, at_once=self._at_once)
        self.away = AwayWatch(self)

    def made(self) -> Sequence[Pane]:
        self.head = Head(id="head", classes="-bare")
        self.gpu = GpuPane(id="gpu")
        self.memory = MemoryPane(id="memory")
        self.timeline = TimelinePane(id="timeline")
        self.incidents = IncidentsPane(id="incidents")
        self.checkpoints = CheckpointsPane(id="checkpoints")
        self.key_bar = KeyBar(id="keys", classes="-bare")
        self.log_pane = LogView(id="log", compact=True)
        bodies = (self.gpu, self.memory, self.timeline, self.incidents, self.checkpoints, self.log_pane)
        panes = (self.head, *bodies, self.key_bar)
        for pane in panes:
            pane.early = True
        self.output = DashboardLog(self, self.log_pane, self.run)
        return panes

    def on_mount(self) -> None:
        self.draw(*self.app.size)  # its own size is not known yet
        # After the first paint, by ScreenResume: together they would delay it.
        self.call_later(self.away.begin)
        self.call_later(self.poll)

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
        self.away.leave()
        self.terminal_title.restore()

    def on_resize(self, event: events.Resize) -> None:
        self.draw(event.size.width, event.size.height)
        if self.snapshot is not None:
            self.poll()

    def on_screen_resume(self) -> None:
        self._in_sight = True
        if self.snapshot is not None:
            self.draw()
            self.poll()

    def on_screen_suspend(self) -> None:
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
        return self.application.context_of(self.now)

    @property
    def window(self) -> TimeWindow:
        return self.window_of(self.zoom)

    def window_of(self, zoom: int | None) -> TimeWindow:
        """The same for a zoom of ``window``."""
        story, timeline, cursor = self.now.story, self.view.timeline, self.timeline.cursor
        return window(
            zoom,
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
        view, found, shown = self.view, self.snapshot, self.window
        view = msgspec.structs.replace(view, header=head_here(view.header, self.context))
        self.place_panes(view, width, height)
        series = found.series if found is not None else {}
        part = self.zoom is not None and self.zoom != WHOLE
        self.head.show(view.header)
        self.gpu.show(view.gpu, series, shown)
        self.memory.show(view.memory, series, shown)
        self.timeline.show(view.timeline, series, shown if part else None)
        self.incidents.show(view.incidents, view.incident_count, view.card)
        self.checkpoints.show(view.checkpoints)
        self.output.update(self.now, found.trouble or "" if found is not None else "", width)
        self.key_bar.show(self.offered(), self.key_bar.message)
        self.read_series(None)

    def read_series(self, series_queries: tuple[SeriesQuery, ...] | None) -> None:
        """Have these charts read with each poll, at once if they are others; None: those of the dashboard."""
        before = self.poller.series_queries
        charts = (self.gpu, self.memory, self.timeline)
        own = tuple(query for pane in charts for query in pane.series_queries())
        self.poller.series_queries = own if series_queries is None else series_queries
        if not same_charts(before, self.poller.series_queries):
            self.poll()

    def zoom_time(self, steps: int) -> None:
        self.zoom = zoomed_by(self.zoom, steps, self.view.timeline.now_t)
        self.call_later(self.poll)  # once the charts are known that are wanted now

    def show_message(self, text: str) -> None:
        """A sentence in the footer for a few seconds, on whatever screen is in front."""
        if self.in_front is not None:
            self.in_front.show_message(text)
        else:
            super().show_message(text)

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

    def _long_task_changed(self) -> None:
        if self.in_front is not None:
            self.in_front.draw()

    def in_thread(self, work: Callable[[], str], failed: str = "") -> None:
        """Run something that may block; its sentence appears in the footer, or ``failed`` and what it raised."""

        def told(text: str | None, trouble: str) -> None:
            self.show_message(text or f"{failed}{trouble}")
            self.poll()

        self.tasks.fetch(work, told)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do not apply now do nothing; those of operations show why (except those with another use)."""
        name = str(parameters[0]) if action == "operate" else action
        key = BY_ACTION.get(name)
        return key is None or key.when(self.context) or (action == "operate" and name not in {"start", "take_back"})

    def action_operate(self, name: str) -> None:
        """Run an operation, or show why it does not apply."""
        if BY_ACTION[name].when(self.context) and not self.context.read_only:
            self.operations.do(name)
        else:
            self.show_message(why_not(name, self.context))

    def action_explain(self) -> None:
        """The incident that the head names, else the newest."""
        named = named_incident(self.now)
        if self.view.incidents:
            self.explain(self.view.incidents[0].id if named is None else named)

    def explain(self, number: int) -> None:
        """Open the card of an incident."""
        from .incidents_screen import IncidentDialog

        if (card := incident_card(self.now, number)) is not None:
            self.app.push_screen(IncidentDialog(self, card))

    def action_summary(self) -> None:
        self.away.show()

    def action_help(self) -> None:
        from ..dialogs.cards import HelpDialog

        self.app.push_screen(HelpDialog(self.context))

    def action_attach(self) -> None:
        from ..places import run_in_terminal

        if in_browser(os.environ):
            self.show_message(f"Not from this screen; use: {typed('attach', self.run.run_id)}")
            return
        try:
            argv = self.application.picker.command(self.run.run_id)
        except RuntimeError as error:
            self.show_message(str(error))
            return
        self.show_message(run_in_terminal(self.app, argv))
        self.poll()

    def action_zoom(self, steps: int) -> None:
        self.zoom_time(steps)
        self.draw()
        self.show_message(f"Charts show {self.window.words}; [ shorter, ] longer, Esc as before")

    def on_log_view_wanted(self, message: LogView.Wanted) -> None:
        self.output.viewer.driver.scroll(message.rows)

    def action_follow(self) -> None:
        self.output.follow(not self.log_pane.following)

    def action_follow_end(self) -> None:
        self.output.follow(True)

    def action_scroll(self, rows: int) -> None:
        self.output.viewer.driver.scroll(rows)

    def action_up(self) -> None:
        """A row up; the first time it is said what kills: in earlier versions this key did."""
        self.action_scroll(-1)
        if self.application.explains_k:
            self.application.explains_k = False
            self.show_message("k and j scroll the log; K kills the training, after it has asked.")

    def action_log_start(self) -> None:
        self.output.viewer.driver.to_start()

    def action_search(self) -> None:
        self.output.viewer.ask_search("search the log (regular expression), Enter, then n and N")

    def action_search_next(self, older: bool) -> None:
        self.output.viewer.next_match(older=older)

    def place_panes(self, view: DashboardView, width: int, height: int) -> None:
        """Put each where it belongs on a screen of this size."""
        boxes = arrange(
            width,
            height,
            Contents(
                head_rows=head_rows(view.header, width, height),
                gpus=max(1, len(view.gpu.gpus)),
                memory_rows=max(4, len(view.memory.meters)),
                incidents=len(view.incidents),
                open_incidents=sum(i.open for i in view.incidents),
                checkpoints=len(view.checkpoints),
                empty=bool(view.timeline.message) and not view.gpu.gpus and not view.memory.meters,
            ),
        )
        focused = self.remembered.focused
        if self.remembered.whole and focused:  # head, this pane over all the rest, footer
            room = height - boxes["head"][3] - 1
            whole: dict[str, Box] = {focused: (0, boxes["head"][3], width, room)} if room >= 3 else {}
            boxes = {"head": boxes["head"], "keys": boxes["keys"], **whole}
        for name, pane in self.panes.items():
            pane.set_class(name == focused, "-focus")
        self.place_boxes(boxes)

    def focus_pane(self, name: str) -> None:
        super().focus_pane(name)
        self.poll()  # a chart of another size has other columns

    def reachable(self) -> Sequence[str]:
        """Those on the screen, or all if one is at full size."""
        return [name for name in PANES if self.remembered.whole or self.panes[name].display]

    def on_pane_pressed(self, message: Pane.Pressed) -> None:
        """A click looks at a pane; a second one opens its screen."""
        name = message.pane.id
        if name == self.remembered.focused:
            self.action_open()
        elif name in PANES:
            self.focus_pane(name)

    def action_event(self, events: int) -> None:
        self.timeline.step(events)
        self.draw()
        if self.timeline.cursor is None and events > 0:
            self.show_message("This is the present.")

    def action_open(self) -> None:
        """The screen that tells more of the event under the cursor, else of the pane that is looked at."""
        mark = self.timeline.cursor
        name = PLACE_OF_MARK.get(mark.kind) if mark is not None else None
        name = name or PLACE_OF_PANE.get(self.remembered.focused)
        if name is not None:
            self.call_later(self.run_action, f"app.place('{name}')")

    def action_back(self) -> None:
        if self.timeline.cursor is not None:
            self.timeline.cursor = None
            self.draw()
        elif self.zoom is not None:
            self.zoom = None
            self.draw()
            self.poll()
        elif self.remembered.focused:
            self.remembered.whole = False
            self.focus_pane("")
        else:
            self.action_follow_end()


# The place of each pane by screen size. Pure: size and contents in, boxes out; no box overlaps another or the edge.

PHONE_COLUMNS = 60
WIDE_COLUMNS = 100
LARGE_COLUMNS = 160
LARGE_ROWS = 44


class Contents(msgspec.Struct, frozen=True):
    """What the layout depends on: rows of the head, numbers of GPUs, meters, incidents and checkpoints."""

    head_rows: int = 2
    gpus: int = 1
    memory_rows: int = 4
    incidents: int = 0
    open_incidents: int = 0
    checkpoints: int = 0
    empty: bool = False
    """Nothing has been read and nothing has happened: readings and timeline are a sentence each."""


def arrange(width: int, height: int, contents: Contents) -> dict[str, Box]:
    """Boxes by pane; a pane that is not in the answer is not shown. ``head`` and ``keys`` are always there."""
    head = min(contents.head_rows, max(1, height - 1))
    boxes: dict[str, Box] = {"head": (0, 0, width, head), "keys": (0, height - 1, width, 1)}
    room = height - head - 1
    if room < 3:
        return boxes | ({"log": (0, head, width, room)} if room > 0 else {})
    large = width >= LARGE_COLUMNS and height >= LARGE_ROWS
    bands = (_phone if width < PHONE_COLUMNS else _large if large else _stacked)(width, room, contents)
    return boxes | stack((0, head, width, room), bands)


def _phone(width: int, room: int, contents: Contents) -> Iterator[Band]:
    """One column. What does not fit is left out, in this order: memory, GPU, timeline."""
    gpus = min(contents.gpus + 3, 8) if contents.gpus > 1 else 6
    kept: dict[str, int] = {}
    for name, rows in (("incidents", _incident_rows(contents, 4)), ("timeline", 6), ("gpu", gpus), ("memory", 5)):
        if sum(kept.values()) + rows <= room - 5:
            kept[name] = rows
    yield from ((kept[name], ((name, width),)) for name in PANES if name in kept)
    rest = room - sum(kept.values())
    yield rest if rest >= 3 else 0, (("log", width),)


def _stacked(width: int, room: int, contents: Contents) -> Iterator[Band]:
    """GPU beside memory, the timeline below, then incidents (beside checkpoints on a wide screen), the log below.

    With many GPUs on a small screen the incidents go below memory.
    """
    wide, tall = width >= WIDE_COLUMNS, room >= 30
    spare = room - (5 if tall else 4)

    def fitting(rows: int) -> int:
        nonlocal spare
        rows = min(rows, spare) if min(rows, spare) >= 3 else 0
        spare -= rows
        return rows

    meters = 4 if contents.empty else max(contents.memory_rows if tall else 4, _gpu_rows(contents)) + 2
    meters, gpus = fitting(meters), width * (52 if contents.gpus <= 1 else 56) // 100
    beside = width - gpus
    below = meters - contents.memory_rows - 2 if contents.incidents and not wide else 0
    below = below if below >= 3 else 0
    memory: tuple[Band, ...] = ((meters - below, (("memory", beside),)), (below, (("incidents", beside),)))
    yield meters, (("gpu", gpus), (memory, beside))
    yield fitting(_timeline_rows(room, contents, tall=tall)), (("timeline", width),)
    incidents = _incident_rows(contents, 8 if tall else 5)
    if tall and wide:
        incidents = max(incidents, min(8, contents.checkpoints + 2), 3)
    left = width * 60 // 100 if wide and (tall or contents.checkpoints) else width
    yield 0 if below else fitting(incidents), (("incidents", left), ("checkpoints", width - left))
    yield spare + (5 if tall else 4), (("log", width),)


def _large(width: int, room: int, contents: Contents) -> Iterator[Band]:
    """Three bands: readings; the timeline over the whole width; the log beside incidents and checkpoints."""
    left = width * 2 // 3
    right = width - left
    meters = 4 if contents.empty else max(contents.memory_rows, _gpu_rows(contents)) + 2
    timeline = 3 if contents.empty else min(18, max(12, room - meters - 18))
    rest = room - meters - timeline
    wanted = _incident_rows(contents, 8) + max(0, contents.incidents - 1) if contents.incidents else 3
    checkpoints = min(max(4, contents.checkpoints + 2), max(4, rest // 2 - 1, rest - wanted))
    lists: tuple[Band, ...] = ((rest - checkpoints, (("incidents", right),)), (checkpoints, (("checkpoints", right),)))
    yield meters, (("gpu", left), ("memory", right))
    yield timeline, (("timeline", width),)
    yield rest, (("log", left), (lists, right))


def _timeline_rows(room: int, contents: Contents, *, tall: bool) -> int:
    """Both curves with their ticks if there is room; an open incident needs it more."""
    if contents.empty:
        return 3
    if tall:
        return 12 if room >= 34 else 10
    if contents.open_incidents:
        return 5
    return 6 if contents.incidents or room < 20 else 8


def _gpu_rows(contents: Contents) -> int:
    """Four readings of a single GPU, or a heading and a row each."""
    return 4 if contents.gpus <= 1 else min(contents.gpus, 16) + 1


def _incident_rows(contents: Contents, when_open: int) -> int:
    if not contents.incidents:
        return 0
    return when_open if contents.open_incidents else min(when_open, 2 + min(contents.incidents, 2))


# What the dashboard shows as soon as it is known; all else on it may be two seconds old.


def at_once(now: Situation, view: DashboardView) -> tuple[object, ...]:
    """Equal for two moments that differ in numbers that only move: steps, readings, the time.

    It differs with each event of the run (a state, an incident, a checkpoint), with the level of the sentence and the
    clauses of it that are never cut (a hang and its countdown are such), and with a reading that gets or loses a level
    that matters.
    """
    said, memory = view.header.verdict, view.memory
    return (
        now.story.seq,
        now.story.state,
        (now.supervisor_alive, now.frozen, now.left is None, now.troubles, now.job and (now.job.phase, now.job.reason)),
        (said.level, said.worst, len(said.clauses), said.clauses[: said.vital]),
        (view.gpu.message, view.gpu.note, *map(beside_numbers, view.gpu.gpus)),
        (memory.message, memory.note, tuple(meter.label for meter in memory.meters), pressing(memory.meters)),
    )
