"""How long ago the newest step was, against what is usual."""

import msgspec

from ...model.health import Level
from ...model.situation import Situation
from .. import quantity
from .run_progress import live_progress

TOLD = 3.0
"""x the usual distance of steps: from then on the age is told."""
LATE = 10.0
"""x the usual distance: from then on it is a warning."""
LEAST_S = 5.0
"""Steps are read every second or two: a smaller age says nothing."""
LATE_LEAST_S = 10.0
PAUSE = 1.25
"""x the longest harmless silence so far: a pause of about that length is usual, too."""
READ_S = 3.0
"""The log is read about once a second: a shorter distance of steps tells of the reading, not of the steps."""
SPARSE = 3.0
"""x the time of a step: a log whose steps are farther apart shows only some of them."""
STEPPING = frozenset({"train", "unknown"})
"""Phases in which steps are due."""


class LastStep(msgspec.Struct, frozen=True, kw_only=True):
    """``usual_s``: usual distance of the steps that the log shows; ``step_s``: seconds a step.

    ``level``: safe; warning if it is late; unknown in a phase without steps whose usual length is not known.
    """

    age_s: float
    usual_s: float | None
    step_s: float | None = None
    level: Level

    @property
    def told(self) -> bool:
        """Whether its age is worth telling."""
        return self.level != "safe" or (self.usual_s is not None and self.age_s >= max(LEAST_S, TOLD * self.usual_s))

    @property
    def words(self) -> str:
        """last step 2 min ago, usually 2.50 s/step."""
        return f"last step {quantity.duration(self.age_s)} ago{usually(self.usual_s, self.step_s, before=', ')}"


def last_step(now: Situation) -> LastStep | None:
    """None while no step is due (not running), no step of this attempt was seen, or no supervisor looks for steps."""
    if not now.watched:
        return None
    attempt, seen_t = now.story.attempt, now.step_t
    if now.story.state not in {"running", "hung"} or attempt is None or seen_t is None or seen_t < attempt.t:
        return None
    age_s = max(0.0, now.now_t - seen_t)
    progress = live_progress(now)
    usual_s = now.outlook.usual_s or progress.sec_per_step
    least_s = LATE_LEAST_S if now.outlook.hang_t is None else LEAST_S
    late_s = max(least_s, LATE * (usual_s or 0.0), PAUSE * now.outlook.pause_s)
    late = usual_s is not None and age_s >= late_s
    level: Level = "safe" if not late else "warning" if progress.phase in STEPPING else "unknown"
    return LastStep(age_s=age_s, usual_s=usual_s, step_s=progress.sec_per_step, level=level)


def usually(usual_s: float | None, step_s: float | None, *, before: str = "") -> str:
    """``usually 2.50 s/step``, or ``usually one every 40 s`` if the log shows few of the steps; empty if unknown."""
    if step_s is not None and step_s > 0 and (usual_s is None or usual_s < max(READ_S, SPARSE * step_s)):
        return f"{before}usually {quantity.pace(step_s)}"
    if usual_s is None:
        return ""
    if usual_s < READ_S:
        return f"{before}usually {quantity.pace(usual_s)}"
    return f"{before}usually one every {quantity.three_digits(usual_s)} s"
