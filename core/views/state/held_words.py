"""The room that a held restart has now: the reason of the hold has that of its beginning."""

from ...model.launch.held import DISK_IS_FULL
from ...model.situation import Situation
from .. import quantity
from .readings import FRESH_S


def room_now(now: Situation) -> str:
    """``now 414 kB are free``; empty if it does not wait for room, or has as much as its reason says."""
    reason, host = now.story.state_reason, now.host
    if not reason.startswith(DISK_IS_FULL) or host is None or host.disk_free_bytes is None:
        return ""
    free = quantity.size(host.disk_free_bytes)
    if f"({free} were)" in reason or now.age_s(host.t) > FRESH_S:
        return ""
    return f"now {free} are free"
