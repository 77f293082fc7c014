"""What the dashboard shows as soon as it is known; all else on it may be two seconds old."""

from ....core.model.situation import Situation
from ....core.views.panes.dashboard import DashboardView
from ....core.views.panes.gpu import GpuPaneView
from ....core.views.panes.meter import Meter
from ...panes.machine.meters import PRESSING


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
        (now.supervisor_alive, now.frozen, now.troubles, now.job and (now.job.phase, now.job.reason)),
        (said.level, said.worst, len(said.clauses), said.clauses[: said.vital]),
        _of_gpus(view.gpu),
        (memory.message, memory.note, *map(_level, memory.meters)),
    )


def _of_gpus(view: GpuPaneView) -> tuple[object, ...]:
    each = ((g.index, g.name, g.own, g.trouble, g.throttle, *map(_level, g.meters)) for g in view.gpus)
    return (view.message, view.note, *each)


def _level(meter: Meter) -> tuple[str, str]:
    return meter.label, meter.level if meter.level in PRESSING else ""
