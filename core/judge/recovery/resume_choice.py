"""Which checkpoint the next attempt resumes from, and what follows if there is none.

The output folder is listed first: what is known or was found so far need not be all. The newest usable one is chosen
and verified, and the folder is listed again: a newer one may have become complete meanwhile. One that turns out bad is
not taken again, and the next older one is chosen; one that cannot be read at that moment is read again later.
"""

import re
import shlex
from collections.abc import Iterable
from typing import get_args

import msgspec

from ...model.checkpoint import DAMAGED, Verdict
from ...model.decision import CopyAside, ListCheckpoints, VerifyCheckpoint
from ...model.fact import StateChanged
from ...model.observation import Outcome
from ...model.progress import HoldKind, Why
from ...model.run import is_below
from ..memory import Cause
from ..resume import checkpoint_index, resume_point
from ..resume.checkpoint_index import KnownCheckpoint, age_of, base_name, is_verified, values_of
from ..resume.resume_point import Sighting, Training
from ..run_states import WORDS, Preparing, RestartPlan, is_live
from ..scales import LAST_LINES, MINUTE_S, SAVE_GAP_S, SHOWN, TRIES, WHILE_S
from ..state import JudgeState, StepBuilder
from .attempts import cannot_be_told, give_up, hold, launch_after_delay, launch_again_later, ways

# What a start may write over: it is told at the first save, held over or copied aside before a launch.
#
# With nothing else to resume from, the run is held over state that is not understood, or not known to be its own, and
# people are asked; ``[restart] if_not_understood = "copy_and_restart"`` copies it aside first and begins anew then.

replace = msgspec.structs.replace

CLASS = "not_understood"
"""Class of the incident (kind ``checkpoint``)."""


def recognise(builder: StepBuilder) -> None:
    """Record which entries count as state of this training now, and which are no saves."""
    training = training_of(builder.state)
    if builder.attempt.resume_from is None and not builder.attempt.adopted:
        builder.mark(resume_point.early(builder.index, training), early=True)
    found = resume_point.recognised(builder.index, training)
    if not found:
        return
    builder.mark({k.path for k in found}, is_state=True)
    for known in found:
        if not known.complete and known.unclear is not None:  # else it is in the journal already
            verdict = known.unclear[0] if known.unclear[0] in DAMAGED else "opaque"
            builder.tell_checkpoint(known, verdict)


def tell(builder: StepBuilder) -> None:
    """Notify people once that what the trainer saves is not understood, while it can still be changed."""
    found = resume_point.states(builder.index)
    takes = resume_point.to_begin_from(builder.index, builder.support)[0] is not None
    if takes and (known := builder.open_of(CLASS)) is not None:
        builder.close_incident(known.id, "what was saved since can be resumed from")
    # A checkpoint that is understood may follow within one save.
    told = f"checkpoint:{CLASS}" in builder.state.journal.warned or resume_point.has_understood(builder.index)
    if told or not found or builder.t - min(k.t for k in found) < SAVE_GAP_S:
        return
    newest = found[-1]
    follows = "after a failure the run is held, so that no attempt begins anew over it"
    if takes:
        follows = "after a failure the trainer is given it to resume from, without a verification"
    elif builder.settings.restart.if_not_understood == "copy_and_restart":
        follows = "after a failure it is copied aside, and the run begins anew"
    else:
        first = "a further save like it" if builder.support.forms else "{resume} in the command"
        follows += f" (what changes that: {first}, or [restart] if_not_understood)"
    why = newest.unclear[1] if newest.unclear is not None else "no reason given"
    reason = f"{base_name(newest.path)} is not understood: {why}; {follows}"
    ending = "noted" if takes else None
    builder.warn("checkpoint", CLASS, reason, title=f"not understood: {base_name(newest.path)}", ending=ending)


def why_not_begun_anew(builder: StepBuilder) -> str | None:
    """Why a start without a named checkpoint would be held, and the first way on, as a sentence; None: it would not."""
    asked = None if builder.knowledge.preset.resume == "none" else _question(builder)
    # Not settled: the folder is listed again before a launch.
    if asked is None or resume_point.to_begin_from(builder.index, builder.support, settled=False)[0]:
        return None
    _, reason, answers = asked
    return f"{reason}; {answers[0]}"


