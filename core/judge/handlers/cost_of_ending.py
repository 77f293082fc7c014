"""What it costs to end an attempt that may be alive: the number that hang/cost.py weighs against waiting."""

from ..attempt_progress import knows_its_step
from ..findings import eta
from ..recovery import failure_history
from ..resume import resume_point
from ..state import JudgeState

NIGHT_S = 8 * 3600.0
"""What is left of a run whose end is unknown."""


def loss_s(state: JudgeState) -> float:
    """Return what ending the attempt costs, in seconds: the training since its newest checkpoint, and a start.

    Where an earlier attempt was ended for a hang at the same step, it is all that is left of the run: two hangs at one
    step give the run up, while a trainer that makes a long pause there by design goes on by itself.
    """
    attempt, newest = state.attempt, resume_point.newest_verified(state.checkpoints)
    reload_s = state.phase_times.start.longest_s
    if attempt.beat_t is None:
        return reload_s
    since_t = attempt.start_t if newest is None else max(attempt.start_t, newest.t)
    again_s = max(0.0, attempt.beat_t - since_t) + reload_s
    epochs = state.budget.epochs
    hung_here = failure_history.hung_at(state.history, attempt.position, epochs, attempt.stride)
    if not (knows_its_step(attempt) and hung_here):
        return again_s
    left_s = eta.eta_s(state.pace, state.progress)
    return max(again_s, NIGHT_S if left_s is None else left_s)
