"""A step after a restart, a checkpoint after a failure: what proves that the trouble is over, and what it cost."""

import msgspec

from ..model.fact import BudgetChanged
from . import budget, resume_point
from .attempt_now import lost_steps, started_over
from .draft import Draft
from .resume_point import base_name
from .state import JudgeState


def prove_life(draft: Draft) -> None:
    """The first step of an attempt: what went wrong before is over."""
    state = draft.state
    attempt = state.attempt
    resumed_at = _resumed_at(state)
    _doubt_resume(draft)
    for incident in state.incidents:
        if incident.kind not in {"crash", "hang", "resume"} or incident.attempt >= attempt.number:
            continue
        lost = lost_steps(state.failed_position, resumed_at, attempt.stride)
        resumed = attempt.resume_from is not None and not started_over(attempt)
        where = f"resumed from {base_name(attempt.resume_from)}" if resumed and attempt.resume_from else "started over"
        at = f" at step {attempt.resume_step}" if resumed and attempt.resume_step is not None else ""
        cost = f", {lost} steps lost" if lost is not None else ""
        ending = f"recovered: {where}{at}{cost}"
        draft.close_incident(
            incident.id,
            ending,
            lost_steps=lost,
            resumed_from=attempt.resume_from,
            resumed_step=attempt.resume_step,
        )
        draft.notify("recovery", "recovered", ending, incident=incident.id)


def _doubt_resume(draft: Draft) -> None:
    """Say so when the trainer counts as if it had not resumed at all."""
    attempt = draft.state.attempt
    if not started_over(attempt):
        return
    reason = f"told to resume at step {attempt.resume_position}, but it counts from {attempt.first_step}: started over?"
    number = draft.open_incident("resume", "started_over", reason, severity="warning")
    draft.notify("warning", "resume ignored?", reason, incident=number)


def _resumed_at(state: JudgeState) -> int | None:
    attempt = state.attempt
    if attempt.resume_from is None or started_over(attempt):
        return 0
    return attempt.resume_position if attempt.resume_position is not None else attempt.resume_step


def saved(draft: Draft, known: resume_point.Known) -> None:
    """A complete checkpoint of this run came: progress, so the restarts before it are forgiven."""
    before = draft.state.budget
    position = known.position if known.position is not None else known.step
    new, _ = budget.saved(before, position)
    if new is before:
        return
    draft.set(budget=new, attempt=msgspec.structs.replace(draft.state.attempt, saved=True))
    if before.used:
        draft.fact(BudgetChanged(used=new.used, max=draft.knowledge.settings.restart.max_restarts))