def in_the_way(builder: StepBuilder) -> tuple[KnownCheckpoint, ...]:
    """State that a start from the beginning could write over, although nothing can be resumed from; oldest first.

    What is not understood, and what is complete but of a form that the command cannot be given.
    """
    if _chooses_itself(builder):
        return ()
    found = resume_point.states(builder.index) or resume_point.not_to_be_given(builder.index, builder.support)
    return tuple(k for k in found if k.kept is None)


def _chooses_itself(builder: StepBuilder) -> bool:
    """Whether the settings say that a trainer which cannot be given a path finds its checkpoints itself."""
    return not builder.support.forms and builder.settings.restart.if_not_told == "go_on"


def why_held(builder: StepBuilder, found: tuple[KnownCheckpoint, ...]) -> str:
    """Why no attempt begins anew, as a sentence."""
    newest, names = found[-1], _names(k.path for k in found)
    objection = builder.support.objection(newest.shape, newest.holds)
    cannot = f"; {objection}" if objection is not None else ""
    known = newest.unclear[1] if newest.unclear is not None else "complete"
    return f"{names} cannot be resumed from ({known}){cannot}; a start would begin anew and may write over it"


def begin_anew(builder: StepBuilder, plan: RestartPlan) -> None:
    """No resume point: hold over what may be one, else copy aside what the start may write over, and begin."""
    if not in_the_way(builder) or resume_point.has_understood(builder.index):
        why_not = why_not_resumable(builder)
        if why_not is not None:
            itself = '[restart] if_not_told = "go_on" starts it: for a trainer that finds its newest checkpoint itself'
            give_up(builder, why_not, plan.incident, (f"to go on: {ways(builder.knowledge)}", itself))
            return
    asked = _question(builder)
    if asked is None:
        copy_then_launch(builder, replace(plan, path=None, step=None))
        return
    kind, reason, answers = asked
    if kind == "unclear_output":
        builder.close_all("it is known where the run saves", UNSURE)
    known = builder.open_of(CLASS)
    number = builder.open_incident("checkpoint", CLASS, reason) if known is None else known.id
    hold(builder, plan, kind, reason, answers, incident=number)


def _question(builder: StepBuilder) -> tuple[HoldKind, str, tuple[str, ...]] | None:
    """What a person is asked before a start from the beginning: its kind, why, and the ways on; None: nothing."""
    unclear, seen, typed = in_the_way(builder), found_outputs(builder), builder.typed
    copies = builder.settings.restart.if_not_understood == "copy_and_restart"
    aside = '[restart] if_not_understood = "copy_and_restart" copies it aside and begins anew by itself'
    anew = f"`{typed('resume', '--fresh')}` begins anew, and may write over it"
    if unclear and not copies:
        place = "write {resume} into the command where a path belongs, and start again; then "
        given = f"`{typed('resume', '--from', unclear[-1].path)}` gives it to the trainer, which alone can tell"
        how = f"{'' if builder.support.forms else place}{given} if it is whole"
        return "not_understood", why_held(builder, unclear), (how, anew, aside)
    known = {k.path for k in builder.index.known}  # what may be of another run is not copied
    if not seen or unclear or (copies and all(s.path in known for s in seen)):
        return None
    folders = " and ".join(dict.fromkeys(s.folder for s in seen))
    where = f"{_names(s.path for s in seen)} in {folders} may be of this run"
    reason = f"{where}: {seen[-1].evidence}; a start would begin anew and may write over it"
    how = f"`{typed('resume', '--from', 'CHECKPOINT')}` goes on from one that is of this run"
    folder = "--output-dir names the folder that the trainer saves to, so that no search is needed"
    return "unclear_output", reason, (how, anew, folder, aside)


