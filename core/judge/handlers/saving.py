"""The save in progress, as files, log and stacks show it, and how long the saves of a run take (deadlines.py)."""

import msgspec

from .. import memory
from ..attempt_progress import knows_its_step
from ..findings import pace
from ..hang import deadlines, phase_times
from ..hang.deadlines import SavePhase
from ..resume import resume_point
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..state import JudgeState, StepBuilder

# What it costs to end an attempt that may be alive: the number that hang/rules.py weighs against waiting.

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
    hung_here = memory.hung_at(state.history, attempt.position, epochs, attempt.stride)
    if not (knows_its_step(attempt) and hung_here):
        return again_s
    left_s = pace.eta_s(state.pace, state.progress)
    return max(again_s, NIGHT_S if left_s is None else left_s)


replace = msgspec.structs.replace


def in_progress(state: JudgeState) -> str:
    """Return what shows a save that is not complete, as a clause; "" = nothing does."""
    attempt = state.attempt
    last_t = attempt.start_t if attempt.beat_t is None else attempt.beat_t
    newest = [known for known in state.checkpoints.known if known.own and known.t >= last_t - deadlines.LATE_S]
    unfinished = next((known for known in newest if _is_unfinished(known)), None)
    if unfinished is not None:
        return f"{base_name(unfinished.path)} is not complete"
    if attempt.beat_t is None or any(known.complete and known.t >= last_t - deadlines.SLACK_S for known in newest):
        return ""
    if state.log_activity.phase == "save" and state.log_activity.trusted:
        return "the log announced it"
    return f"the stack shows {state.saving.frame}" if state.saving.frame else ""


def _is_unfinished(known: KnownCheckpoint) -> bool:
    """Whether it is being written, or what is written last is missing."""
    if known.complete or known.unknown_make:
        return False
    torn = known.damage is not None and known.damage[0] == "torn"
    return torn or known.unfinished or (known.damage is None and known.unclear is None)


def on_file(builder: StepBuilder, known: KnownCheckpoint) -> None:
    """Take a checkpoint of this run that changed."""
    state = builder.state
    if not known.complete:
        if state.saving.begun_at is None and _is_unfinished(known):
            builder.set(saving=replace(state.saving, begun_at=builder.now))
        return
    begun_at = state.clock.last if state.saving.begun_at is None else state.saving.begun_at
    took_s = max(0.0, builder.now - (builder.t - known.t) - begun_at)
    builder.set(
        saving=SavePhase(took_s=max(state.saving.took_s, took_s)),
        phase_times=phase_times.ended(state.phase_times, "save", took_s, 0.0),
    )
