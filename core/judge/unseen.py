"""Time in which nothing was seen of the run, and how much of it the training used, by the steps that it made in it.

Sources: a laptop that slept (the training stood still), a supervisor that was stopped or died (the training went on).
Known limits: without a known pace, or without steps in the log, it stays unknown; a pause that the run makes by design
in that time (an evaluation) is told as time without training.
"""

import msgspec

from ..model.fact import NothingSeen
from .findings.eta import pace_of
from .state import JudgeState, Unseen
from .step_builder import StepBuilder

SETTLE_S = 10.0
"""The log of the time is read by then, at once. Source: it is read 100 MB a second, and polled each second."""
SLACK = 0.1
"""Of the time: so much less counts as all of it, as a pace is a mean."""
SLACK_STEPS = 2.0
"""And so many steps: those under way at its two ends."""


def begin(state: JudgeState, lasted_s: float, *, adopted: bool) -> JudgeState:
    """Remember a time that ends now, and how far the run was before. One that ended a moment ago is part of it.

    ``adopted``: a new supervisor begins, whose state of the judge is older than the last record.
    """
    before = state.unseen
    if before is not None:
        return msgspec.structs.replace(state, unseen=msgspec.structs.replace(before, until_t=state.time.t))
    since_t, attempt = state.time.t - lasted_s, state.attempt
    return msgspec.structs.replace(
        state,
        unseen=Unseen(
            since_t=since_t,
            known_t=since_t if attempt.beat_t is None or not adopted else min(since_t, attempt.beat_t),
            until_t=state.time.t,
            position=attempt.position,
            step_s=pace_of(state.pace) or state.clock.step_s,
        ),
    )


def is_due(state: JudgeState) -> bool:
    """Whether the steps of the time were read by now."""
    return state.unseen is not None and state.time.t >= state.unseen.until_t + SETTLE_S


def tell(builder: StepBuilder) -> None:
    """Write down how much of the time the training used; nothing if there was none."""
    unseen = builder.state.unseen
    if unseen is not None:
        trained_s = _trained_s(unseen, builder.state.attempt.position, builder.t)
        builder.set(unseen=None)
        builder.fact(NothingSeen(since_t=unseen.since_t, until_t=unseen.until_t, trained_s=trained_s))


def _trained_s(unseen: Unseen, position: int | None, t: float) -> float | None:
    if unseen.position is None or position is None or not unseen.step_s:
        return None
    lasted_s = unseen.until_t - unseen.since_t
    watched_s = (unseen.since_t - unseen.known_t) + (t - unseen.until_t)
    made_s = (position - unseen.position) * unseen.step_s - watched_s
    if lasted_s - made_s <= SLACK * lasted_s + SLACK_STEPS * unseen.step_s:
        return lasted_s
    if unseen.known_t < unseen.since_t and made_s < -(SLACK * watched_s + SLACK_STEPS * unseen.step_s):
        return None  # it did not train all the time before either, which that older state does not know
    return max(0.0, made_s)
