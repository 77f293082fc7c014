"""What follows from a way to resume that was only found in the trainer's source, until a resume has proved it."""

import msgspec

from ....model.decision import CopyAside
from ....model.launch.output_place import is_below
from ....model.observation import Outcome
from ....model.why import Why
from ...resume import checkpoint_index, known_checkpoint, refused_option
from ...resume.found_resume import speaks_against
from ...resume.known_checkpoint import base_name, is_verified
from ...run_states import Copying, RestartPlan, Stopped
from ...step_builder import StepBuilder
from ..attempts import launch_after_delay, wait_for_room_somewhere
from ..failure_history import Cause

replace = msgspec.structs.replace


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


def on_kept(builder: StepBuilder, machine: Copying, outcome: Outcome) -> None:
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