def held_over_bad(builder: StepBuilder, plan: RestartPlan, path: str | None, known: KnownCheckpoint | None) -> bool:
    """Hold, if the trainer chooses its checkpoint and would take a bad one: one that was not loaded, or holds the NaN.

    A save from after the NaN whose values were read and are finite is not known to be bad. Files of a person are not
    moved. Returns whether it is held; a checkpoint that a person named is started from.
    """
    front, lost = builder.in_front(path, plan.before_t), builder.lost_by_divergence
    found = tuple(k for k in front if k.nonfinite != () or k.damage is not None or k.bad is not None or lost)
    if not found or plan.wanted is not None or (plan.before_t is None and not plan.not_loaded):
        return False
    newest, more = found[-1], "" if len(found) == 1 else f" and {len(found) - 1} more"
    move = f'for f in {shlex.join(k.path for k in found)}; do mv -- "$f" "$f.torn"; done'
    if not more:
        move = f"mv -- {shlex.quote(newest.path)} {shlex.quote(f'{newest.path}.torn')}"
    is_what = newest.damage[0] if newest.damage is not None else "it is newer"
    would = f"would take {base_name(newest.path)} ({is_what}); move that file{more} away"
    then = resume_point.start_in_words(path, None if known is None else known.step)
    then = "from what else it finds" if path is None and not newest.own else then
    if path is not None and not builder.support.by_itself:
        then += f" (if it opens that name alone, copy {base_name(path)} there)"
    reason = f"the trainer chooses its checkpoint by itself and {would}, and it starts {then}: `{move}`"
    hold(builder, plan, "bad_in_front", reason, (f"then `{builder.typed('resume')}`",))
    return True


def why_not_resumable(builder: StepBuilder, wanted: str | None = None) -> str | None:
    """Why a launch cannot resume from ``wanted`` (None = the newest), as a sentence; None if it can."""
    support, preset = builder.support, builder.knowledge.preset
    if wanted is not None:
        known = builder.checkpoint(wanted) or KnownCheckpoint(path=wanted, t=builder.t)
        why = support.objection(known.shape, known.holds)
        if preset.resume == "none":
            why = f'the preset {preset.name} never resumes (resume = "none")'
        return None if why is None else f"{base_name(wanted)}: {why}"
    newest = resume_point.newest_verified(builder.index) if cannot_be_told(builder.knowledge) else None
    if newest is None:
        return None
    why = support.objection(newest.shape, newest.holds)
    return f"{base_name(newest.path)}: {why}; a start would begin anew and write over it"


# A checkpoint that may be of this run, which cannot be told: nothing begins anew over it.
#
# It lies in a folder that is not known as the run's own, or in one that is, with times that do not tell whether it
# stood there before. Sources: a script saved to a folder that nothing names and was killed at once; a checkpoint that
# was copied in with the modification time of its original.

UNSURE = "unsure_output"
"""Class of the incident (kind ``checkpoint``) of a checkpoint that may be the run's, while it trains."""

UNKNOWN_ORIGIN = "neither its times nor the processes that were seen there tell whether this run wrote it"


def found_outputs(builder: StepBuilder) -> tuple[Sighting, ...]:
    """Such checkpoints without a copy, oldest first. None for a trainer that finds its own."""
    if builder.knowledge.trainer_chooses(None):
        return ()
    copied = {k.path for k in builder.index.known if k.kept is not None}
    older = [
        Sighting(folder=k.path.rstrip("/").rpartition("/")[0], path=k.path, t=k.t, evidence=UNKNOWN_ORIGIN)
        for k in resume_point.of_unknown_origin(builder.index)
    ]
    return tuple(one for one in (*_unsure(builder), *older) if one.path not in copied)


def _unsure(builder: StepBuilder) -> tuple[Sighting, ...]:
    return resume_point.unclear(builder.state.saved.outputs, training_of(builder.state), builder.knowledge.output_dir)


def tell_output(builder: StepBuilder) -> None:
    """Notify people once of what may be the run's."""
    seen = _unsure(builder)
    if not seen:
        builder.close_all("another process saves there", UNSURE)
    elif builder.open_of(UNSURE) is None:
        follows = "it is never resumed from, and a crash holds the run"
        if builder.knowledge.trainer_chooses(None):
            follows = "a crash starts it again, and it resumes by itself"
        where = f"{_names(s.path for s in seen)} in {seen[-1].folder}"
        builder.warn(
            "checkpoint",
            UNSURE,
            f"{where} may be of this run, which is not known ({seen[-1].evidence})",
            title="it is not known where the run saves",
            explanation=f"{follows}; --output-dir names the folder that the trainer saves to",
        )


def _names(paths: Iterable[str]) -> str:
    """The newest names in a sentence."""
    names = list(dict.fromkeys(map(base_name, paths)))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[-SHOWN:])}{more}"


