"""A setting that a launch changes."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from .patterns import LazyPattern

ChangeOf = Literal["", "profile", "resume"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that differs from the user's own config, and why. ``where``: config key, flag or environment.

    ``of``: the profile, or the checkpoint to resume from, which is another one in each launch.
    """

    where: Literal["config", "flag", "env"]
    key: str
    before: Any = None
    after: Any = None
    why: str = ""
    of: ChangeOf = ""


# The ramp: when a run climbs to the next rung of its ladder, and which rungs failed.

_GOAL = LazyPattern(r"(\d+(?:\.\d+)?)\s*(checkpoint|epoch|hour)s?")
_OR = LazyPattern(r"\s+or\s+|\s*,\s*")


class RampGoal(msgspec.Struct, frozen=True, kw_only=True):
    """What must be reached on a rung before the next one; one of them is enough. None = does not count."""

    checkpoints: int | None = None
    epochs: float | None = None
    hours: float | None = None


def ramp_goal(text: str) -> RampGoal:
    """Read ``3 checkpoints``, ``10 epochs``, ``6 hours`` or several with ``or``. Raises ValueError with a sentence."""
    found: dict[str, float] = {}
    for part in _OR.split(text.strip()):
        match = _GOAL.fullmatch(part)
        if match is None or float(match[1]) <= 0:
            raise ValueError('must say how long, as in "3 checkpoints", "10 epochs" or "3 checkpoints or 6 hours"')
        found[match[2]] = float(match[1])
    checkpoints = found.get("checkpoint")
    if checkpoints is not None and checkpoints != int(checkpoints):
        raise ValueError("must name a whole number of checkpoints")
    return RampGoal(
        checkpoints=None if checkpoints is None else int(checkpoints),
        epochs=found.get("epoch"),
        hours=found.get("hour"),
    )


def goal_of_rung(ramp: Sequence[str], rung: int) -> RampGoal | None:
    """The goal of a rung (0 = the lowest); the last one holds for all above. None = the ramp is off."""
    return ramp_goal(ramp[min(rung, len(ramp) - 1)]) if ramp else None


class FailedRung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that failed. ``ran_s``: seconds that it had trained there; ``failure``: what ended it."""

    profile: str
    ran_s: float
    failure: str
    step: int | None = None

    @property
    def words(self) -> str:
        return f"{self.profile} {self.end}"

    @property
    def end(self) -> str:
        if self.ran_s <= 0.0:
            return f"did not start ({self.failure})"
        return f"died after {hours(self.ran_s)} ({self.failure})"


Direction = Literal["up", "back", "forgiven"]
"""Stored in the journal. ``back``: the rung failed, so the rung below it is next."""
ALLOWED_AGAIN: Final = "forgiven"
"""An operator asked for a rung that had failed: from now on the ramp may choose it, too."""


def hours(seconds: float) -> str:
    """A length of time on a rung: ``6.2 h``, or minutes if it is short."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"
