"""The panes of the dashboard: their places, what each draws, focus and full size, the cursor of the timeline."""

from collections.abc import Sequence

from ....core.views.panes.dashboard import DashboardView
from ...log.log_view import LogView
from ...panes.checkpoint_panes import CheckpointsPane
from ...panes.head import Head, head_rows
from ...panes.incident_panes import IncidentsPane
from ...panes.key_bar import KeyBar
from ...panes.machine.gpu_pane import GpuPane
from ...panes.machine.memory_pane import MemoryPane
from ...panes.pane import Pane
from ...panes.timeline.timeline_pane import TimelinePane
from ...poller import Snapshot
from ...ui.series import SeriesQuery
from ...ui.time_window import TimeWindow
from ..pane_screen import PanedScreen
from .dashboard_layout import Contents, arrange
from .pane_focus import PANES, PLACE_OF_MARK, PLACE_OF_PANE, PaneFocus, next_pane, zoomed


class DashboardPanes(PanedScreen):
    """The panes of the dashboard and their places. The log pane is filled by a LogViewer."""

    remembered: PaneFocus

    def made(self) -> Sequence[Pane]:
        """All panes of the dashboard."""
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
        return panes

    def show_panes(self, view: DashboardView, snapshot: Snapshot | None, shown: TimeWindow, *, part: bool) -> None:
        """Give each what it draws. ``shown``: the time that the charts span, only a ``part`` of the run or all."""
        series = snapshot.series if snapshot is not None else {}
        self.head.show(view.header)
        self.gpu.show(view.gpu, series, shown)
        self.memory.show(view.memory, series, shown)
        first_gpu = view.gpu.gpus[0].index if view.gpu.gpus else None
        self.timeline.show(view.timeline, series, first_gpu, shown if part else None)
        self.incidents.show(view.incidents, view.incident_count)
        self.checkpoints.show(view.checkpoints)

    def series_queries(self) -> tuple[SeriesQuery, ...]:
        """What the charts want read for their next picture."""
        return (*self.gpu.series_queries(), *self.memory.series_queries(), *self.timeline.series_queries())

    def place_panes(self, view: DashboardView, width: int, height: int) -> None:
        """Put each where it belongs on a screen of this size."""
        boxes = arrange(
            width,
            height,
            Contents(
                head_rows=head_rows(view.header, width),
                gpus=max(1, len(view.gpu.gpus)),
                memory_rows=max(4, len(view.memory.meters)),
                incidents=len(view.incidents),
                open_incidents=sum(i.open for i in view.incidents),
                checkpoints=len(view.checkpoints),
                empty=bool(view.timeline.message) and not view.gpu.gpus and not view.memory.meters,
            ),
        )
        focused = self.remembered.focused
        if self.remembered.whole and focused is not None:
            boxes = zoomed(boxes, focused, width, height)
        for name, pane in self.panes.items():
            pane.set_class(name == focused, "-focus")
        self.place_boxes(boxes)


class FocusedPanes(DashboardPanes):
    """The part of the dashboard that answers tab, z, arrows, Enter, Escape and clicks on panes."""

    zoom: int | None

    def draw(self, width: int | None = None, height: int | None = None) -> None:
        """Show everything that changed."""
        raise NotImplementedError

    def show_message(self, text: str) -> None:
        """A sentence in the footer."""
        raise NotImplementedError

    def action_follow_end(self) -> None:
        """Follow the log, whatever it showed."""
        raise NotImplementedError

    def action_pane(self, panes: int) -> None:
        self.focus_pane(next_pane(self.remembered, self.panes, panes))

    def focus_pane(self, name: str | None) -> None:
        """Mark a pane as the one that is looked at; None: none of them."""
        self.remembered.focused = name
        if name is None:
            self.remembered.whole = False
        self.draw()

    def on_pane_pressed(self, message: Pane.Pressed) -> None:
        """A click looks at a pane; a second one opens its screen."""
        name = message.pane.id
        if name == self.remembered.focused:
            self.action_open()
        elif name in PANES:
            self.focus_pane(name)

    def action_whole(self) -> None:
        """Show the pane at full size, and back."""
        self.remembered.whole = not self.remembered.whole
        self.focus_pane(self.remembered.focused or "log")

    def action_event(self, events: int) -> None:
        """Walk the events of the timeline."""
        self.timeline.step(events)
        self.draw()
        if self.timeline.cursor is None and events > 0:
            self.show_message("This is the present.")

    def action_open(self) -> None:
        """The screen that tells more of the event under the cursor, else of the pane that is looked at."""
        mark = self.timeline.cursor
        name = PLACE_OF_MARK.get(mark.kind) if mark is not None else None
        name = name or PLACE_OF_PANE.get(self.remembered.focused or "")
        if name is not None:
            self.call_later(self.run_action, f"app.place('{name}')")

    def action_back(self) -> None:
        """Take back the newest of: event, zoom of time, full size, pane, held log."""
        if self.timeline.cursor is not None:
            self.timeline.cursor = None
            self.draw()
        elif self.zoom is not None:
            self.zoom = None
            self.draw()
        elif self.remembered.focused is not None:
            self.focus_pane(None)
        else:
            self.action_follow_end()