def training_of(state: JudgeState) -> Training:
    """When the attempt trained, as far as its log shows that: what was written before its first step is no state of it.

    Its first step was before the first line about one, if that shows a later step. Not known: the line stood in the log
    already when this supervisor began, or several steps came before it whose pace is unknown.
    """
    attempt = state.attempt
    first_t, late = attempt.first_beat_t, attempt.adopted_t
    first_t = None if first_t is not None and late is not None and first_t >= late else first_t
    if first_t is not None:
        first, seen = attempt.first_step, attempt.first_beat_step
        made = 1 if first is None else max(0, first - (attempt.resumed_at or 0))
        made += 0 if first is None or seen is None else max(0, seen - first)
        pace_s = state.progress.sec_per_step if first is not None else None
        pace_s = state.watch.clock.typical_s if pace_s is None else pace_s
        if pace_s is not None:
            first_t -= made * pace_s
        elif made > 1 or first is None:
            first_t = None
    return Training(
        now_t=state.time.t,
        over=not is_live(state.machine),
        start_t=float("-inf") if attempt.adopted else attempt.start_t,
        first_t=first_t,
        last_t=attempt.beat_t,
        attempt=attempt.number,
        steps_are_shown=first_t is not None if attempt.beat_t is not None else state.policy.ran is not None,
    )


# Copies of what no attempt resumes from, made before a start from the beginning that may write over it.
#
# Source: a script that always saves to ``last.pt``, in place, and is killed in a save. Its only checkpoint is torn,
# the next attempt begins anew, and its first save truncates the file, although a part of it could have been recovered,
# or the verdict could have been wrong. The run is not held for it, because nobody can resume from it without repairing
# it first. Without room for the copy, or if it fails, the run waits or is held.


def at_risk(builder: StepBuilder, before_t: float | None) -> tuple[KnownCheckpoint, ...]:
    """What a start from the beginning may write over and has no copy yet, oldest first.

    What may be resumed from after all, and what this run wrote, or may have written, and is damaged, not finished or
    not understood; since a NaN (``before_t``) everything that was saved. Not what the run left behind when a person
    began anew. Of a trainer that finds its checkpoints by itself, as the settings say, only what is damaged.
    """
    chooses = _chooses_itself(builder)
    asked = {seen.path for seen in found_outputs(builder)} | {known.path for known in in_the_way(builder)}

    def would_be_lost(known: KnownCheckpoint) -> bool:
        if not (known.own or known.unsure):
            return False
        if known.unknown_make:
            return known.is_state and not chooses  # else it is data, or a file of results
        unused = known.unclear is not None or not known.complete or (before_t is not None and known.t >= before_t)
        return known.bad is not None or known.damage is not None or (unused and not chooses)

    found = [k for k in builder.index.known if k.left is None and k.kept is None]
    return tuple(sorted((k for k in found if k.path in asked or would_be_lost(k)), key=age_of))


def copy_then_launch(builder: StepBuilder, plan: RestartPlan) -> None:
    """Launch; what the start may write over or delete is copied aside right before, whatever it begins from."""
    paths: tuple[str, ...] = ()
    path, what = plan.path, ""
    link = path is not None and bool(builder.support.deletes)
    if path is None and plan.delay_s <= 0.0:
        found = at_risk(builder, plan.before_t)
        paths = tuple(k.path for k in found)
        what = f"{_names(paths)} aside before the run begins anew and may write over {_them(found)}"
    elif path is not None and (why := _why_kept(builder, path)):
        verified = [k.path for k in builder.index.known if link and is_verified(k) and _is_at_stake(builder, k.path)]
        is_kept = builder.state.saved.found_resume.kept == plan.verified and not link
        paths = () if is_kept else tuple(dict.fromkeys((path, *verified)))
        what = f"{base_name(path)} aside: {why}"
    if not paths:
        launch_after_delay(builder, plan)
        return
    order = builder.decide(CopyAside, f"copy {what}", incident=plan.incident, paths=paths, link=link)
    builder.move("copy_aside", Preparing("copy_aside", order, plan), f"copying {what}")


