"""One step back from a remedy for GPU memory, after a number of good checkpoints (``[remedies] step_back_after``).

What used the memory may be gone: another program on the GPU, a fragmented allocator, one long sample. The last such
remedy is taken back once, at a checkpoint, so that little is lost if the memory is short again; then the remedy comes
back as after any failure and stays. Never under WSL2, where running out of memory may end the driver.
"""

import msgspec

from ....model.shipped.remedy import AppliedRemedy
from ...run_states import RestartPlan, Running
from ...step_builder import StepBuilder
from .. import restart_stages
from ..operator import gate
from . import remedy_choice

MEMORY = "cuda_oom"


def on_saved(builder: StepBuilder) -> None:
    """A complete checkpoint of this run came: count it, and take the last remedy back if there are enough."""
    state, wanted = builder.state, builder.knowledge.settings.remedies.step_back_after
    if not wanted or not state.applied or "wsl2" in builder.knowledge.traits:
        return
    back = state.step_back
    fresh = back.applied != len(state.applied)
    back = msgspec.structs.replace(back, applied=len(state.applied), saves=1 if fresh else back.saves + 1)
    builder.set(step_back=back)
    last = _last_for_memory(builder)
    settled = not state.incidents and state.profile_pending is None and isinstance(state.machine, Running)
    if last is None or back.saves < wanted or not settled or gate.is_closed(builder):
        return
    kept = tuple(remedy for remedy in state.applied if remedy is not last)
    why = f"{back.saves} good checkpoints since {last.name}: one step back, once"
    builder.set(step_back=msgspec.structs.replace(back, saves=0, applied=len(kept), tried=(*back.tried, last.name)))
    remedy_choice.restore(builder, kept, why, None)
    restart_stages.stop(builder, "restart", RestartPlan(reason=why))


def _last_for_memory(builder: StepBuilder) -> AppliedRemedy | None:
    """The last remedy for GPU memory that changes the trainer's settings and was not taken back before."""
    rows = {row.name for row in builder.knowledge.remedies if MEMORY in row.failures}
    tried = builder.state.step_back.tried
    found = (
        remedy
        for remedy in reversed(builder.state.applied)
        if remedy.name in rows and any(change.where != "env" for change in remedy.changes)
    )
    last = next(found, None)
    return None if last is None or last.name in tried else last
