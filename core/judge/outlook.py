"""The progress of a run, for people who look at it."""

from ..model.fact import ProgressMade
from ..model.incident import DIVERGING
from ..model.progress import Progress
from .attempt_progress import whole_epochs
from .findings import eta, loss, run_length
from .knowledge import Knowledge
from .state import JudgeState


def shown_progress(knowledge: Knowledge, state: JudgeState) -> Progress:
    """Progress for people: with the total that the settings know if the log shows none, and the time left."""
    run, attempt = state.reading.now.run, state.attempt
    told = knowledge.told.get(attempt.profile or "")
    resumed = attempt.resume_from is not None and attempt.resume_verdict != "ignored"
    before = whole_epochs(attempt, run.whole or run.total)
    progress = run_length.with_told(state.progress, run, told, resumed=resumed, epochs_before=before)
    if run.step is None and progress.epoch is not None:
        return _of_epochs(state, progress)
    return eta.with_own_pace(progress, state.pace, state.clock.step_s)


def _of_epochs(state: JudgeState, progress: Progress) -> Progress:
    """Progress of a log that prints an epoch as it ends, and no step. A log that was read late tells no times."""
    attempt, reading = state.attempt, state.reading.now
    first, last, epoch = attempt.first_beat_t, attempt.beat_t, progress.epoch
    if attempt.adopted or first is None or last is None or epoch is None or reading.first_epoch is None:
        return progress
    return eta.with_epoch_pace(progress, epoch - reading.first_epoch, last - first, epoch + (reading.run.base == 0))


def progress_made(knowledge: Knowledge, state: JudgeState) -> ProgressMade:
    """How far the attempt is, for the journal."""
    now = state.attempt
    return ProgressMade(
        attempt=now.number,
        progress=shown_progress(knowledge, state),
        overall_step=now.position,
        step_offset=now.step_offset,
        stride=now.stride,
        loss_state=loss.state_of(
            state.loss,
            is_nan=state.reading.now.loss_is_nan,
            diverges=any(i.class_ == DIVERGING for i in state.incidents),
        ),
        loss_floor=state.loss.floor,
    )