def on_copied(builder: StepBuilder, machine: Preparing, outcome: Outcome) -> None:
    """The copies are made: launch. Or they cannot be made: wait for room, or hold and ask people.

    A resume point that a person named is resumed from without a copy.
    """
    plan, path, typed = machine.plan, machine.plan.path, builder.typed
    found = at_risk(builder, plan.before_t) if path is None else ()
    if outcome.ok:
        folder = str(outcome.data.get("folder") or "")
        names, where = _names(k.path for k in found), folder or "a folder of its own"
        if path is None and found:  # else they were removed meanwhile
            builder.mark({k.path for k in found}, kept=folder)
            said = f"kept copies of {names} in {where}"
            if len(found) == 1:
                said = f"kept a copy of {names} as {folder}/{names}" if folder else f"kept a copy of {names} in {where}"
            told = f"{said} before the run began anew; delete {_them(found)} if not needed"
            builder.open_incident("checkpoint", "kept", told, severity="info", ending="noted")
            builder.notify("warning", f"kept: {names}", told, incident=plan.incident)
            builder.close_all(said, CLASS)
        elif path is not None:
            known = builder.state.saved.found_resume
            builder.change("saved.found_resume", kept=plan.verified, copies=(*known.copies, folder))
            builder.note(f"{base_name(path)} was copied to {where}")
            support, places = builder.support, outcome.data.get("places")
            places = places if isinstance(places, dict) and (support.deletes or support.may_delete) else {}
            for file, place in places.items():  # of a start that may delete the copies are resume points
                there = builder.checkpoint(file)
                if there is not None:
                    copy = replace(there, path=str(place))
                    builder.change("saved", checkpoints=checkpoint_index.with_entry(builder.index, copy))
                    builder.tell_checkpoint(copy, "complete")
            if support.deletes and not support.by_itself:
                plan = replace(plan, path=str(places.get(path, path)))
        launch_after_delay(builder, plan)
        return
    gone = outcome.data.get("gone")
    if path is None and (not found or any(k.path == gone for k in found)):
        builder.change("saved", checkpoints=checkpoint_index.without(builder.index, gone))
        copy_then_launch(builder, plan)
        return
    names = _names(k.path for k in found) if path is None else base_name(path)
    why = f"{names} cannot be copied aside: {outcome.detail or 'no reason given'}"
    if plan.wanted is not None and path is not None:
        builder.note(f"{why}; a person named it, so it is resumed from without a copy")
        launch_after_delay(builder, plan)
        return
    follows = "a start would begin anew and may write over it"
    if path is not None:
        follows = f"{_why_kept(builder, path)}, and the trainer may write over it"
    if outcome.data.get("no_room") is True:
        launch_again_later(builder, plan, "no_room", f"{why}; {follows}")
        return
    again = (
        f"mend what the reason says, or move it away, then `{typed('resume')}`",
        f"`{typed('resume', '--fresh')}` begins anew without a copy",
        f"`{typed('resume', '--from', path or found[-1].path)}` gives it to the trainer without a copy",
    )
    hold(builder, plan, "not_copied", f"{why}; {follows}", again)


def _them(found: tuple[KnownCheckpoint, ...]) -> str:
    return "it" if len(found) == 1 else "them"


def is_unproven(builder: StepBuilder) -> bool:
    """Whether the way to resume was only found in the trainer's source, and no resume has proved it."""
    return bool(builder.support.found) and not builder.state.saved.found_resume.proven


def _why_kept(builder: StepBuilder, path: str) -> str:
    """Why a resume point is copied aside before the launch, as a clause; "" = it is not."""
    support = builder.support
    if _is_at_stake(builder, path) and (support.deletes or support.may_delete):
        return support.deletes or support.may_delete
    return f"no resume by {_way(builder)} has been proved yet" if is_unproven(builder) else ""


def _is_at_stake(builder: StepBuilder, path: str) -> bool:
    """Whether it lies where the trainer saves: a copy does not."""
    return not any(is_below(path, place) for place in builder.state.saved.found_resume.copies)


def note_taken(builder: StepBuilder, *, used: bool = True) -> None:
    """A resume took effect: the way counts as known, and so does what is saved. Not ``used``: it was only read."""
    known = None if builder.attempt.elsewhere else builder.checkpoint(builder.attempt.resume_from)
    if known is not None and known.is_state:
        builder.mark((known.path,), resumed=known.unclear)
        builder.close_all(f"a resume from {base_name(known.path)} has worked", CLASS, resumed_from=known.path)
    if used and is_unproven(builder):
        builder.change("saved.found_resume", proven=True)
        builder.note(f"the way to resume is proved: {_way(builder)}")


