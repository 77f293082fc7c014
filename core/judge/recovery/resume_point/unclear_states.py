"""What follows from state that is not understood: it is told at the first save, and no attempt begins anew over it.

With nothing else to resume from, the run is held and people are asked; ``[restart] if_not_understood =
"copy_and_restart"`` copies it aside first and begins anew then.
"""

import msgspec

from ....model.checkpoints.checkpoint import Verdict
from ....model.observation import Outcome
from ....model.why import Why
from ...knowledge import Knowledge
from ...resume import checkpoint_index, known_checkpoint, resume_point, unclear_state
from ...resume.known_checkpoint import KnownCheckpoint, base_name
from ...run_states import Copying, RestartPlan, Stopped
from ...state import JudgeState
from ...step_builder import StepBuilder
from ..attempts import launch_after_delay, wait_for_room_somewhere
from . import found_way, kept_copies, unclear_output
from .training_times import training_of

replace = msgspec.structs.replace

CLASS = "not_understood"
"""Class of the incident (kind ``checkpoint``)."""
TELL_AFTER_S = 3.0
"""A checkpoint that is understood may follow within one save."""
SHOWN = 3
_VERDICTS: dict[str, Verdict] = {"torn": "torn", "corrupt": "corrupt", "opaque": "opaque"}


def recognise(builder: StepBuilder) -> None:
    """Record which entries count as state of this training now."""
    state = builder.state
    found = unclear_state.recognised(state.checkpoints, training_of(state))
    if not found:
        return
    since = state.unclear_from if state.unclear_from is not None else builder.t
    marked = checkpoint_index.changed(state.checkpoints, {k.path for k in found}, is_state=True)
    builder.set(checkpoints=marked, unclear_from=since)
    for known in found:
        assert known.unclear is not None
        verdict = _VERDICTS.get(known.unclear[0], "opaque")
        if not known.complete:  # else it is in the journal already
            builder.fact(known_checkpoint.as_fact(known, builder.knowledge.created_wall, verdict))


def tell(builder: StepBuilder) -> None:
    """Notify people once that what the trainer saves is not understood, while it can still be changed."""
    state = builder.state
    found = unclear_state.states(state.checkpoints)
    since = builder.t if state.unclear_from is None else state.unclear_from
    if not found or f"checkpoint:{CLASS}" in state.warned or builder.t - since < TELL_AFTER_S:
        return
    if unclear_state.has_understood(state.checkpoints):
        return
    newest = found[-1]
    known = newest.unclear[1] if newest.unclear is not None else "no reason given"
    takes = _can_be_tried(state, builder.knowledge)
    if takes:
        follows = "after a failure the trainer is given it to resume from, without a verification"
    elif builder.knowledge.settings.restart.if_not_understood == "copy_and_restart":
        follows = "after a failure it is copied aside, and the run begins anew"
    else:
        first = "a further save like it" if builder.knowledge.resume_support.forms else "{resume} in the command"
        follows = (
            "after a failure the run is held, so that no attempt begins anew over it "
            f"(what changes that: {first}, or [restart] if_not_understood)"
        )
    reason = f"{base_name(newest.path)} is not understood: {known}; {follows}"
    ending = "noted" if takes else None
    builder.warn("checkpoint", CLASS, reason, title=f"not understood: {base_name(newest.path)}", ending=ending)


def close(builder: StepBuilder) -> None:
    """A checkpoint came that is understood."""
    for incident in [i for i in builder.state.incidents if i.class_ == CLASS]:
        builder.close_incident(incident.id, "a checkpoint came that is understood")


def why_not_begun_anew(state: JudgeState, knowledge: Knowledge) -> str | None:
    """Why a start without a named checkpoint would be held, as a sentence; None if it would not."""
    asked = knowledge.settings.restart.if_not_understood == "copy_and_restart"
    if asked or _can_be_tried(state, knowledge, settled=False):  # the folder is listed again before a launch
        return None
    found = in_the_way(state, knowledge)
    if not found or knowledge.preset.resume == "none":
        return None
    how = f"`{knowledge.typed('resume', '--from', found[-1].path)}` gives it to the trainer"
    return f"{why_held(found, knowledge)}; {how}"


def in_the_way(state: JudgeState, knowledge: Knowledge) -> tuple[KnownCheckpoint, ...]:
    """State that a start from the beginning could write over, although nothing can be resumed from; oldest first.

    What is not understood, and what is complete but of a form that the command cannot be given. Empty if the settings
    leave the choice to a trainer that finds its checkpoints by itself.
    """
    support = knowledge.resume_support
    if not support.forms and knowledge.settings.restart.if_not_told == "go_on":
        return ()
    unclear = unclear_state.states(state.checkpoints)
    return unclear or unclear_state.not_to_be_given(state.checkpoints, support)


