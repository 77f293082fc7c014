"""The length of the run by its settings, where its log does not show it.

For people who look at the run. Whether an exit with success was the end is judged apart (told_end.py of recovery).
"""

import msgspec

from ...model.launch.told_length import ToldLength
from ...model.progress import Progress
from ..text.position.run_count import RunCount

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
    if run.step is None:
        return _of_epochs(progress, told)
    if run.total is None:
        return _of_steps(progress, told) if progress.run_total_steps is None else progress
    return _of_bar(progress, run, told, resumed=resumed, epochs_before=epochs_before)


def _of_epochs(progress: Progress, told: ToldLength) -> Progress:
    """A log that prints epochs and no step."""
    if progress.epoch is None or progress.total_epochs is not None or not told.epochs or progress.epoch > told.epochs:
        return progress
    return replace(progress, total_epochs=told.epochs, total_by=told.epochs_by)


def _of_steps(progress: Progress, told: ToldLength) -> Progress:
    """A log that prints the step without a total."""
    step = progress.run_step
    for total, by in ((told.steps, told.steps_by), (told.guess, told.guess_by)):
        if step is not None and total is not None and step <= total:
            return _with_total(progress, step, total, by)
    return progress


def _of_bar(
    progress: Progress, run: RunCount, told: ToldLength, *, resumed: bool, epochs_before: int | None
) -> Progress:
    """A bar that counts within an epoch of which the log does not say how many there are.

    A bar of the whole run has the same number of steps for each epoch, so that one which the number of epochs does not
    divide, or that is shorter than the steps of the run, is of one epoch.
    """
    total = run.total or 0
    if run.number_of_epochs is not None or run.per_epoch is False or (run.per_epoch is None and resumed):
        return progress
    by_steps = told.steps is not None and told.steps > total
    if run.per_epoch is None and not by_steps and not (told.epochs or 0) > 1:
        return progress
    if run.per_epoch is None and not by_steps and total % (told.epochs or 1) == 0:
        return progress
    within = run if run.per_epoch else replace(run, per_epoch=True, index=0, done=0)
    if resumed and run.named is None:  # bars without the number of their epoch count anew
        if epochs_before is None or within.index is None or within.done is None:
            return replace(progress, run_step=None, run_total_steps=None, of_part=True)
        index, done = within.index + epochs_before, within.done + epochs_before * total
        within = replace(within, index=index, done=done, anew=False)
    step, whole = within.run_step, replace(within, declared=told.epochs).run_total
    by = told.epochs_by
    if told.steps is not None and by_steps and (whole is None or told.steps < whole):
        whole, by = told.steps, told.steps_by
    if step is None or whole is None or step > whole:
        return progress
    return _with_total(progress, step, whole, by)


def _with_total(progress: Progress, step: int, total: int, by: str) -> Progress:
    pace = progress.sec_per_step
    left = None if pace is None else (total - step) * pace
    return replace(progress, run_step=step, run_total_steps=total, total_by=by, eta_s=left, of_part=False)
