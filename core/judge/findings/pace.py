"""Pace and length of a run: when it will be done, and how long it is."""

import msgspec

from ...model.progress import Progress, ToldLength
from ..scales import HALF_MINUTE_S
from ..text.run_count import RunCount

# When the training will be done, from this run's own pace, including pauses and across restarts.

WEIGHT = 0.1
"""Weight of the newest stretch: about the last ten count."""
FIRST_S = 2.0
"""Seconds of the first stretch of a run after which its pace is taken, as far as it has come."""
OTHER_PACE = 0.5
"""An attempt whose first stretch differs from the pace before by more than this share has a pace of its own."""
TOO_FAST = 10.0
"""A printed pace that many times faster than the measured one counts steps that a resume passed over as made."""


class Pace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``s_per_step``: including pauses, over full stretches; None before the first. ``fresh``: none in this attempt.

    ``to_t``, ``to_step``: the newest step of the stretch that began at ``from_t``.
    """

    from_t: float | None = None
    from_step: int | None = None
    to_t: float | None = None
    to_step: int | None = None
    s_per_step: float | None = None
    fresh: bool = True


def with_step(pace: Pace, step: int, now: float) -> Pace:
    """Take a step that the trainer printed ``now`` (active seconds)."""
    if pace.from_t is None or pace.from_step is None or step < pace.from_step:
        return begin_stretch(pace, step, now)
    if step == pace.from_step:
        return pace
    if now - pace.from_t < HALF_MINUTE_S:
        return msgspec.structs.replace(pace, to_t=now, to_step=step)
    newest = (now - pace.from_t) / (step - pace.from_step)
    before = pace.s_per_step
    if before is None or (pace.fresh and abs(newest - before) > OTHER_PACE * before):
        blended = newest
    else:  # A stretch with a long pause in it counts, but not more than five usual ones.
        blended = before + WEIGHT * (min(newest, 5.0 * before) - before)
    return Pace(from_t=now, from_step=step, s_per_step=blended, fresh=False)


def begin_stretch(pace: Pace, step: int, now: float) -> Pace:
    """Measure from here: the steps before came at once, after a time in which nothing was read."""
    return Pace(from_t=now, from_step=step, s_per_step=pace.s_per_step, fresh=pace.fresh)


def pace_of(pace: Pace) -> float | None:
    """Seconds per step; of the first stretch of a run as far as it has come. None if that is too short."""
    if pace.s_per_step is not None:
        return pace.s_per_step
    if pace.from_t is None or pace.to_t is None or pace.from_step is None or pace.to_step is None:
        return None
    lasted = pace.to_t - pace.from_t
    return lasted / (pace.to_step - pace.from_step) if lasted >= FIRST_S else None


def eta_s(pace: Pace, progress: Progress) -> float | None:
    """Return seconds to the last step of the run at its own pace; at first, what the trainer itself prints."""
    step, total, own = progress.run_step, progress.run_total_steps, pace_of(pace)
    if step is None or total is None or own is None:
        return progress.eta_s
    return max(0, total - step) * own


def with_own_pace(progress: Progress, pace: Pace, step_s: float | None) -> Progress:
    """Return progress with the time left at this run's own pace.

    ``step_s``: measured seconds of one step, taken if the trainer prints none, or one that cannot be: after a resume a
    bar may print thousands of steps a second for minutes.
    """
    printed_s = progress.sec_per_step
    if step_s is None:
        step_s = pace_of(pace)
    too_fast = printed_s is not None and step_s is not None and printed_s * TOO_FAST < step_s
    measured = too_fast or (printed_s is None and progress.step is not None)
    return msgspec.structs.replace(
        progress, eta_s=eta_s(pace, progress), sec_per_step=step_s if measured else printed_s
    )


def with_epoch_pace(progress: Progress, done: float, lasted_s: float, ended: float) -> Progress:
    """Return progress of a log without steps, with the time left, if ``done`` epochs took ``lasted_s``."""
    if progress.total_epochs is None or done <= 0:
        return progress
    left = max(0.0, progress.total_epochs - ended)
    return msgspec.structs.replace(progress, eta_s=left * lasted_s / done)


# The length of the run by its settings, where its log does not show it.
#
# For people who look at the run. Whether an exit with success was the end is judged apart (ending.py of recovery).

replace = msgspec.structs.replace


def with_told(
    progress: Progress, run: RunCount, told: ToldLength | None, *, resumed: bool, epochs_before: int | None = None
) -> Progress:
    """Progress with the total of the whole run, and by what it is known (``total_by``). ``run``: what the log shows.

    ``resumed``: the attempt began from a checkpoint, so the total of a bar may be what was left. ``epochs_before``:
    epochs of the run that this checkpoint holds, None = unknown.
    """
    if told is None:
        return progress
    step, epoch = progress.run_step, progress.epoch
    if run.step is None:  # a log that prints epochs and no step
        is_known = epoch is None or progress.total_epochs is not None or not told.epochs or epoch > told.epochs
        return progress if is_known else replace(progress, total_epochs=told.epochs, total_by=told.epochs_by)
    if run.total is None:  # one that prints the step without a total
        for total, by in ((told.steps, told.steps_by), (told.guess, told.guess_by)):
            if progress.run_total_steps is None and step is not None and total is not None and step <= total:
                return _with_total(progress, step, total, by)
        return progress
    # A bar that counts within an epoch of which the log does not say how many there are. One of the whole run has the
    # same number of steps for each epoch, so that one which the number of epochs does not divide, or that is shorter
    # than the steps of the run, is of one epoch.
    total, by_steps = run.total, told.steps is not None and told.steps > run.total
    if run.number_of_epochs is not None or run.per_epoch is False or (run.per_epoch is None and resumed):
        return progress
    if run.per_epoch is None and not by_steps and total % (told.epochs or 1) == 0:
        return progress
    within = run if run.per_epoch else replace(run, per_epoch=True, index=0, done=0)
    if resumed and run.named is None:  # bars without the number of their epoch count anew
        if epochs_before is None or within.index is None or within.done is None:
            return replace(progress, run_step=None, run_total_steps=None, of_part=True)
        index, done = within.index + epochs_before, within.done + epochs_before * total
        within = replace(within, index=index, done=done, anew=False)
    at, whole = within.run_step, replace(within, declared=told.epochs).run_total
    by = told.epochs_by
    if told.steps is not None and by_steps and (whole is None or told.steps < whole):
        whole, by = told.steps, told.steps_by
    if at is None or whole is None or at > whole:
        return progress
    return _with_total(progress, at, whole, by)


def _with_total(progress: Progress, step: int, total: int, by: str) -> Progress:
    pace = progress.sec_per_step
    left = None if pace is None else (total - step) * pace
    return replace(progress, run_step=step, run_total_steps=total, total_by=by, eta_s=left, of_part=False)
