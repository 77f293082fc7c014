"""When the training will be done, from this run's own pace, including pauses and across restarts."""

import msgspec

from ...model.progress import Progress

WEIGHT = 0.1
"""Weight of the newest stretch: about the last ten count."""
SAMPLE_S = 30.0
"""Length of a stretch over which pace is measured, so that evaluation and saving in between count."""


class Pace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``s_per_step``: including pauses; None before the first stretch."""

    from_t: float | None = None
    from_step: int | None = None
    s_per_step: float | None = None


def with_step(pace: Pace, step: int, now: float) -> Pace:
    """Take a step that the trainer printed ``now`` (active seconds)."""
    if pace.from_t is None or pace.from_step is None or step < pace.from_step:
        return Pace(from_t=now, from_step=step, s_per_step=pace.s_per_step)
    if now - pace.from_t < SAMPLE_S or step == pace.from_step:
        return pace
    newest = (now - pace.from_t) / (step - pace.from_step)
    before = pace.s_per_step
    # A stretch with a long pause in it counts, but not more than five usual ones.
    blended = newest if before is None else before + WEIGHT * (min(newest, 5.0 * before) - before)
    return Pace(from_t=now, from_step=step, s_per_step=blended)


def begin_attempt(pace: Pace) -> Pace:
    """Start a new stretch after a restart; the pace stays known."""
    return Pace(s_per_step=pace.s_per_step)


def eta_s(pace: Pace, progress: Progress) -> float | None:
    """Return seconds to the last step of the run; at first, what the trainer itself prints."""
    step, total = progress.run_step, progress.run_total_steps
    if step is None or total is None or pace.s_per_step is None:
        return progress.eta_s
    return max(0, total - step) * pace.s_per_step


def with_own_pace(progress: Progress, pace: Pace, step_s: float | None) -> Progress:
    """Return progress with the time left at this run's own pace.

    ``step_s``: measured seconds of one step, filled in if the trainer prints none.
    """
    measured = progress.sec_per_step is None and progress.step is not None
    return msgspec.structs.replace(
        progress, eta_s=eta_s(pace, progress), sec_per_step=step_s if measured else progress.sec_per_step
    )
