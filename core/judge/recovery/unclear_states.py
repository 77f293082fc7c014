"""What follows from state that is not understood: it is told at the first save, and no attempt begins anew over it.

With nothing else to resume from, the run is held and people are asked; ``[restart] if_not_understood =
"copy_and_restart"`` copies it aside first and begins anew then.
"""

from collections.abc import Iterable

import msgspec

from ...model.checkpoint import Verdict
from ...model.decision import CopyAside
from ...model.observation import Outcome
from ...model.output_place import is_below
from ...model.progress import Why
from ..knowledge import Knowledge
from ..memory import Cause
from ..resume import checkpoint_index, output_folders, resume_point
from ..resume import checkpoint_index as known_checkpoint
from ..resume import output_folders as unclear_state
from ..resume import resume_point as refused_option
from ..resume.checkpoint_index import KnownCheckpoint, age_of, base_name, is_verified
from ..resume.output_folders import Sighting, Training
from ..resume.resume_point import speaks_against
from ..run_states import Copying, RestartPlan, Stopped, is_live
from ..state import JudgeState, StepBuilder
from .attempts import launch_after_delay, wait_for_room_somewhere

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
        what = f"{copied_names(found)} aside before the run begins anew"
        order_copies(builder, plan, what, (k.path for k in found))
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
        on_found_way_kept(builder, machine, outcome)
        return
    if machine.damaged:
        on_kept(builder, machine, outcome)
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
    seen = found_outputs(builder)
    if not outcome.ok and seen:
        but = f"; it was not copied aside: {outcome.detail or 'no reason given'}"
        hold(builder, plan, seen, but)
        return
    folder = str(outcome.data.get("folder") or "")
    mark(builder, at_risk(builder, plan.before_t), folder)
    said = f"what is not understood was copied to {folder}" if folder else "what is not understood was copied aside"
    builder.note(said)
    builder.notify("warning", "copied aside, and begun anew", f"{said}; the run begins anew", incident=plan.incident)
    for incident in [i for i in builder.state.incidents if i.class_ == CLASS]:
        builder.close_incident(incident.id, said)
    launch_after_delay(builder, replace(plan, path=None, step=None, fresh=True))


# A checkpoint that may be of this run, which cannot be told: nothing begins anew over it.
#
# It lies in a folder that is not known as the run's own, or in one that is, with times that do not tell whether it
# stood there before. Sources: a script saved to a folder that nothing names and was killed at once; a checkpoint that
# was copied in with the modification time of its original.

UNSURE = "unsure_output"
"""Class of the incident (kind ``checkpoint``) of a checkpoint that may be the run's, while it trains."""

UNKNOWN_ORIGIN = "its modification time is older than the run, but it was changed or copied there since"


def found_outputs(builder: StepBuilder) -> tuple[Sighting, ...]:
    """Such checkpoints, oldest first. None for a trainer that finds its own."""
    if _finds_its_own(builder):
        return ()
    return (*_unsure(builder), *map(_sighting, resume_point.of_unknown_origin(builder.state.checkpoints)))


def _finds_its_own(builder: StepBuilder) -> bool:
    support, settings = builder.knowledge.resume_support, builder.knowledge.settings.restart
    return support.by_itself or (not support.forms and settings.if_not_told == "go_on")


def _unsure(builder: StepBuilder) -> tuple[Sighting, ...]:
    return output_folders.unclear(builder.state.outputs, training_of(builder.state), builder.knowledge.output_dir)


def tell_output(builder: StepBuilder) -> None:
    """Notify people once of what may be the run's."""
    seen = _unsure(builder)
    if not seen:
        close_output(builder, "another process saves there")
    if not seen or any(i.class_ == UNSURE for i in builder.state.incidents):
        return
    follows = (
        "a crash starts it again, and it resumes by itself"
        if _finds_its_own(builder)
        else "it is never resumed from, and a crash holds the run"
    )
    reason = f"{_names(seen)} in {seen[-1].folder} may be of this run, which is not known ({seen[-1].evidence})"
    builder.warn(
        "checkpoint",
        UNSURE,
        reason,
        title="it is not known where the run saves",
        explanation=f"{follows}; --output-dir names the folder that the trainer saves to",
    )


def close_output(builder: StepBuilder, why: str = "it is known where the run saves") -> None:
    """Nothing unsure is left."""
    for incident in [i for i in builder.state.incidents if i.class_ == UNSURE]:
        builder.close_incident(incident.id, why)