def wrong_way(builder: StepBuilder, cause: Cause, reason: str) -> tuple[str, tuple[str, ...]]:
    """What is wrong with the way to resume of an attempt that ended before its first step, and what a person can do.

    ("", ()): nothing shows that it is wrong. The trainer says that it does not know the option. One that was only found
    in the source is refuted as well by a wrong argument or path that names the checkpoint, or by a traceback that ends
    on the line of source which reads the option by its name.
    """
    attempt, seen, support, names = builder.attempt, builder.state.log.diagnosis, builder.support, builder.support.names
    last = f"{seen.tail}{seen.fold.rest}".splitlines()[-LAST_LINES:]
    option = resume_point.refused(names, (cause.line, *last), cause.class_)
    if is_unproven(builder):
        read = re.compile(rf"""['"`]\+*(?:[\w.]+\.)?(?:{"|".join(map(re.escape, names))})['"`]""")
        ended = names and any(block.raised is not None and read.search(block.code) for block in seen.blocks)
        named = cause.class_ == "config_error" and base_name(attempt.resume_from or "") in cause.line
        if not (option or named or ended):
            return "", ()
        found = "the trainer does not start with the way to resume that was found in its source"
        return f"{found}: {reason}; it is taken back", advice(builder)
    if not option:
        return "", ()
    which = "the command has it before {resume}" if support.written else f"the preset {support.preset} adds it"
    if support.found:
        which = f"it was found in the source ({support.found}) and worked before"
    again = f"if the script was changed: `{builder.typed('resume')}` once it takes the option again"
    why = f"the trainer does not take {option}, the option that names the checkpoint; a restart would give it again"
    return f"{why}: {reason.rstrip('.:')}", (f"{which}: correct it, or {_write(builder)}", again)


def _write(builder: StepBuilder) -> str:
    command = builder.typed("resume", "--", "NEW", "COMMAND")
    return f"write {{resume}} into the command where the path of a checkpoint belongs, then `{command}`"


def advice(builder: StepBuilder, *, refuted: bool = True) -> tuple[str, ...]:
    """What a person can do if it was wrong, or has to know of it (not ``refuted``), a sentence each; none if proved."""
    if not is_unproven(builder):
        return ()
    copies, known = builder.state.saved.found_resume.copies, f"no resume by {_way(builder)} has been proved yet"
    if refuted:
        known = f"the way to resume was only found in the source ({builder.support.found}) and seems wrong"
        known = f"{known}: {_write(builder)}"
    return (known, f"the state before it is kept in {copies[-1]}") if copies and copies[-1] else (known,)


def _way(builder: StepBuilder) -> str:
    support = builder.support
    return f"{'the trainer itself' if support.by_itself else 'the option'} ({support.found})"


UNREAD = "unread"
"""The verification itself failed: no verdict."""


def choose(builder: StepBuilder, plan: RestartPlan) -> None:
    """Have the output folder listed, then choose a resume point; a launch that resumes from nothing needs neither."""
    if plan.fresh or builder.knowledge.preset.resume == "none":
        launch_after_delay(builder, replace(plan, path=None, step=None))
    else:
        _list(builder, plan, MINUTE_S)


def _list(builder: StepBuilder, plan: RestartPlan, limit_s: float, *, held: str = "") -> None:
    state, reason = builder.state, "list the checkpoints before the launch"
    saved = state.policy.budget.best is not None or any(k.own and k.complete for k in state.saved.checkpoints.known)
    order = builder.decide(ListCheckpoints, reason, incident=plan.incident, limit_s=limit_s, expected=saved)
    listing = Preparing("list", order, plan, why=held, folders=len(state.saved.outputs.known))
    builder.move("list", listing, held or "listing the checkpoints in the output folder")


