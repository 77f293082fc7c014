"""What was withheld from the run and waits for a person (gate.py)."""

from typing import Literal

import msgspec

from ....model.fact import ActionWithheld
from ....model.launch.elsewhere.job import JobCause
from ...run_states import RestartPlan
from ..failure_history import Cause


class Failed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure whose answer was withheld: the arguments of ``answer_failure`` beside the plan."""

    cause: Cause
    incident: int
    reason: str
    retryable: bool = True
    advice: tuple[str, ...] = ()
    settings_at_fault: bool = True
    confidence: float = 1.0
    job: JobCause | None = None


Follows = Literal["restart", "finish", "other"]


class Waiting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """It can still be done, as long as the run is in ``state``.

    ``follows``: what its order does: the next attempt begins, the process of a done training is ended, or (other) the
    attempt is ended for good. ``again_t``: run time at which the question is sent again; None = it is not.
    """

    action: ActionWithheld
    state: str
    plan: RestartPlan
    follows: Follows = "restart"
    failed: Failed | None = None
    again_t: float | None = None