def _sighting(known: KnownCheckpoint) -> Sighting:
    folder = known.path.rstrip("/").rpartition("/")[0]
    return Sighting(folder=folder, path=known.path, t=known.t, evidence=UNKNOWN_ORIGIN)


def hold_or_copy_output(builder: StepBuilder, plan: RestartPlan, seen: tuple[Sighting, ...]) -> None:
    """Ask people, or copy it aside and begin anew, as the settings say. What may be of another run is not copied."""
    known = {k.path for k in builder.state.checkpoints.known}
    if (
        all(s.path in known for s in seen)
        and builder.knowledge.settings.restart.if_not_understood == "copy_and_restart"
    ):
        what = f"{_names(seen)} aside before the run begins anew"
        order_copies(builder, plan, what, (s.path for s in seen))
        return
    hold(builder, plan, seen)


def hold(builder: StepBuilder, plan: RestartPlan, seen: tuple[Sighting, ...], but: str = "") -> None:
    """Hold the run. ``but``: what was attempted first."""
    folders = " and ".join(dict.fromkeys(s.folder for s in seen))
    where = f"{_names(seen)} in {folders} may be of this run"
    reason = f"{where}: {seen[-1].evidence}; a start would begin anew and may write over it{but}"
    lines = (
        reason,
        f"`{builder.knowledge.typed('resume', '--from', 'CHECKPOINT')}` goes on from one that is of this run",
        f"`{builder.knowledge.typed('resume', '--fresh')}` begins anew, if none is",
        "--output-dir names the folder that the trainer saves to, so that no search is needed",
        '[restart] if_not_understood = "copy_and_restart" copies such files aside and begins anew by itself',
    )
    close_output(builder)
    builder.close_incident(plan.incident, "held: it is not known whether the run saved a checkpoint")
    number = builder.open_incident("checkpoint", CLASS, reason, severity="danger")
    builder.move("hold", Stopped(), reason, Why("unclear_output", number))
    builder.notify("warning", "held: it is not known who saved a checkpoint", "\n".join(lines), incident=number)
    for line in lines[1:]:
        builder.note(line)


def _names(seen: tuple[Sighting, ...]) -> str:
    names = list(dict.fromkeys(base_name(s.path) for s in seen))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[-SHOWN:])}{more}"


# When the attempt trained, as far as its log shows that: what was written before its first step is no state of it.


def training_of(state: JudgeState) -> Training:
    """When the attempt trained, as far as its log shows that."""
    attempt = state.attempt
    first_t = _first_step_t(state)
    return Training(
        now_t=state.time.t,
        over=not is_live(state.machine),
        start_t=float("-inf") if attempt.adopted else attempt.start_t,
        first_t=first_t,
        last_t=attempt.beat_t,
        attempt=attempt.number,
        steps_are_shown=first_t is not None if attempt.beat_t is not None else state.ran is not None,
    )


def _first_step_t(state: JudgeState) -> float | None:
    """When the attempt made its first step: before the first line about one, if that shows a later step.

    None if that cannot be told: several steps, or an epoch, were made before the first line, and their pace is unknown;
    or the line stood in the log already when this supervisor began.
    """
    attempt = state.attempt
    if attempt.first_beat_t is None:
        return None
    if attempt.adopted_t is not None and attempt.first_beat_t >= attempt.adopted_t:
        return None
    first, seen = attempt.first_step, attempt.first_beat_step
    made = 1 if first is None else max(0, first - (attempt.resumed_at or 0))
    late = 0 if first is None or seen is None else max(0, seen - first)
    pace_s = state.progress.sec_per_step if first is not None else None
    pace_s = state.clock.typical_s if pace_s is None else pace_s
    if pace_s is None:
        return attempt.first_beat_t if made <= 1 and first is not None and not late else None
    return attempt.first_beat_t - (made + late) * pace_s


# Copies of what no attempt resumes from, made before a start from the beginning that may write over it.
#
# Source: a script that always saves to ``last.pt``, in place, and is killed in a save. Its only checkpoint is torn,
# the next attempt begins anew, and its first save truncates the file, although a part of it could have been recovered,
# or the verdict could have been wrong. The run is not held for it, because nobody can resume from it without repairing
# it first. Without room for the copy, or if it fails, the run waits or is held.

KEPT_COPIES_CLASS = "kept"
"""Class of the incident (kind ``checkpoint``) that tells where the copy is."""


