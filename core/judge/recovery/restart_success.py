"""When a restart counts as successful, and what the failure cost.

A step closes the incident of the failure; if the attempt was told to resume, it is said whether the resume took
effect: by the printed count (resume_check.py), else by other evidence (resume_evidence.py). A count that begins anew
ends nothing: the resume point is copied aside, and the training goes on. A new checkpoint restores the restart budget.
"""

import msgspec

from ...model.decision import CopyAside
from ...model.fact import BudgetChanged
from ...model.observation import Outcome
from ...model.text.plural import plural
from ..attempt_progress import AttemptProgress, lost_steps
from ..resume import checkpoint_index, known_checkpoint
from ..resume.known_checkpoint import base_name
from ..resume.loss_agreement import stays_open
from ..resume.proof_words import VERIFIED, name_of, resume_in_words
from ..resume.resume_check import check_count
from ..resume.resume_evidence import Evidence, awaits_losses, judge, of_save, says_that_it_loads
from ..run_states import RestartPlan
from ..state import JudgeState
from ..step_builder import StepBuilder
from . import budget, restart_stages
from .ending.ending_evidence import main_reading
from .resume_point import found_way

replace = msgspec.structs.replace

COUNTS_ANEW = "counts_anew"
"""Class of the incident (kind *resume*) while nothing shows whether the resume was taken."""
CHECKS = (
    "check that the script uses the path it is given, wants a file or a directory, and has no option against it",
    'a script that restores weights only needs a preset with resume = "weights" (docs/presets.md)',
    '[restart] if_resume_not_taken = "go_on" lets such an attempt start over',
)
"""What to look at if a resume did not take effect."""


def on_beat(builder: StepBuilder) -> None:
    """A step was made: check the resume, and close the incidents of earlier attempts if it took effect."""
    reading = main_reading(builder.state).certain
    attempt, shows = check_count(builder.state.attempt, reading)
    first = shows == "anew" and not attempt.counts_anew
    if first:
        attempt = _counted_on(attempt)
    found = judge(attempt, reading) if shows in {"anew", "unclear"} else None
    if first and (found is None or not found.went_on):
        attempt = _put_aside(builder, attempt)
    if found is None and shows in {"anew", "unclear"} and awaits_losses(attempt, reading):
        shows = "open"
    verdict: str = "unclear" if shows == "anew" else shows
    if found is not None:
        verdict = "taken" if found.went_on else "ignored"
    builder.set(attempt=replace(attempt, resume_verdict=verdict))
    match verdict:
        case "open":
            return
        case "ignored" if found is not None and _ends(builder):
            _end(builder, found.why)
            return
        case "ignored" if found is not None:
            _warn(builder, f"resume did not take: {found.why}")
        case "unclear" if attempt.counts_anew:
            _warn(builder, _unproven(attempt))
        case "unclear" if attempt.resumed_at:
            builder.note(
                f"whether the resume from {name_of(attempt.resume_from)} took effect cannot be seen in its output"
            )
        case "taken" if found is not None:
            _proved(builder, found)
        case "taken":
            found_way.note_taken(builder)
            builder.note(resume_in_words(attempt), "" if attempt.elsewhere else "resume")
        case _:
            pass
    _recover(builder)


def _counted_on(attempt: AttemptProgress) -> AttemptProgress:
    """The attempt with its place counted on from the resume point, although the printed count began anew."""
    at = attempt.resumed_at or 0
    return replace(attempt, counts_anew=True, offset=at, position=None if attempt.step is None else at + attempt.step)


def _put_aside(builder: StepBuilder, attempt: AttemptProgress) -> AttemptProgress:
    """Copy the resume point out of the way of a trainer that may have begun anew, unless there is a copy."""
    known = checkpoint_index.find(builder.state.checkpoints, attempt.resume_from)
    kept = builder.state.found_resume.kept
    if known is None or known.kept is not None or (kept is not None and kept[0] == known.path):
        return attempt
    name = known_checkpoint.base_name(known.path)
    order = builder.decide(
        CopyAside,
        f"copy {name} aside: the trainer counts from the beginning and may write over it",
        paths=(known.path,),
    )
    return replace(attempt, aside=order)


def on_put_aside(builder: StepBuilder, outcome: Outcome) -> None:
    """The resume point was copied aside while the trainer runs, or could not be."""
    attempt = builder.state.attempt
    builder.set(attempt=replace(attempt, aside=None))
    name, folder = name_of(attempt.resume_from), str(outcome.data.get("folder") or "")
    if not outcome.ok:
        builder.note(f"{name} cannot be copied aside: {outcome.detail or 'no reason given'}")
        return
    if attempt.resume_from is not None:
        index = checkpoint_index.changed(builder.state.checkpoints, (attempt.resume_from,), kept=folder)
        builder.set(checkpoints=index)
    builder.note(f"{name} was copied to {folder or 'a folder of its own'}")


