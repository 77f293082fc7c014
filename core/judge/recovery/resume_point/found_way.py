"""What follows from a way to resume that was only found in the trainer's source, until a resume has proved it."""

import msgspec

from ....model.decision import CopyAside
from ....model.observation import Outcome
from ...resume import refused_option
from ...resume.found_resume import speaks_against
from ...resume.known_checkpoint import base_name
from ...run_states import Copying, RestartPlan, Stopped
from ...step_builder import StepBuilder
from ..attempts import launch_after_delay, wait_for_room_somewhere

replace = msgspec.structs.replace


def is_unproven(builder: StepBuilder) -> bool:
    """Whether the way to resume is a conclusion that no resume has proved."""
    return bool(builder.knowledge.resume_support.found) and not builder.state.found_resume.proven


def keep_then_launch(builder: StepBuilder, plan: RestartPlan) -> None:
    """Launch; before an unproven resume the state that it resumes from is copied aside."""
    found = builder.state.found_resume
    if plan.path is None or not is_unproven(builder) or found.kept == plan.verified:
        launch_after_delay(builder, plan)
        return
    order = builder.decide(
        CopyAside,
        f"copy {base_name(plan.path)} aside: no resume by {_way(builder)} has been proved yet",
        incident=plan.incident,
        paths=(plan.path,),
    )
    builder.move("copy_aside", Copying(order=order, plan=plan), "copying the resume point aside")


def on_kept(builder: StepBuilder, machine: Copying, outcome: Outcome) -> None:
    """The copy is made: launch. Or it cannot be made: wait for room or hold, unless a person named the checkpoint."""
    plan = machine.plan
    assert plan.path is not None
    if outcome.ok:
        folder = str(outcome.data.get("folder") or "")
        builder.set(found_resume=replace(builder.state.found_resume, kept=plan.verified, folder=folder))
        builder.note(f"{base_name(plan.path)} was copied to {folder or 'a folder of its own'}")
        launch_after_delay(builder, plan)
        return
    why = f"{base_name(plan.path)} cannot be copied aside: {outcome.detail or 'no reason given'}"
    if plan.wanted is not None:
        builder.note(f"{why}; a person named it, so it is resumed from without a copy")
        launch_after_delay(builder, plan)
        return
    if outcome.data.get("no_room") is True:
        wait_for_room_somewhere(builder, plan, why)
        return
    reason = f"held: {why}; no resume by {_way(builder)} has been proved yet, and the trainer may write over it"
    again, without = builder.knowledge.typed("resume"), builder.knowledge.typed("resume", "--from", plan.path)
    lines = (reason, f"make room, then `{again}`; `{without}` goes on without a copy")
    builder.close_incident(plan.incident, "held: the resume point cannot be copied aside")
    builder.move("hold", Stopped(), reason)
    builder.notify("warning", "held: the resume point cannot be copied aside", "\n".join(lines), incident=plan.incident)
    builder.note(lines[1])


def note_taken(builder: StepBuilder) -> None:
    """A resume took effect: from now on the way counts as known."""
    if is_unproven(builder):
        builder.set(found_resume=replace(builder.state.found_resume, proven=True))
        builder.note(f"the way to resume is proved: {_way(builder)}")


def failed_at_start(builder: StepBuilder) -> bool:
    """Whether the attempt was given an unproven resume and ended before its first step."""
    attempt = builder.state.attempt
    return is_unproven(builder) and attempt.resume_from is not None and attempt.beat_t is None


def refused(builder: StepBuilder, class_: str, reason: str) -> str:
    """The option of the resume that the trainer says it does not know; "" = it made a step, or does not say so."""
    attempt, seen = builder.state.attempt, builder.state.diagnosis
    if attempt.resume_from is None or attempt.beat_t is not None:
        return ""
    cause = max((each.line for each in seen.findings if each.failure == class_), default=seen.fold.lines)
    lines = f"{seen.tail}{seen.fold.rest}".splitlines()
    return refused_option.refused(
        builder.knowledge.resume_support.names,
        cause=reason.partition(": ")[2],
        below=lines[max(0, len(lines) - (seen.fold.lines - cause)) :],
        last=lines,
        class_=class_,
    )


def is_refuted(builder: StepBuilder, class_: str, reason: str) -> bool:
    """Whether the failure of an attempt with an unproven resume shows that the way to resume is wrong."""
    return speaks_against(
        builder.knowledge.resume_support.names,
        base_name(builder.state.attempt.resume_from or ""),
        said=reason,
        refused=bool(refused(builder, class_, reason)),
        wrong_setting=class_ == "config_error",
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
