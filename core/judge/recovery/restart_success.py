"""When a restart counts as successful, and what the failure cost.

A step closes the incident of the failure; if the attempt was told to resume, the resume must have taken effect, too
(resume_check.py). A new checkpoint restores the restart budget.
"""

import msgspec

from ...model.fact import BudgetChanged
from ...model.text.plural import plural
from ..attempt_progress import AttemptProgress, lost_steps
from ..resume import known_checkpoint, resume_check
from ..resume.known_checkpoint import base_name
from ..resume.loss_agreement import stays_open
from ..resume.proof_words import name_of, resume_in_words, why_ignored
from ..run_states import RestartPlan
from ..state import JudgeState
from ..step_builder import StepBuilder
from . import budget, restart_stages
from .ending.ending_evidence import main_reading
from .resume_point import found_way

CHECKS = (
    "check that the script uses the path it is given, wants a file or a directory, and has no option against it",
    'a script that restores weights only needs a preset with resume = "weights" (docs/presets.md)',
    '[restart] if_resume_not_taken = "go_on" lets such an attempt start over',
)
"""What to look at if a resume did not take effect."""


def on_beat(builder: StepBuilder) -> None:
    """A step was made: check the resume, and close the incidents of earlier attempts if it took effect."""
    before = builder.state.attempt
    attempt, verdict = resume_check.check_resume(
        before,
        main_reading(builder.state).certain,
        unproven=found_way.is_unproven(builder),
        told=builder.knowledge.told.get(before.profile or ""),
    )
    builder.set(attempt=msgspec.structs.replace(attempt, resume_verdict=verdict))
    match verdict:
        case "open":
            return
        case "ignored" if attempt.told_resume is not False and _stops(builder):
            _stop(builder)
            return
        case "ignored":
            _warn(builder)
        case "unclear" if attempt.resumed_at:
            builder.note(
                f"whether the resume from {name_of(attempt.resume_from)} took effect cannot be seen in its output"
            )
        case "taken":
            found_way.note_taken(builder)
            builder.note(resume_in_words(builder.state.attempt))
        case _:
            pass
    _recover(builder)


def note_name_in_log(state: JudgeState, text: str) -> JudgeState:
    """The state after log text: note it if the text names the checkpoint that the trainer was told to resume from."""
    attempt = state.attempt
    if attempt.resume_from is None or "log" in attempt.named or base_name(attempt.resume_from) not in text:
        return state
    known = msgspec.structs.replace(attempt, named=(*attempt.named, "log"))
    return msgspec.structs.replace(state, attempt=known)


def _recover(builder: StepBuilder) -> None:
    state = builder.state
    attempt = state.attempt
    lost = lost_steps(state.failed_position, _resumed_at(state), attempt.stride)
    # If the printed step starts again, the run's own count is the one that continues.
    own = attempt.weights_only or attempt.elsewhere
    resumed_step = attempt.resumed_at if own else attempt.resume_step
    taken = attempt.resume_verdict == "taken"
    again = "" if lost is None else f", {plural(lost, 'step')} lost"
    ending = f"recovered: {_how(attempt, resumed_step)}{again}"
    for incident in state.incidents:
        if incident.kind not in {"crash", "hang", "resume"} or incident.attempt >= attempt.number:
            continue
        if stays_open(incident):
            continue
        builder.close_incident(
            incident.id,
            ending,
            lost_steps=lost,
            resumed_from=attempt.resume_from if taken else None,
            resumed_step=resumed_step if taken else None,
        )
        builder.notify("recovery", "recovered", ending, incident=incident.id)


def _how(attempt: AttemptProgress, step: int | None) -> str:
    """Where the attempt trains on, as far as its output shows it."""
    if attempt.resume_from is None or attempt.resume_verdict == "ignored":
        return "started over"
    name, at = name_of(attempt.resume_from), "" if step is None else f" at step {step}"
    if attempt.resume_verdict == "taken":
        return f"{'resumed by itself' if attempt.elsewhere else f'resumed from {name}'}{at}"
    if attempt.told_resume is False:
        return "started over"
    return f"it trains again; whether it resumed from {name} cannot be seen"


def _stops(builder: StepBuilder) -> bool:
    return builder.knowledge.settings.restart.if_resume_not_taken == "stop"


def _stop(builder: StepBuilder) -> None:
    """The attempt trains from the beginning although it was told to resume: end it before it overwrites checkpoints."""
    reason = f"resume did not take: {why_ignored(builder.state.attempt)}"
    number = builder.open_incident("resume", "started_over", reason)
    builder.notify("incident", "resume did not take", reason, incident=number)
    plan = RestartPlan(
        reason=f"{reason}; end it before it overwrites anything",
        incident=number,
        ending=reason,
        advice=(*found_way.advice(builder), *CHECKS),
    )
    restart_stages.stop(builder, "give_up", plan)


def _warn(builder: StepBuilder) -> None:
    attempt = builder.state.attempt
    why = why_ignored(builder.state.attempt)
    if attempt.told_resume is False:
        why = (
            f"{name_of(attempt.resume_from)} cannot be passed to the command (write {{resume}} where its path "
            f"belongs): {why}"
        )
    number = builder.open_incident("resume", "started_over", why, severity="warning")
    builder.notify("warning", "started over", why, incident=number)


def _resumed_at(state: JudgeState) -> int | None:
    attempt = state.attempt
    if attempt.resume_from is None or attempt.resume_verdict == "ignored":
        return 0
    return attempt.resumed_at if attempt.resume_verdict == "taken" or attempt.weights_only else None


def saved(builder: StepBuilder, known: known_checkpoint.KnownCheckpoint) -> None:
    """A complete checkpoint of this run came: if it is progress, the restart budget is restored."""
    before = builder.state.budget
    position = known.position if known.position is not None else known.step
    new = budget.saved(before, position, known.epochs_done)
    if new is before:
        return
    builder.set(budget=new, attempt=msgspec.structs.replace(builder.state.attempt, saved=True))
    if before.used:
        builder.fact(BudgetChanged(used=new.used, max=builder.knowledge.settings.restart.max_restarts))
