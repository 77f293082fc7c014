"""When a trainer is asked for a checkpoint: before a stop that a person orders, and at danger signs.

``[run] save_signal`` or ``save_file`` says how. It is not asked if nothing would be gained or harm could be done: a
trainer that hangs cannot answer, one whose loss is NaN would save NaN, one that started over would write over the
checkpoints of the run.
"""

import msgspec

from ...model.decision import RequestSave
from ...model.fact import ActionWithheld
from ..knowledge import Knowledge
from ..resume import resume_point
from ..run_states import Running, Saving
from ..state import JudgeState
from ..step_builder import StepBuilder
from .operator import gate

replace = msgspec.structs.replace

SLACK_S = 1.0
"""A checkpoint written this long before the request still counts: clocks of file systems lag."""
TERMINATION = "termination"
"""Class of the incident (kind ``health``): the cloud announced the end of this machine."""
AGAIN_S = 1800.0
"""A danger sign that lasts or comes back asks for a checkpoint at most this often."""


def is_wanted(builder: StepBuilder) -> bool:
    """Whether the trainer can be asked now, and a checkpoint would save steps."""
    state = builder.state
    if not can_ask(state, builder.knowledge) or not isinstance(state.machine, Running):
        return False
    attempt = state.attempt
    if attempt.nan_t is not None or attempt.resume_verdict in {"open", "ignored"} or not attempt.place_is_sure:
        return False
    saved = _saved_position(state)
    return attempt.position is None or saved is None or saved < attempt.position


def can_ask(state: JudgeState, knowledge: Knowledge) -> bool:
    """Whether there is a way to ask this trainer for a checkpoint."""
    return knowledge.can_ask_to_save or state.beating


def request(builder: StepBuilder, reason: str, incident: int | None = None, *, stop: bool = False) -> int:
    """Ask for a checkpoint. Returns the id of the decision. ``stop``: it is ended after that."""
    builder.set(save_asked_t=builder.t)
    return builder.decide(RequestSave, reason, incident=incident, attempt=builder.state.attempt.number, stop=stop)


def on_danger(builder: StepBuilder, why: str, incident: int | None) -> None:
    """A sign that the machine may end the trainer soon: save what there is."""
    asked_t = builder.state.save_asked_t
    if not is_wanted(builder) or (asked_t is not None and builder.t - asked_t < AGAIN_S):
        return
    if gate.is_closed(builder):
        builder.set(save_asked_t=builder.t)
        gate.tell(
            builder,
            ActionWithheld(
                action="save",
                ask="ask the trainer for a checkpoint",
                would="asked the trainer for a checkpoint",
                why=why,
                incident=incident,
            ),
        )
        return
    request(builder, f"ask for a checkpoint: {why}", incident)


def came(state: JudgeState, saving: Saving) -> bool:
    """Whether a checkpoint that was asked for is complete, and none is being written."""
    since = saving.asked_t - SLACK_S
    new = [k for k in state.checkpoints.known if k.own and k.bad is None and k.t >= since]
    return bool(new) and all(k.complete for k in new)


def _saved_position(state: JudgeState) -> int | None:
    newest = resume_point.newest_verified(state.checkpoints)
    return None if newest is None else newest.position
