"""The dashboard as one value: what every pane shows."""

import msgspec

from ...model.situation import Situation
from ..checkpoint_list import CheckpointView, checkpoint_views
from ..incident_list import IncidentView, folded, incident_views
from .gpu import GpuPaneView, gpu_pane_view
from .header import HeaderView, header_view
from .memory import MemoryView, memory_view
from .timeline import TimelineView, timeline_view


class DashboardView(msgspec.Struct, frozen=True, kw_only=True):
    """What each pane of the dashboard shows, from one situation."""

    header: HeaderView
    gpu: GpuPaneView
    memory: MemoryView
    timeline: TimelineView
    checkpoints: tuple[CheckpointView, ...]
    incidents: tuple[IncidentView, ...]
    """Equal ones are one."""
    incident_count: int = 0


def dashboard_view(now: Situation, name: str = "") -> DashboardView:
    """Project a situation. ``name``: used until the journal has one."""
    incidents = incident_views(now)
    return DashboardView(
        header=header_view(now, name),
        gpu=gpu_pane_view(now),
        memory=memory_view(now),
        timeline=timeline_view(now),
        checkpoints=checkpoint_views(now),
        incidents=folded(incidents),
        incident_count=len(incidents),
    )