def on_listed(builder: StepBuilder, machine: Preparing, outcome: Outcome) -> None:
    """The folder is listed: choose. Or it cannot be listed: a person may name a checkpoint, a restart waits."""
    plan, reason = machine.plan, machine.why
    if outcome.ok or plan.wanted is not None:
        if reason:
            again = "the output folder is listed again"
            builder.note(again)
            builder.fact(StateChanged(state=WORDS["preparing"], reason=again))
        if outcome.ok and len(builder.state.saved.outputs.known) > machine.folders:
            _list(builder, plan, MINUTE_S)  # the search found a folder that was not listed yet
        else:
            _choose_from_list(builder, plan)
        return
    if not reason:
        why, named = outcome.detail or "no reason given", builder.typed("resume", "--from", "CHECKPOINT")
        reason = f"the checkpoints cannot be listed, so the newest is not known: {why}"
        how = f"it goes on when they can be; `{named}` or `--fresh` does not wait"
        builder.notify("warning", "held: the checkpoints cannot be listed", f"{reason}\n{how}", incident=plan.incident)
        builder.note(reason)
        builder.fact(StateChanged(state=WORDS["preparing"], reason=reason, why=Why("not_listed")))
    _list(builder, plan, WHILE_S, held=reason)


def _choose_from_list(builder: StepBuilder, plan: RestartPlan) -> None:
    """Choose a resume point and have it verified; without one, hold, start over or give up, as the settings say."""
    recognise(builder)
    path, known = builder.resume_point(plan)
    if plan.wanted is None:  # the writer of newer damaged ones is gone and cannot mend them
        good = known if known is not None and is_verified(known, path) else None
        newer = resume_point.damaged_after(builder.index, good, before_t=plan.before_t)
        damaged = [(k.path, *k.damage, k.bad is not None) for k in newer if k.damage is not None]
        ending = _passing(builder, path)
        found = [_set_bad(builder, file, verdict, why, ending, told=told) for file, verdict, why, told in damaged]
        if found:
            title = f"checkpoint {damaged[0][1]}" if len(found) == 1 else f"{len(found)} checkpoints are damaged"
            builder.notify("warning", title, "\n".join(reason for _, reason in found), incident=found[0][0])
    # What a trainer that chooses by itself would take, and nobody has read: whether it holds the NaN is read first.
    of_nan = plan.before_t is not None and plan.wanted is None and not builder.lost_by_divergence
    front = builder.in_front(path, plan.before_t) if of_nan else ()
    unread = [k for k in front if k.nonfinite is None and k.complete and k.bad is None]
    if unread and builder.settings.checkpoints.verify == "deep" and unread[-1].path != plan.read:
        newest = unread[-1].path
        _verify(builder, replace(plan, path=newest, verified=None, read=newest), "what the trainer may take")
        return
    if held_over_bad(builder, plan, path, known):
        return
    if path is None:
        begin_anew(builder, replace(plan, verified=None))
        return
    step, time = (known.step, checkpoint_index.time_of(known)) if known is not None else (None, None)
    if plan.verified is not None:
        # Another writer must not hold it back for ever.
        if plan.verified == (path, time) or plan.newer >= TRIES:
            copy_then_launch(builder, plan)
            return
        builder.note(f"{base_name(path)} is newer than the verified {base_name(plan.verified[0])}")
        plan = replace(plan, verified=None, newer=plan.newer + 1)
    weights = known is not None and known.holds == "weights" and not builder.support.weights_are_enough
    if plan.wanted is None and weights:
        builder.note(
            f"{base_name(path)} contains only weights, and there is no complete training state: the trainer starts "
            "from these weights, without the state of optimizer and schedule"
        )
    _verify(builder, replace(plan, path=path, step=step, verified=(path, time)), "the resume point")


def _verify(builder: StepBuilder, plan: RestartPlan, what: str) -> None:
    what, deep = f"{what} {base_name(plan.path or '')}", builder.settings.checkpoints.verify == "deep"
    reason = f"verify {what} before the launch"
    order = builder.decide(VerifyCheckpoint, reason, incident=plan.incident, path=plan.path, deep=deep)
    builder.move("verify", Preparing("verify", order, plan), f"verifying {what}")


