"""What trainwatch does about an open silence, hang or crash without a person."""

from ...model.incident import Incident
from ...model.launch.ways_on import lacks_place
from ...model.situation import Situation
from .concerns import SILENT

IF_NO_STEP_COMES = "if no step comes, trainwatch ends the training, and restarts it or gives up"
RESTARTS = "trainwatch restarts the training"
RESTART_STATES = frozenset({"cleaning", "backing_off", "starting"})
"""States in which a restart is decided."""


def next_by_itself(incident: Incident, now: Situation) -> str:
    """A clause; empty if a person is needed, or what follows is not known.

    Nothing follows by itself without a supervisor that works, if the settings leave the decision to a person, if no
    restart is left, and if the command has no place for what was saved: a restart is held then.
    """
    story = now.story
    if not incident.open or incident.kind not in {*SILENT, "crash"}:
        return ""
    if not now.watched or story.act not in {None, "all"} or story.question is not None:
        return ""
    if story.state_why.holds:
        return ""
    if story.state == "stopping":
        return "the training is being ended"
    if story.state in RESTART_STATES:  # it is charged
        return RESTARTS
    if story.budget_used >= story.budget_max or lacks_place(story):
        return ""
    return IF_NO_STEP_COMES if incident.kind in SILENT and story.state in {"running", "hung"} else ""
