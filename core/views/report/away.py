"""Whether somebody who opens the screen was away, or has to know something first."""

from ...model.situation import Situation
from ...model.summary import Look
from .open_decisions import urgent_keys

AWAY_S = 3600.0
"""A person who looked less than this ago knows what goes on."""


def is_due(look: Look | None, now: Situation) -> bool:
    """Whether the summary greets them: away for more than an hour in which something happened, or something needs them.

    ``look``: the last one before now. What was seen then is not shown again.
    """
    if not now.story.attempts:
        return False
    seen = () if look is None else look.needs
    return any(key not in seen for key in urgent_keys(now)) or was_away(look, now)


def was_away(look: Look | None, now: Situation) -> bool:
    """Whether the last look is more than an hour ago, and the run went on after it."""
    since = look.wall if look is not None else now.story.wall0
    return now.now_wall - since > AWAY_S and now.story.wall0 + now.story.t > since


def since_wall(look: Look | None, now: Situation) -> float | None:
    """What the summary is of: the time since the last look; None: the whole run, if nobody was away from it."""
    return look.wall if look is not None and was_away(look, now) else None
