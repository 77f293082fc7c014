"""When the training will be done: from this run's own pace, robust against pauses, also across restarts."""

import msgspec

from ...model.progress import Progress

WEIGHT = 0.1
"""Weight of the newest pace: about the last ten samples count."""
SAMPLE_S = 30.0
"""Pace is measured over stretches this long, so that evaluation and saving in between count."""


class Pace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``s_per_step`` over everything incl. pauses; None before the first stretch."""

    from_t: float | None = None
    from_step: int | None = None
    s_per_step: float | None = None


def with_step(pace: Pace, step: int, now: float) -> Pace:
    """The trainer printed ``step`` at active second ``now``."""
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
    """A restart: the pace stays known, the stretch begins again."""
    return Pace(s_per_step=pace.s_per_step)


def eta_s(pace: Pace, progress: Progress) -> float | None:
    """Seconds to the last step (of the bar, where it is per epoch); at first, what the trainer itself says."""
    if progress.step is None or progress.total_steps is None or pace.s_per_step is None:
        return progress.eta_s
    return max(0, progress.total_steps - progress.step) * pace.s_per_step


def with_own_pace(progress: Progress, pace: Pace, step_s: float | None) -> Progress:
    """Progress as people are told it: with the time left by this run's own pace.

    ``step_s``: the measured time of one step, told where the trainer prints none.
    """
    measured = progress.sec_per_step is None and progress.step is not None
    return msgspec.structs.replace(
        progress, eta_s=eta_s(pace, progress), sec_per_step=step_s if measured else progress.sec_per_step
    )