def _proved(builder: StepBuilder, found: Evidence) -> None:
    attempt = builder.state.attempt
    if found.by != "words":  # a script may load a file and not use it
        found_way.note_taken(builder)
    again = f"; its count begins anew, and counts on from step {attempt.resumed_at}" if attempt.counts_anew else ""
    builder.note(f"{VERIFIED}{found.why}{again}", "resume")
    for incident in builder.state.incidents:
        if incident.class_ == COUNTS_ANEW and incident.attempt == attempt.number:
            builder.close_incident(incident.id, found.why)


def note_name_in_log(state: JudgeState, text: str) -> JudgeState:
    """The state after log text: note it if the text names the checkpoint that the trainer was told to resume from."""
    attempt = state.attempt
    if attempt.resume_from is None or attempt.says_so or base_name(attempt.resume_from) not in text:
        return state
    named = attempt.named if "log" in attempt.named else (*attempt.named, "log")
    known = replace(attempt, named=named, says_so=says_that_it_loads(text, attempt.resume_from))
    return msgspec.structs.replace(state, attempt=known)


def _recover(builder: StepBuilder) -> None:
    state = builder.state
    attempt = state.attempt
    lost = lost_steps(state.failed_position, _resumed_at(state), attempt.stride)
    # If the printed step starts again, the run's own count is the one that continues.
    own = attempt.weights_only or attempt.elsewhere or attempt.counts_anew
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


def _ends(builder: StepBuilder) -> bool:
    """Whether an attempt that is known to train from the beginning is ended: it may write over a better checkpoint."""
    attempt = builder.state.attempt
    known = checkpoint_index.find(builder.state.checkpoints, attempt.resume_from)
    if builder.knowledge.settings.restart.if_resume_not_taken == "go_on" or attempt.told_resume is False:
        return False
    return known is not None and known.own and known_checkpoint.is_verified(known)


def _end(builder: StepBuilder, why: str) -> None:
    """The attempt trains from the beginning although it was told to resume: end it before it overwrites checkpoints."""
    reason = f"resume did not take: {why}"
    number = builder.open_incident("resume", "started_over", reason)
    builder.notify("incident", "resume did not take", reason, incident=number)
    plan = RestartPlan(
        reason=f"{reason}; end it before it overwrites anything",
        incident=number,
        ending=reason,
        advice=(*found_way.advice(builder), *CHECKS),
    )
    restart_stages.stop(builder, "give_up", plan)


def _unproven(attempt: AttemptProgress) -> str:
    counts = "neither its config nor its log names the file"
    if not attempt.weights_only:
        counts = f"told to resume at step {attempt.resumed_at}, the trainer counts from {attempt.first_step}"
    return f"whether {name_of(attempt.resume_from)} was restored is not known: {counts}, and nothing else shows it yet"


def _warn(builder: StepBuilder, why: str) -> None:
    attempt = builder.state.attempt
    if attempt.told_resume is False:
        name = name_of(attempt.resume_from)
        why = f"{name} cannot be passed to the command (write {{resume}} where its path belongs): {why}"
    known = attempt.resume_verdict == "ignored"
    number = builder.open_incident("resume", "started_over" if known else COUNTS_ANEW, why, severity="warning")
    title = "started over" if known else "the count began anew"
    builder.notify("warning", title, f"{why}; it trains on", incident=number)


def _resumed_at(state: JudgeState) -> int | None:
    attempt = state.attempt
    if attempt.resume_from is None or attempt.resume_verdict == "ignored":
        return 0
    return attempt.resumed_at if attempt.resume_verdict == "taken" or attempt.weights_only else None


def saved(builder: StepBuilder, known: known_checkpoint.KnownCheckpoint) -> None:
    """A complete checkpoint of this run came: if it is progress, the restart budget is restored.

    Its step may show that the resume of this attempt was taken.
    """
    attempt = builder.state.attempt
    if attempt.counts_anew and attempt.resume_verdict in {"open", "unclear"} and known.step is not None:
        found = of_save(attempt, known.step)
        if found is not None:
            builder.set(attempt=replace(attempt, resume_verdict="taken"))
            _proved(builder, found)
    before = builder.state.budget
    position = known.position if known.position is not None else known.step
    if position is not None and not builder.state.attempt.place_is_sure:
        position -= builder.state.attempt.resumed_at or 0  # else one that begins anew each time would be progress
    new = budget.saved(before, position, known.epochs_done)
    if new is before:
        return
    builder.set(budget=new, attempt=msgspec.structs.replace(builder.state.attempt, saved=True))
    if before.used:
        builder.fact(BudgetChanged(used=new.used, max=builder.knowledge.settings.restart.max_restarts))