def on_verify_outcome(builder: StepBuilder, machine: Preparing, outcome: Outcome) -> None:
    """Launch from the verified resume point unless a newer one came; choose another one if it is bad or gone."""
    plan, path = machine.plan, machine.plan.path
    assert path is not None
    verdict = str(outcome.data.get("verdict") or ("complete" if outcome.ok else UNREAD))
    step = outcome.data.get("step")
    if _is_finite_enough(builder, plan, path, verdict, outcome):
        builder.note(f"{outcome.data.get('reason')}: it is meant (so do earlier checkpoints, or it is Inf alone)")
        verdict = "complete"
    if verdict == "complete":
        known = builder.checkpoint(path)
        is_of_run = isinstance(step, int) and not (known is not None and known.of_epoch)
        _verified(builder, replace(plan, step=step if is_of_run else plan.step))
        return
    why, left = str(outcome.data.get("reason") or outcome.detail or verdict), verdict == "opaque"
    if outcome.data.get("understood") is False and not left:
        # One that lacks a member must be named by a person, unless all saves of its trainer lack it.
        left = plan.wanted is not None or resume_point.is_left_to_the_trainer(builder.index, path)
    if left:
        if path != plan.read:
            builder.note(
                f"{base_name(path)} cannot be verified ({why}): the trainer is given it and reads it by itself"
            )
        _verified(builder, plan)
        return
    plan = replace(plan, verified=None)
    if plan.wanted is None and verdict == "gone":
        builder.note(f"{base_name(path)} was removed")
        builder.change("saved", checkpoints=checkpoint_index.without(builder.index, path))
        choose(builder, replace(plan, path=None, step=None))
        return
    if plan.wanted is None and verdict in {UNREAD, "writing"}:
        # Says nothing about it: wait, and choose again.
        why = f"{base_name(path)} cannot be verified now: {outcome.detail or verdict}"
        launch_again_later(builder, replace(plan, path=None, step=None), "not_read", why)
        return
    ending = "refused" if plan.wanted is not None else _passing(builder, path)
    number, reason = _set_bad(builder, path, verdict, why, ending)
    if plan.wanted is not None:
        hold(builder, plan, "refused_checkpoint", reason, incident=number)
        return
    builder.notify("warning", f"checkpoint {verdict}", reason, incident=number)
    choose(builder, replace(plan, path=None, step=None))


def _passing(builder: StepBuilder, path: str | None) -> str:
    """What becomes of a bad one beside this resume point, in words."""
    return "the trainer may take it" if builder.knowledge.trainer_chooses(path) else "skipped"


def _is_finite_enough(builder: StepBuilder, plan: RestartPlan, path: str, verdict: str, outcome: Outcome) -> bool:
    """Whether it is not finite and none the worse for it. What was read of its values is remembered."""
    if verdict not in {"complete", "nonfinite"} or "nonfinite" not in outcome.data:
        return False
    names, nan = outcome.data["nonfinite"], outcome.data.get("nan", ())
    index = checkpoint_index.with_values(builder.index, path, names, nan, outcome.data.get("reason"))
    builder.change("saved", checkpoints=index)
    known = checkpoint_index.find(index, path)
    if verdict == "complete" or known is None:
        return False
    values = values_of(index, known)
    return bool(known.nonfinite) and not values.new and (plan.before_t is None or values.compared)


def _verified(builder: StepBuilder, plan: RestartPlan) -> None:
    """Wait if the plan says so; then list again, because a newer one may have become complete meanwhile."""
    if plan.path is not None and plan.path == plan.read:
        plan = replace(plan, path=None, step=None)
    if plan.delay_s > 0.0:
        launch_after_delay(builder, plan)
    else:
        _list(builder, plan, MINUTE_S)


def _set_bad(
    builder: StepBuilder, path: str, verdict: str, why: str, ending: str, *, told: bool = False
) -> tuple[int, str]:
    """Never resume from a checkpoint until it is written again, and open an incident. Returns its id and its reason.

    ``told``: the journal has its verdict.
    """
    if builder.checkpoint(path) is None:
        entry = KnownCheckpoint(path=path, t=builder.t, own=False, bad=why)
        builder.change("saved.checkpoints", known=(*builder.index.known, entry))
    elif not told:
        builder.mark((path,), bad=why)
        known = builder.checkpoint(path)
        if known is not None and verdict in get_args(Verdict):
            builder.tell_checkpoint(known, msgspec.convert(verdict, Verdict))
    builder.mark((path,), reported=True)
    reason = f"{base_name(path)} cannot be resumed from: {why}"
    return builder.open_incident("checkpoint", verdict, reason, severity="warning", ending=ending), reason
