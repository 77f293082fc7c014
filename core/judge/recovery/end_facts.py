"""What was so when an attempt ended, beside its log: the diagnosis counts it, and the journal keeps it."""

from ...model.attempt import EndFacts
from ..state import JudgeState


def end_facts(state: JudgeState) -> EndFacts:
    low = state.disk_low
    return EndFacts(
        disk_free_bytes=state.disk_free_bytes if low is None else low.free_bytes,
        disk_free_inodes=state.disk_free_inodes,
        swap_used=state.swap_used,
        oom_kills=new_oom_kills(state),
        checkpoint=_resumed_from(state),
        kernel=state.diagnosis.kernel,
    )


def new_oom_kills(state: JudgeState) -> int | None:
    """Processes that the kernel killed for memory during the attempt; None = unknown."""
    if state.oom_kills is None or state.oom_kills_before is None:
        return None
    return state.oom_kills - state.oom_kills_before


def _resumed_from(state: JudgeState) -> str | None:
    """The verdict on the checkpoint that the attempt resumed from; None = from none, or unknown."""
    path = state.attempt.resume_from
    known = None if path is None else next((each for each in state.checkpoints.known if each.path == path), None)
    if known is None:
        return None
    if known.damage is not None:
        return known.damage[0]
    return "complete" if known.complete and known.bad is None else None