def at_risk(builder: StepBuilder, before_t: float | None) -> tuple[KnownCheckpoint, ...]:
    """What a start from the beginning may write over and has no copy yet, oldest first.

    What this run wrote, or may have written, and is damaged, not finished or not understood; since a NaN
    (``before_t``) everything that was saved. Not what the run left behind when a person began anew. If the settings
    leave the choice to a trainer that finds its checkpoints by itself, only what is damaged.
    """
    knowledge = builder.knowledge
    finds_its_own = not knowledge.resume_support.forms and knowledge.settings.restart.if_not_told == "go_on"
    known = [k for k in builder.state.checkpoints.known if (k.own or k.unsure) and k.left is None and k.kept is None]
    found = [k for k in known if _is_damaged(k) or (not finds_its_own and _is_unused(k, before_t))]
    return tuple(sorted(found, key=age_of))


def _is_damaged(known: KnownCheckpoint) -> bool:
    return not known.unknown_make and (known.bad is not None or known.damage is not None)


def _is_unused(known: KnownCheckpoint, before_t: float | None) -> bool:
    if known.unknown_make:
        return known.is_state  # else it is data, or a file of results
    return known.unclear is not None or not known.complete or (before_t is not None and known.t >= before_t)


def keep_then_begin(builder: StepBuilder, plan: RestartPlan) -> None:
    """Begin anew; what the start may write over is copied aside first, right before the launch."""
    plan = replace(plan, path=None, step=None)
    found = at_risk(builder, plan.before_t) if plan.delay_s <= 0.0 else ()
    if not found:
        launch_after_delay(builder, plan)
        return
    what = f"{copied_names(found)} aside before the run begins anew and may write over {_them(found)}"
    order_copies(builder, plan, what, (), damaged=True)


def order_copies(
    builder: StepBuilder, plan: RestartPlan, what: str, paths: Iterable[str], *, damaged: bool = False
) -> None:
    """Have these, and what a start from the beginning may write over, copied aside. ``what``: a clause about them."""
    at_stake = (*paths, *(k.path for k in at_risk(builder, plan.before_t)))
    order = builder.decide(CopyAside, f"copy {what}", incident=plan.incident, paths=tuple(dict.fromkeys(at_stake)))
    builder.move("copy_aside", Copying(order=order, plan=plan, damaged=damaged), f"copying {what}")


def on_kept(builder: StepBuilder, machine: Copying, outcome: Outcome) -> None:
    """The copies are made: begin anew. Or they cannot be made: wait for room, or hold and ask people."""
    plan, found = machine.plan, at_risk(builder, machine.plan.before_t)
    if outcome.ok:
        note_kept(builder, found, str(outcome.data.get("folder") or ""), plan.incident)
        launch_after_delay(builder, plan)
        return
    gone = {k.path for k in found if k.path == outcome.data.get("gone")}
    for path in gone:
        builder.set(checkpoints=checkpoint_index.without(builder.state.checkpoints, path))
    if gone or not found:
        keep_then_begin(builder, plan)
        return
    why = f"{copied_names(found)} cannot be copied aside: {outcome.detail or 'no reason given'}"
    if outcome.data.get("no_room") is True:
        wait_for_room_somewhere(builder, plan, f"{why}; a start would begin anew and may write over it")
        return
    _kept_copies_hold(builder, plan, why, found)


def note_kept(builder: StepBuilder, found: tuple[KnownCheckpoint, ...], folder: str, incident: int | None) -> None:
    """Remember that these were copied to ``folder``, and tell people where the copies are."""
    if not found:  # removed meanwhile
        return
    mark(builder, found, folder)
    where = folder or "a folder of its own"
    said = f"kept copies of {copied_names(found)} in {where}"
    if len(found) == 1:
        name = base_name(found[0].path)
        said = f"kept a copy of {name} as {folder}/{name}" if folder else f"kept a copy of {name} in {where}"
    told = f"{said} before the run began anew; delete {_them(found)} if not needed"
    builder.open_incident("checkpoint", KEPT_COPIES_CLASS, told, severity="info", ending="noted")
    builder.notify("warning", f"kept: {copied_names(found)}", told, incident=incident)


def mark(builder: StepBuilder, found: tuple[KnownCheckpoint, ...], folder: str) -> None:
    """Remember that these, as they are now, were copied to ``folder``."""
    paths = {k.path for k in found}
    builder.set(checkpoints=checkpoint_index.changed(builder.state.checkpoints, paths, kept=folder))


