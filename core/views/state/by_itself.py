"""What trainwatch does about an open silence, hang or crash without a person."""

from ...model.attempt import Incident
from ...model.situation import Situation
from ...model.story import RunStory, lacks_place
from .. import quantity
from .concerns import READINGS_FRESH_S, SILENT

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


# Why a run is in its state, in words; and the room that a held restart has now.


def reason_of(story: RunStory) -> str:
    """``held: the disk is full``; empty if the journal gives no reason."""
    return f"held: {story.state_reason}" if story.state_why.holds else story.state_reason


def room_now(now: Situation) -> str:
    """``now 414 kB are free``; empty if it does not wait for room, or has as much as when the hold began."""
    why, host = now.story.state_why, now.host
    if why.kind != "disk_full" or host is None or host.disk_free_bytes is None or now.age_s(host.t) > READINGS_FRESH_S:
        return ""
    free = quantity.size(host.disk_free_bytes)
    then = None if why.free_bytes is None else quantity.size(why.free_bytes)
    return "" if free == then else f"now {free} are free"
