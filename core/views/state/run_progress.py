"""Progress of a run as it is now: the newest reading, counted over all attempts, and the time left."""

import math
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from ...model.progress import FAR, MARGIN, UTIL_UNDERUSED_PCT, Level, Metric, Progress, metrics
from ...model.run import HALTED_STATES
from ...model.settings import Health
from ...model.story import RunStory, Situation
from .. import quantity

# Levels of readings: by the bounds of the run's settings, and near a bound as the judge has them.

ALL_SAFE = Metric("", FAR, FAR)
BEHIND_LINES = 500
"""Fewer lines of the log wait for less than a second; of more the newest step that was read is an old one."""


@lru_cache(maxsize=64)
def bounds_of(health: Health, profile: str | None) -> Mapping[str, Metric]:
    """Bounds by row, for the settings and the profile of a run."""
    util = Metric("%", FAR, FAR, underused=UTIL_UNDERUSED_PCT)
    return {"util": util, "power": ALL_SAFE, **metrics(health, stable=profile == "stable")}


SEVERITY: dict[Level, int] = {"unknown": 0, "safe": 1, "underused": 2, "warning": 3, "danger": 4}


def level_in(bounds: Metric, value: float | None) -> Level:
    """The level of a value; ``unknown`` for None."""
    return "unknown" if value is None or not math.isfinite(value) else bounds.level_of(value)


def level_of(story: RunStory, names: tuple[str, ...], bounds: Metric, value: float | None) -> Level:
    """The level of the current value; near a bound, the judge's level of the first of these metrics.

    The judge waits before it reports a change, so its level may not fit the newest value.
    """
    present = level_in(bounds, value)
    if value is None or present == "unknown":
        return "unknown"
    judged = next((story.health[n].level for n in names if n in story.health), "unknown")
    near = {level_in(bounds, value * (1.0 - MARGIN)), level_in(bounds, value * (1.0 + MARGIN))}
    return judged if judged in near else present


def worst(levels: tuple[Level, ...]) -> Level:
    """The most serious of several levels; ``unknown`` if there are none."""
    return max(levels, key=SEVERITY.__getitem__, default="unknown")


def _own_reading(now: Situation) -> Progress | None:
    """The newest reading, if it is of the current attempt; one before its launch is of another."""
    attempt = now.story.attempt
    return now.progress if attempt is None or now.progress_t >= attempt.t else None


def live_progress(now: Situation) -> Progress:
    """The newest reading of the current attempt, else the story's, with the time left.

    Seconds to the last step: as the supervisor measured them or the trainer said, else steps left times the pace. An
    attempt that made no step yet may have to repeat some: unknown.
    """
    attempt, newest = now.story.attempt, _own_reading(now)
    seen = newest or now.story.progress
    before = newest is None and attempt is not None and now.story.progress_attempt not in {None, attempt.number}
    left_s, pace_s = seen.eta_s, seen.sec_per_step
    if left_s is None and seen.run_step is not None and seen.run_total_steps is not None and pace_s is not None:
        left_s = (seen.run_total_steps - seen.run_step) * pace_s
    unknown = before or now.story.state in HALTED_STATES or now.lines_behind >= BEHIND_LINES
    return msgspec.structs.replace(seen, eta_s=None if unknown else left_s)


def run_progress(now: Situation) -> Progress:
    """As ``live_progress``, with steps counted over the whole run: over its epochs, and over earlier attempts."""
    story, attempt, progress = now.story, now.story.attempt, live_progress(now)
    own = attempt is not None and story.progress_attempt == attempt.number
    offset = story.step_offset if own or _own_reading(now) is None else 0
    step, total = progress.step, progress.total_steps
    if progress.run_step is not None:
        step, total = progress.run_step, progress.run_total_steps
    elif progress.of_part:
        step = None
    if step is None or total is None or step > total:  # of another counter
        return msgspec.structs.replace(progress, step=None if step is None else step + offset, total_steps=None)
    return msgspec.structs.replace(progress, step=step + offset, total_steps=total + offset)


def overall_step(now: Situation) -> int | None:
    """The step over all attempts, by the newest reading; None before the first step."""
    story, attempt = now.story, now.story.attempt
    told, newest = story.progress.any_step, live_progress(now).any_step
    if attempt is None or story.overall_step is None or story.progress_attempt != attempt.number:
        return newest if story.overall_step is None or (attempt and _own_reading(now)) else story.overall_step
    if attempt.last_step is not None:
        return max(story.overall_step, attempt.last_step + story.step_offset)
    if newest is None or told is None or newest < told:
        return story.overall_step
    return story.overall_step + newest - told


def of_an_epoch(progress: Progress) -> str:
    """step 5 of 30 of an epoch, if it is not known where in the run that is; else empty. ``progress``: as printed."""
    if not progress.of_part or progress.step is None:
        return ""
    return f"step {quantity.out_of(progress.step, progress.total_steps)} of an epoch"


def fraction(progress: Progress) -> float | None:
    """Share that is done, 0..1; None if the total is unknown."""
    if progress.step is not None and progress.total_steps:
        return min(1.0, max(0.0, progress.step / progress.total_steps))
    if progress.epoch is not None and progress.total_epochs:
        return min(1.0, max(0.0, progress.epoch / progress.total_epochs))
    return None


def bounds_now(now: Situation) -> Mapping[str, Metric]:
    """Bounds of the levels of this run's readings, by row."""
    attempt = now.story.attempt
    return bounds_of(now.health, attempt.profile if attempt is not None else None)


# How long ago the newest step was, against what is usual.

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
UNSTEPPED_S = 300.0
"""A save or an evaluation that takes longer than this is told as a late step, too, although no other was seen."""
STEPPING = frozenset({"train", "unknown"})
"""Phases in which steps are due."""


class LastStep(msgspec.Struct, frozen=True, kw_only=True):
    """``usual_s``: usual distance of the steps that the log shows; ``step_s``: seconds a step.

    ``level``: safe; warning if it is late; in a phase without steps unknown until half of the time to its end as a hang
    is over, if no pause was seen before.
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
    """None while no step is due (not running), none of this attempt was seen, or newer ones are not read yet."""
    if not now.watched or now.lines_behind >= BEHIND_LINES:
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
    halfway = now.outlook.hang_t is not None and age_s >= now.outlook.hang_t - now.now_t
    due = progress.phase in STEPPING or now.outlook.pause_s > 0 or age_s >= UNSTEPPED_S or halfway
    level: Level = "safe" if not late else "warning" if due else "unknown"
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