def copied_names(found: tuple[KnownCheckpoint, ...]) -> str:
    """The newest names in a sentence."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(base_name(k.path) for k in found[-SHOWN:])}{more}"


def _them(found: tuple[KnownCheckpoint, ...]) -> str:
    return "it" if len(found) == 1 else "them"


def _kept_copies_hold(builder: StepBuilder, plan: RestartPlan, why: str, found: tuple[KnownCheckpoint, ...]) -> None:
    reason = f"{why}; a start would begin anew and may write over it"
    typed = builder.knowledge.typed
    ways = (
        f"mend what the reason says, or move it away, then `{typed('resume')}`",
        f"`{typed('resume', '--fresh')}` begins anew without a copy",
        f"`{typed('resume', '--from', found[-1].path)}` gives it to the trainer, if it is whole after all",
    )
    builder.close_incident(plan.incident, "held: what a new start may write over cannot be copied aside")
    builder.move("hold", Stopped(), reason, Why("not_copied"))
    lines = "\n".join((reason, *ways))
    builder.notify("warning", "held: a checkpoint cannot be copied aside", lines, incident=plan.incident)
    for way in ways:
        builder.note(way)


# What follows from a way to resume that was only found in the trainer's source, until a resume has proved it.


def is_unproven(builder: StepBuilder) -> bool:
    """Whether the way to resume is a conclusion that no resume has proved."""
    return bool(builder.knowledge.resume_support.found) and not builder.state.found_resume.proven


def keep_then_launch(builder: StepBuilder, plan: RestartPlan) -> None:
    """Launch; what the start may lose is copied aside before.

    That is what it resumes from, before an unproven resume or a start that may delete it; all checkpoints of the run,
    before a start that is known to delete them.
    """
    found, why = builder.state.found_resume, _why_kept(builder, plan.path)
    link = bool(builder.knowledge.resume_support.deletes)
    if plan.path is None or not why or (found.kept == plan.verified and not link):
        launch_after_delay(builder, plan)
        return
    verified = [k.path for k in builder.state.checkpoints.known if is_verified(k) and _is_at_stake(builder, k.path)]
    order = builder.decide(
        CopyAside,
        f"copy {base_name(plan.path)} aside: {why}",
        incident=plan.incident,
        paths=tuple(dict.fromkeys((plan.path, *(verified if link else ())))),
        link=link,
    )
    builder.move("copy_aside", Copying(order=order, plan=plan), "copying the resume point aside")


def _why_kept(builder: StepBuilder, path: str | None) -> str:
    """Why a resume point is copied aside before the launch, as a clause; "" = it is not."""
    support = builder.knowledge.resume_support
    if path is not None and _is_at_stake(builder, path) and (support.deletes or support.may_delete):
        return support.deletes or support.may_delete
    return f"no resume by {_way(builder)} has been proved yet" if is_unproven(builder) else ""


def _is_at_stake(builder: StepBuilder, path: str) -> bool:
    """Whether it lies where the trainer saves: a copy does not."""
    return not any(is_below(path, place) for place in builder.state.found_resume.copies)


def on_found_way_kept(builder: StepBuilder, machine: Copying, outcome: Outcome) -> None:
    """The copy is made: launch. Or it cannot be made: wait for room or hold, unless a person named the checkpoint."""
    plan = machine.plan
    assert plan.path is not None
    if outcome.ok:
        folder = str(outcome.data.get("folder") or "")
        copies = (*builder.state.found_resume.copies, folder)
        builder.set(found_resume=replace(builder.state.found_resume, kept=plan.verified, folder=folder, copies=copies))
        builder.note(f"{base_name(plan.path)} was copied to {folder or 'a folder of its own'}")
        launch_after_delay(builder, _with_copies(builder, plan, outcome))
        return
    why = f"{base_name(plan.path)} cannot be copied aside: {outcome.detail or 'no reason given'}"
    if plan.wanted is not None:
        builder.note(f"{why}; a person named it, so it is resumed from without a copy")
        launch_after_delay(builder, plan)
        return
    if outcome.data.get("no_room") is True:
        wait_for_room_somewhere(builder, plan, why)
        return
    reason = f"{why}; {_why_kept(builder, plan.path)}, and the trainer may write over it"
    again, without = builder.knowledge.typed("resume"), builder.knowledge.typed("resume", "--from", plan.path)
    lines = (reason, f"make room, then `{again}`; `{without}` goes on without a copy")
    builder.close_incident(plan.incident, "held: the resume point cannot be copied aside")
    builder.move("hold", Stopped(), reason, Why("not_copied"))
    builder.notify("warning", "held: the resume point cannot be copied aside", "\n".join(lines), incident=plan.incident)
    builder.note(lines[1])


def _with_copies(builder: StepBuilder, plan: RestartPlan, outcome: Outcome) -> RestartPlan:
    """The plan of a start that may delete: the copies are resume points, and it resumes from one if it deletes."""
    support, places = builder.knowledge.resume_support, outcome.data.get("places")
    if not isinstance(places, dict) or not (support.deletes or support.may_delete):
        return plan
    for path, place in places.items():
        known = checkpoint_index.find(builder.state.checkpoints, path)
        if known is not None:
            copy = replace(known, path=str(place))
            builder.set(checkpoints=checkpoint_index.with_entry(builder.state.checkpoints, copy))
            builder.fact(known_checkpoint.as_fact(copy, builder.knowledge.created_wall, "complete"))
    return replace(plan, path=str(places.get(plan.path or "", plan.path))) if support.deletes else plan


def note_taken(builder: StepBuilder) -> None:
    """A resume took effect: from now on the way counts as known."""
    if is_unproven(builder):
        builder.set(found_resume=replace(builder.state.found_resume, proven=True))
        builder.note(f"the way to resume is proved: {_way(builder)}")


def failed_at_start(builder: StepBuilder) -> bool:
    """Whether the attempt was given an unproven resume and ended before its first step."""
    attempt = builder.state.attempt
    return is_unproven(builder) and attempt.resume_from is not None and attempt.beat_t is None


def refused(builder: StepBuilder, cause: Cause) -> str:
    """The option of the resume that the trainer says it does not know; "" = it made a step, or does not say so."""
    attempt, seen = builder.state.attempt, builder.state.diagnosis
    if attempt.resume_from is None or attempt.beat_t is not None:
        return ""
    at = max((each.line for each in seen.findings if each.failure == cause.class_), default=seen.fold.lines)
    lines = f"{seen.tail}{seen.fold.rest}".splitlines()
    return refused_option.refused(
        builder.knowledge.resume_support.names,
        cause=cause.line,
        below=lines[max(0, len(lines) - (seen.fold.lines - at)) :],
        last=lines,
        class_=cause.class_,
    )


def is_refuted(builder: StepBuilder, cause: Cause) -> bool:
    """Whether the failure of an attempt with an unproven resume shows that the way to resume is wrong."""
    return speaks_against(
        builder.knowledge.resume_support.names,
        base_name(builder.state.attempt.resume_from or ""),
        said=cause.line,
        refused=bool(refused(builder, cause)),
        wrong_setting=cause.class_ == "config_error",
        tracebacks=builder.state.diagnosis.blocks,
    )


def other_way(builder: StepBuilder) -> tuple[str, ...]:
    """What a person can do about a trainer that refuses the option of a known way, a sentence each."""
    support, typed = builder.knowledge.resume_support, builder.knowledge.typed
    which = "the command has it before {resume}" if support.written else f"the preset {support.preset} adds it"
    if support.found:
        which = f"it was found in the source ({support.found}) and worked before"
    write = (
        f"{which}: correct it, or write {{resume}} into the command where the path of a checkpoint belongs, then "
        f"`{typed('resume', '--', 'NEW', 'COMMAND')}`"
    )
    return (write, f"if the script was changed: `{typed('resume')}` once it takes the option again")


def doubt(builder: StepBuilder) -> tuple[str, ...]:
    """What a person should know of it after a failure that has another cause, a sentence each."""
    return (f"no resume by {_way(builder)} has been proved yet", *_kept(builder))


def advice(builder: StepBuilder) -> tuple[str, ...]:
    """What a person can do if it was wrong, a sentence each; empty if it is proved."""
    if not is_unproven(builder):
        return ()
    wrong = (
        f"the way to resume was only found in the source ({builder.knowledge.resume_support.found}) and seems wrong: "
        "write {resume} into the command where the path of a checkpoint belongs, then "
        f"`{builder.knowledge.typed('resume', '--', 'NEW', 'COMMAND')}`"
    )
    return (wrong, *_kept(builder))


def _kept(builder: StepBuilder) -> tuple[str, ...]:
    folder = builder.state.found_resume.folder
    return (f"the state before it is kept in {folder}",) if folder else ()


def _way(builder: StepBuilder) -> str:
    support = builder.knowledge.resume_support
    return f"{'the trainer itself' if support.by_itself else 'the option'} ({support.found})"
