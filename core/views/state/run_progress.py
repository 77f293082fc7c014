"""Progress of a run as it is now: the newest reading, counted over all attempts, and the time left."""

from collections.abc import Mapping

import msgspec

from ...model.progress import Progress
from ...model.run import HALTED_STATES
from ...model.situation import Situation
from ...model.story import RunStory
from .. import quantity
from .level import Bounds, bounds_of


def live_progress(now: Situation) -> Progress:
    """The newest reading of the current attempt, else the story's, with the time left."""
    attempt = now.story.attempt
    newest = now.story.progress
    if now.progress is not None and (attempt is None or now.progress_t >= attempt.t):
        newest = now.progress
    return msgspec.structs.replace(newest, eta_s=None if now.story.state in HALTED_STATES else eta_s(newest))


def run_progress(now: Situation) -> Progress:
    """As ``live_progress``, with steps counted over the whole run if the trainer started its count again."""
    return over_run(now.story, live_progress(now))


def over_run(story: RunStory, progress: Progress) -> Progress:
    """A reading of the newest attempt, with the steps of the whole run: over its epochs, and over earlier attempts."""
    attempt = story.attempt
    offset = story.step_offset if attempt is not None and story.progress_attempt == attempt.number else 0
    step, total = progress.step, progress.total_steps
    if progress.run_step is not None:
        step, total = progress.run_step, progress.run_total_steps
    elif progress.of_part:
        step, total = None, None
    if step is None:
        return msgspec.structs.replace(progress, step=None, total_steps=None)
    if total is not None and step > total:
        total = None  # of another counter
    return msgspec.structs.replace(progress, step=step + offset, total_steps=None if total is None else total + offset)


def overall_step(now: Situation) -> int | None:
    """The step over all attempts, by the newest reading; None before the first step."""
    story, attempt = now.story, now.story.attempt
    told, newest = story.progress.any_step, live_progress(now).any_step
    if attempt is None or story.overall_step is None or story.progress_attempt != attempt.number:
        fresh = now.progress is not None and attempt is not None and now.progress_t >= attempt.t
        return newest if fresh or story.overall_step is None else story.overall_step
    if attempt.last_step is not None:
        return max(story.overall_step, attempt.last_step + story.step_offset)
    if newest is None or told is None or newest < told:
        return story.overall_step
    return story.overall_step + newest - told


def eta_s(progress: Progress) -> float | None:
    """Seconds to the last step: as the supervisor measured them or the trainer said, else steps left times the pace."""
    if progress.eta_s is not None or progress.run_step is None or progress.run_total_steps is None:
        return progress.eta_s
    return (
        None
        if progress.sec_per_step is None
        else (progress.run_total_steps - progress.run_step) * progress.sec_per_step
    )


def of_an_epoch(progress: Progress) -> str:
    """step 5 of 30 of an epoch, if it is not known where in the run that is; else empty. ``progress``: as printed."""
    if not progress.of_part or progress.step is None:
        return ""
    total = f" of {quantity.count(progress.total_steps)}" if progress.total_steps else ""
    return f"step {quantity.count(progress.step)}{total} of an epoch"


def fraction(progress: Progress) -> float | None:
    """Share that is done, 0..1; None if the total is unknown."""
    if progress.step is not None and progress.total_steps:
        return min(1.0, max(0.0, progress.step / progress.total_steps))
    if progress.epoch is not None and progress.total_epochs:
        return min(1.0, max(0.0, progress.epoch / progress.total_epochs))
    return None


def bounds_now(now: Situation) -> Mapping[str, Bounds]:
    """Bounds of the levels of this run's readings, by row."""
    attempt = now.story.attempt
    return bounds_of(now.health, attempt.profile if attempt is not None else None)
