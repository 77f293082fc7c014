"""The stop at ``[end] end_by``: saved and ended in time, whatever state the run is in."""

import msgspec

from ....model.why import Why
from ...knowledge import Knowledge
from ...run_machine import is_live
from ...run_states import EndedEarly, Finished, GivenUp, RestartPlan, Starting, Stopped, Stopping
from ...state import JudgeState
from ...step_builder import StepBuilder
from .. import restart_stages
from ..operator import gate
from . import at_end

BY = "end_by"
"""Who ordered the stop."""


def is_due(state: JudgeState, knowledge: Knowledge) -> bool:
    """Whether the stop must begin now. A launch is not cut: it is stopped as soon as its trainer runs."""
    if state.ends is None or state.time.t < state.ends.t - at_end.stop_takes_s(knowledge, state):
        return False
    return not (isinstance(state.machine, Starting) and not state.machine.launched)


def end(builder: StepBuilder) -> None:
    """Save and stop; a run that is held stays stopped, and one that ends already is not started again."""
    machine, ends = builder.state.machine, builder.state.ends
    assert ends is not None
    builder.set(ends=None)
    reason = f"it ends by {ends.said}"
    if isinstance(machine, Finished | EndedEarly | GivenUp):
        return
    if gate.is_closed(builder):
        builder.note(f"{reason}; nothing is ended: {gate.act_words(builder)}")
        builder.notify("withheld", "would have ended it", f"{reason}: `{builder.knowledge.typed('stop')}` does")
    elif isinstance(machine, Stopping):
        if machine.then == "restart":
            late = msgspec.structs.replace(machine, then="end_by", by=BY)
            builder.move("command", late, f"{reason}: no restart after this")
    elif is_live(machine):
        restart_stages.stop(builder, "end_by", RestartPlan(reason=reason, by=BY), by=BY)
    else:
        if not isinstance(machine, Stopped):
            builder.move("hold", Stopped(), f"{reason}; held until resume or restart", Why("ordered"))
        at_end.over(builder)
