"""The save in progress, as files, log and stacks show it, and how long the saves of a run take (save_phase.py)."""

import msgspec

from ..hang import active_time, phase_times, save_phase
from ..hang.save_phase import SavePhase
from ..resume.known_checkpoint import KnownCheckpoint, base_name
from ..state import JudgeState
from ..step_builder import StepBuilder

replace = msgspec.structs.replace


def in_progress(state: JudgeState) -> str:
    """Return what shows a save that is not complete, as a clause; "" = nothing does."""
    attempt = state.attempt
    last_t = attempt.start_t if attempt.beat_t is None else attempt.beat_t
    newest = [known for known in state.checkpoints.known if known.own and known.t >= last_t - save_phase.LATE_S]
    unfinished = next((known for known in newest if _is_unfinished(known)), None)
    if unfinished is not None:
        return f"{base_name(unfinished.path)} is not complete"
    if attempt.beat_t is None or any(known.complete and known.t >= last_t - save_phase.SLACK_S for known in newest):
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
            builder.set(saving=replace(state.saving, begun_at=active_time.now(state.time)))
        return
    begun_at = state.clock.last if state.saving.begun_at is None else state.saving.begun_at
    took_s = max(0.0, active_time.now(state.time) - (builder.t - known.t) - begun_at)
    builder.set(
        saving=SavePhase(took_s=max(state.saving.took_s, took_s)),
        phase_times=phase_times.ended(state.phase_times, "save", took_s, 0.0),
    )
