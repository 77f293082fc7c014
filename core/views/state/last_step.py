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
STEPPING = frozenset({"train", "unknown"})
"""Phases in which steps are due."""


class LastStep(msgspec.Struct, frozen=True, kw_only=True):
    """``level``: safe; warning if it is late; unknown in a phase without steps whose usual length is not known."""

    age_s: float
    usual_s: float | None
    level: Level

    @property
    def told(self) -> bool:
        """Whether its age is worth telling."""
        return self.level != "safe" or (self.usual_s is not None and self.age_s >= max(LEAST_S, TOLD * self.usual_s))

    @property
    def words(self) -> str:
        """last step 2 min ago, usually every 2.5 s."""
        usually = "" if self.usual_s is None else f", usually every {quantity.three_digits(self.usual_s)} s"
        return f"last step {quantity.duration(self.age_s)} ago{usually}"


def last_step(now: Situation) -> LastStep | None:
    """None while no step is due: not running, or no step of this attempt was seen."""
    attempt, seen_t = now.story.attempt, now.step_t
    if now.story.state not in {"running", "hung"} or attempt is None or seen_t is None or seen_t < attempt.t:
        return None
    age_s = max(0.0, now.now_t - seen_t)
    progress = live_progress(now)
    usual_s = now.outlook.usual_s or progress.sec_per_step
    late_s = max(LATE_LEAST_S, LATE * (usual_s or 0.0), PAUSE * now.outlook.pause_s)
    late = usual_s is not None and age_s >= late_s
    level: Level = "safe" if not late else "warning" if progress.phase in STEPPING else "unknown"
    return LastStep(age_s=age_s, usual_s=usual_s, level=level)
