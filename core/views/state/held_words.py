"""Why a run is in its state, in words; and the room that a held restart has now."""

from ...model.situation import Situation
from ...model.story import RunStory
from .. import quantity
from .readings import FRESH_S


def reason_of(story: RunStory) -> str:
    """``held: the disk is full``; empty if the journal gives no reason."""
    return f"held: {story.state_reason}" if story.state_why.holds else story.state_reason


def room_now(now: Situation) -> str:
    """``now 414 kB are free``; empty if it does not wait for room, or has as much as when the hold began."""
    why, host = now.story.state_why, now.host
    if why.kind != "disk_full" or host is None or host.disk_free_bytes is None or now.age_s(host.t) > FRESH_S:
        return ""
    free = quantity.size(host.disk_free_bytes)
    then = None if why.free_bytes is None else quantity.size(why.free_bytes)
    return "" if free == then else f"now {free} are free"
