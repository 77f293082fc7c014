"""The panes of the dashboard: which there are, what each draws, and where they stand."""

from collections.abc import Sequence

from ...core.views.panes.dashboard import DashboardView
from ..log.log_view import LogView
from ..panes.checkpoints_pane import CheckpointsPane
from ..panes.gpu_pane import GpuPane
from ..panes.head import Head, head_rows
from ..panes.incidents_pane import IncidentsPane
from ..panes.key_bar import KeyBar
from ..panes.memory_pane import MemoryPane
from ..panes.pane import Pane
from ..panes.timeline_pane import TimelinePane
from ..poller import Snapshot
from ..ui.series import Wish
from ..ui.time_window import TimeWindow
from .dashboard_layout import Contents, arrange
from .pane_focus import PaneMemory, zoomed
from .pane_screen import PanedScreen


class DashboardPanes(PanedScreen):
    """The panes of the dashboard and their places. The log pane is filled by a LogViewer."""

    remembered: PaneMemory

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
        return (self.head, *bodies, self.key_bar)

    def show_panes(self, view: DashboardView, snapshot: Snapshot | None, shown: TimeWindow, *, part: bool) -> None:
        """Give each what it draws. ``shown``: the time that the charts span, only a ``part`` of the run or all."""
        series = snapshot.series if snapshot is not None else {}
        self.head.show(view.header)
        self.gpu.show(view.gpu, series, shown)
        self.memory.show(view.memory, series, shown)
        first_gpu = view.gpu.gpus[0].index if view.gpu.gpus else None
        self.timeline.show(view.timeline, series, first_gpu, shown if part else None)
        self.incidents.show(view.incidents)
        self.checkpoints.show(view.checkpoints)

    def wishes(self) -> tuple[Wish, ...]:
        """What the charts want read for their next picture."""
        return (*self.gpu.wishes(), *self.memory.wishes(), *self.timeline.wishes())

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
            ),
        )
        focused = self.remembered.focused
        if self.remembered.whole and focused is not None:
            boxes = zoomed(boxes, focused, width, height)
        for name, pane in self.panes.items():
            pane.set_class(name == focused, "-focus")
        self.place_boxes(boxes)
