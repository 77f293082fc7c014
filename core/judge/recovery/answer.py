"""What follows a failure: a restart as planned, or giving up with all that a person needs.

One order for crashes and hangs: budget spent → give up; a rung that the ramp climbed to → one back; a remedy that may
be applied → restart with it; no use → give up; the same place again → give up; else restart as it was.
"""

import msgspec

from ..attempt_progress import knows_its_step
from ..run_states import RestartPlan
from ..step_builder import Draft
from . import budget, fallback, ramp, restart_stages, treatment
from . import failure_history as cause
from .failure_history import Cause

replace = msgspec.structs.replace


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An end to be answered. ``curable``: starting again may help. ``advice``: what to look at, from the catalogue."""

    cause: Cause
    incident: int
    reason: str
    curable: bool = True
    advice: tuple[str, ...] = ()
    before_t: float | None = None


def answer(draft: Draft, failure: Failure) -> RestartPlan:
    """The plan of what follows; one with an ``ending`` is a plan to give up. Charges the budget for a restart."""
    fallback.remember(draft)
    state = draft.state
    seen = state.trail
    fits = fallback.applies(draft, failure.cause.class_)
    if fits and failure.cause.kind == "crash" and failure.cause.class_ not in ramp.OF_THE_RUNG:
        return _back(draft, failure)
    draft.set(trail=cause.with_cause(seen, failure.cause))
    name = f"{'a hang' if failure.cause.kind == 'hang' else 'crash'} ({failure.cause.class_})"
    plan = RestartPlan(reason=f"restart after {name}", incident=failure.incident, before_t=failure.before_t)
    key = failure.cause.class_ if failure.cause.kind == "crash" else f"hang:{failure.cause.class_}"
    chosen, waiting = treatment.choose(draft, key, cause.count(seen, failure.cause.class_))
    spent = budget.is_spent(state.budget, draft.knowledge.settings.restart)
    lower = _step_back(draft, failure, last_resort=chosen is None and not failure.curable) if not spent else None
    if lower is not None:
        return replace(restart_stages.charge(draft, plan), reason=f"{plan.reason}, back to {lower}", delay_s=0.0)
    if chosen is not None and not spent:
        treatment.take(draft, chosen, key, failure.incident)
        treatment.propose(draft, waiting, key, failure.incident)
        # What was changed makes it another experiment: nothing is gained by waiting.
        return replace(restart_stages.charge(draft, plan), reason=f"{plan.reason}, {chosen.words}", delay_s=0.0)
    outside = _wait_outside(draft, failure, plan)
    if outside is not None:
        return outside
    if chosen is not None:
        waiting = (chosen, *waiting)
    if not fits:
        treatment.propose(draft, waiting, key, failure.incident)
    if spent and (failure.curable or chosen is not None):
        ending = restart_stages.spent_reason(draft)
    elif not failure.curable:
        ending = f"{failure.cause.class_} does not go away by starting again: {failure.reason}"
    elif cause.repeats(seen, failure.cause, state.attempt.stride) and knows_its_step(state.attempt):
        ending = (
            f"{failure.cause.kind} ({failure.cause.class_}) at step {failure.cause.position} again: "
            "the same cause at the same step is no accident, and starting again would run into it again"
        )
    else:
        return restart_stages.charge(draft, plan)
    if fits:
        return _back(draft, failure)
    reason = f"{name}, and no restart follows"
    told = (*root_cause(draft, failure.advice), *treatment.advice(waiting))
    return replace(plan, reason=reason, ending=ending, advice=told)


def _back(draft: Draft, failure: Failure) -> RestartPlan:
    """To the settings that ran, at once and uncharged. An attempt that was to begin anew wrote nothing: so does this.

    What its plan asked for holds, then: the newest sound checkpoint of the branch is where it was to go on from.
    """
    words = fallback.go_back(draft, failure.cause.class_, failure.reason, failure.incident)
    fresh = draft.state.attempt.resume_from is None
    return RestartPlan(reason=words, incident=failure.incident, before_t=failure.before_t, fresh=fresh)


def _step_back(draft: Draft, failure: Failure, *, last_resort: bool) -> str | None:
    """The rung that the ramp takes the run back to; None = it stays where it is."""
    return ramp.trouble(draft, failure.cause.class_, failure.reason, failure.incident, last_resort=last_resort)


def _wait_outside(draft: Draft, failure: Failure, plan: RestartPlan) -> RestartPlan | None:
    """What the world has to mend, and may: no network, no room on the disk. Waiting for it costs no budget."""
    state, settings = draft.state, draft.knowledge.settings
    match failure.cause.class_:
        case "network_error":
            waits = settings.restart.network_wait_s
            nth = cause.in_a_row(state.trail, "network_error")
            return replace(plan, delay_s=waits[min(nth, len(waits)) - 1])
        case "disk_full" if state.disk_free_bytes is not None:
            newest = max((k.size_bytes or 0.0 for k in state.shelf.known if k.own and k.complete), default=0.0)
            need = settings.health.disk_danger_bytes + newest
            if state.disk_free_bytes < need:
                return replace(plan, need_bytes=need)
            if budget.is_spent(state.budget, settings.restart):
                return None
            draft.note(
                f"{state.disk_free_bytes / restart_stages.GB:.1f} GB are free where it saves: "
                "either the failed save made room again, or another disk or a quota is full"
            )
            return restart_stages.charge(draft, plan)
        case _:
            return None


def root_cause(draft: Draft, advice: tuple[str, ...]) -> tuple[str, ...]:
    """Where to look (requirement A7: hardware? driver? config?), a sentence each."""
    state = draft.state
    told = [f"what ended it: {cause.say(state.trail)}"]
    kernel = [f.text for f in state.diagnosis.findings if f.line == 0]
    hot = [i.reason for i in state.incidents if i.kind in {"health", "disk", "stall"}]
    if kernel:
        told.append(f"hardware or driver: the kernel said: {'; '.join(kernel[:2])}")
    if hot:
        told.append(f"still open: {'; '.join(hot[:3])}")
    told += [f"try: {sentence}" for sentence in advice[:4]]
    told.append("evidence: `trainwatch events`, and `trainwatch report` for all of it in one file")
    return tuple(told)
