"""When the attempt trained, as far as its log shows that: what was written before its first step is no state of it."""

from ...resume.unclear_state import Training
from ...run_machine import is_live
from ...state import JudgeState


def training_of(state: JudgeState) -> Training:
    """When the attempt trained, as far as its log shows that."""
    attempt = state.attempt
    first_t = _first_step_t(state)
    return Training(
        now_t=state.time.t,
        over=not is_live(state.machine),
        start_t=float("-inf") if attempt.adopted else attempt.start_t,
        first_t=first_t,
        last_t=attempt.beat_t,
        attempt=attempt.number,
        steps_are_shown=first_t is not None if attempt.beat_t is not None else state.ran is not None,
    )


def _first_step_t(state: JudgeState) -> float | None:
    """When the attempt made its first step: before the first line about one, if that shows a later step.

    None if that cannot be told: several steps, or an epoch, were made before the first line, and their pace is unknown;
    or the line stood in the log already when this supervisor began.
    """
    attempt = state.attempt
    if attempt.first_beat_t is None:
        return None
    if attempt.adopted_t is not None and attempt.first_beat_t >= attempt.adopted_t:
        return None
    first, seen = attempt.first_step, attempt.first_beat_step
    made = 1 if first is None else max(0, first - (attempt.resumed_at or 0))
    late = 0 if first is None or seen is None else max(0, seen - first)
    pace_s = state.progress.sec_per_step if first is not None else None
    pace_s = state.clock.typical_s if pace_s is None else pace_s
    if pace_s is None:
        return attempt.first_beat_t if made <= 1 and first is not None and not late else None
    return attempt.first_beat_t - (made + late) * pace_s
