"""What the judge knows of an attempt for a comparison with the length in its settings, collected for told_end.py."""

from ....model.text.patterns import LazyPattern
from ...attempt_progress import whole_epochs
from ...failure.evidence_state import DiagnosisState
from ...knowledge import Knowledge
from ...progress.log_progress import ProgressState
from ...state import JudgeState
from ...text.position.reading import Reading
from .told_end import Counted

LINES = 4
"""Last lines in which a number that rises may be the same position in another unit."""
SURE_BEATS = 2
"""Printed positions from which on the distance of two is known."""
NUMBER = LazyPattern(r"(?<![\w.])\d[\d,]*(?![\w.]|,\d)")


def counted_of(state: JudgeState, knowledge: Knowledge, log: ProgressState) -> Counted:
    """How far the attempt has come. ``log``: the one that shows its steps."""
    attempt = state.attempt
    now, beat_t = log.now, attempt.beat_t
    if beat_t is None:
        return Counted()
    resumed = _is_resumed(state, knowledge)
    run, sure = now.run, log.heartbeats >= SURE_BEATS
    gap = max(now.interval, run.gap)
    rests = (run.index or 0) + 1 if run.per_epoch and run.total is None else 1
    trained_s = beat_t - attempt.start_t
    epoch, made_epochs = _epochs_begun(now, resumed=resumed)
    return Counted(
        step=run.run_step,
        epoch=epoch,
        step_gap=gap * rests,
        epoch_gap=run.epoch_gap,
        step_s=_step_s(state, run.run_step, trained_s) if sure else None,
        epoch_s=trained_s / made_epochs if sure and trained_s > 0 else None,
        silent_s=max(0.0, state.time.t - beat_t),
        steps_before=_steps_before(state, gap) if resumed else 0,
        epochs_before=_epochs_before(state, now) if resumed else 0,
        saved=max((k.step for k in state.checkpoints.known if k.own and k.step is not None), default=0),
        named=_numbers_that_rise(state.diagnosis),
    )


def _is_resumed(state: JudgeState, knowledge: Knowledge) -> bool:
    """Whether the attempt may have begun from a checkpoint."""
    attempt, told = state.attempt, knowledge.told.get(state.attempt.profile or "")
    if attempt.resume_from is not None or (told is not None and told.resumes_by):
        return True
    found = attempt.number > 1 or any(not known.own for known in state.checkpoints.known)
    return knowledge.resume_support.by_itself and found


def _step_s(state: JudgeState, step: int | None, trained_s: float) -> float | None:
    """Seconds of a step: between the first and the last line; since the start if the log was read at once."""
    attempt = state.attempt
    first, first_t, last_t = attempt.first_beat_step, attempt.first_beat_t, attempt.beat_t
    if step is None or last_t is None:
        return None
    if first is not None and first_t is not None and step > first and last_t > first_t:
        return (last_t - first_t) / (step - first)
    return trained_s / step if step > 0 and trained_s > 0 else None


def _steps_before(state: JudgeState, gap: int) -> int | None:
    """Steps before the resume that the counter leaves out; None = it may, and they are not known."""
    attempt = state.attempt
    first, at = attempt.first_step, attempt.resumed_at
    if at is None:
        return 0 if first is not None and first > gap + 1 else None
    return 0 if first is not None and first >= at else at * attempt.stride


def _epochs_begun(now: Reading, *, resumed: bool) -> tuple[float | None, int]:
    """Epochs of the run that have begun, the most that there can be; and those that the attempt has shown."""
    run, printed = now.run, now.progress.epoch
    if run.broken and printed is not None:
        return printed + 1, max(1, int(printed - (now.first_epoch or 0)) + 1)
    if run.named is not None:
        base = run.base if run.base is not None else int(run.first_named == 1 and not resumed)
        base = 0 if run.apart == "bar" else base
        return run.named - base + 1, max(1, int(run.named - (run.first_named or 0)) + 1)
    if run.per_epoch and run.index is not None:
        return run.index + 1, run.index + 1
    return None, 1


def _epochs_before(state: JudgeState, now: Reading) -> float | None:
    """Epochs before the resume that the count leaves out, the most that there can be; None = they are not known.

    Epochs that the log does not number are counted from the resume on. A checkpoint that holds epoch 3 may have been
    saved after four of them.
    """
    attempt, run = state.attempt, now.run
    first = now.first_epoch if run.broken else run.first_named
    if first is not None:
        return 0 if first > 1 else attempt.resume_epochs
    done = whole_epochs(attempt, run.whole or run.total)
    return done if done is not None or attempt.resume_epochs is None else attempt.resume_epochs + 1


def _numbers_that_rise(seen: DiagnosisState) -> tuple[int, ...]:
    """Whole numbers that stand in one of the last lines only."""
    lines = [line for line in (seen.tail + seen.fold.rest).splitlines() if line.strip()][-LINES:]
    found = [{int(match[0].replace(",", "")) for match in NUMBER.finditer(line)} for line in lines]
    return tuple(sorted({n for numbers in found for n in numbers if sum(n in each for each in found) == 1}))