def _can_be_tried(state: JudgeState, knowledge: Knowledge, *, settled: bool = True) -> bool:
    support = knowledge.resume_support
    if resume_point.newest_verified(state.checkpoints, support) is not None:
        return True
    return unclear_state.to_resume_from(state.checkpoints, support, settled=settled) is not None


def why_held(found: tuple[KnownCheckpoint, ...], knowledge: Knowledge) -> str:
    """Why no attempt begins anew, as a sentence."""
    newest = found[-1]
    names = ", ".join(base_name(k.path) for k in found[-SHOWN:])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    known = newest.unclear[1] if newest.unclear is not None else "complete"
    objection = knowledge.resume_support.objection(newest.shape, newest.holds)
    cannot = f"; {objection}" if objection is not None else ""
    return f"{names}{more} cannot be resumed from ({known}){cannot}; a start would begin anew and may write over it"


def hold_or_copy(builder: StepBuilder, plan: RestartPlan, found: tuple[KnownCheckpoint, ...]) -> None:
    """Nothing can be resumed from, and state is there: ask people, or copy it aside and begin anew."""
    if builder.knowledge.settings.restart.if_not_understood == "copy_and_restart":
        what = f"{kept_copies.names(found)} aside before the run begins anew"
        kept_copies.order_copies(builder, plan, what, (k.path for k in found))
        return
    _hold(builder, plan, why_held(found, builder.knowledge), found[-1])


def _hold(builder: StepBuilder, plan: RestartPlan, reason: str, newest: KnownCheckpoint) -> None:
    has_place = bool(builder.knowledge.resume_support.forms)
    first = "" if has_place else "write {resume} into the command where a path belongs, and start again; then "
    given = builder.knowledge.typed("resume", "--from", newest.path)
    lines = (
        reason,
        f"{first}`{given}` gives it to the trainer, which alone can tell if it is whole",
        f"`{builder.knowledge.typed('resume', '--fresh')}` begins anew, and may write over it",
        '[restart] if_not_understood = "copy_and_restart" copies such state aside and begins anew by itself',
    )
    builder.close_incident(plan.incident, "held: nothing can be resumed from, and what is there is not understood")
    open_ = next((i.id for i in builder.state.incidents if i.class_ == CLASS), None)
    number = open_ if open_ is not None else builder.open_incident("checkpoint", CLASS, reason, severity="danger")
    builder.move("hold", Stopped(), reason, Why("not_understood", number))
    builder.notify("warning", "held: what is saved is not understood", "\n".join(lines), incident=number)
    for line in lines[1:]:
        builder.note(line)


def on_copied(builder: StepBuilder, machine: Copying, outcome: Outcome) -> None:
    """The copies are made: begin anew. Or they cannot be made: wait for room, or hold."""
    plan = machine.plan
    if plan.path is not None:
        found_way.on_kept(builder, machine, outcome)
        return
    if machine.damaged:
        kept_copies.on_kept(builder, machine, outcome)
        return
    if not outcome.ok and outcome.data.get("no_room") is True:
        why = f"what the run saved cannot be copied aside: {outcome.detail or 'no reason given'}"
        wait_for_room_somewhere(builder, plan, why)
        return
    found = in_the_way(builder.state, builder.knowledge)
    if not outcome.ok and found:
        why = f"{why_held(found, builder.knowledge)}; it was not copied aside: {outcome.detail or 'no reason given'}"
        _hold(builder, plan, why, found[-1])
        return
    seen = unclear_output.found(builder)
    if not outcome.ok and seen:
        but = f"; it was not copied aside: {outcome.detail or 'no reason given'}"
        unclear_output.hold(builder, plan, seen, but)
        return
    folder = str(outcome.data.get("folder") or "")
    kept_copies.mark(builder, kept_copies.at_risk(builder, plan.before_t), folder)
    said = f"what is not understood was copied to {folder}" if folder else "what is not understood was copied aside"
    builder.note(said)
    builder.notify("warning", "copied aside, and begun anew", f"{said}; the run begins anew", incident=plan.incident)
    for incident in [i for i in builder.state.incidents if i.class_ == CLASS]:
        builder.close_incident(incident.id, said)
    launch_after_delay(builder, replace(plan, path=None, step=None, fresh=True))
