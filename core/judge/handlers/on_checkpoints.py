"""Changes of checkpoints: signs of life, resume points, and progress that restores the restart budget."""

import msgspec

from ...model.checkpoint import Checkpoint
from ...model.checkpoint_files import kind_of_name, numbers_in
from ...model.decision import DeleteCheckpoint, PlanRetention
from ...model.fact import CheckpointsSetAside, OutputKnown
from ...model.observation import CheckpointEvent, Outcome, OutputSeen
from ...model.run import OTHER_TRAINER, VANISHED, is_below
from .. import memory, slow
from ..hang import liveness
from ..progress import ACCUMULATED, AttemptProgress, places_at, with_saved
from ..recovery import commands, exits, gate, remedies, restarts, resume_choice
from ..resume import checkpoint_index, resume_point
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..resume.resume_check import counts_since, slack_of
from ..run_states import EndedEarly, Finished, GivenUp, Starting, Stopping, is_live, is_watched
from ..scales import LAG_S, TWICE
from ..state import JudgeState, StepBuilder
from . import hang_check, hints

replace = msgspec.structs.replace


def saved_position(
    attempt: AttemptProgress, saved_step: int | None, places: tuple[int | None, int | None], slack: int, since: int = 0
) -> tuple[int | None, int]:
    """Return the position of a checkpoint in the run, at least, and how much more it may be.

    By its own step if known, else by the log as it was read when the checkpoint was written (``places``), however late
    it is seen. A few lines more or less are the same place: they are read a little later than they are written.
    ``since``: counts that the log is known to have made after the save. ``slack``: so many are a few lines.
    """
    least, most = places
    if attempt.offset is None:
        return attempt.position, 0  # the log tells no step: the newest save does
    if most is None:
        return None, 0
    if saved_step is not None:
        stored = attempt.offset + saved_step * attempt.stride
        if attempt.adopted or (least or 0) / ACCUMULATED <= stored <= most + TWICE * attempt.printed_every:
            return stored, 0
    least = attempt.offset if least is None else least
    if since or most - least <= slack:
        return most - since, 0
    return least, most - least


def _is_at(attempt: AttemptProgress, saved_step: int | None) -> bool:
    """Return whether the attempt is at this step now, give or take two printed lines."""
    if attempt.step is None or saved_step is None:
        return False
    return abs(attempt.step - saved_step * attempt.stride) <= TWICE * max(attempt.printed_every, attempt.stride)


def _by_the_log(state: JudgeState, before: KnownCheckpoint | None, event: CheckpointEvent) -> CheckpointEvent:
    """Return the event with its number (``NAME-000400``) as a step if the log, which tells no epoch, is there."""
    number, attempt = event.epoch, state.attempt
    if number is None or event.step is not None:
        return event
    if before is not None:
        is_step = before.step == number and before.epoch is None
    else:
        told = number > TWICE * max(attempt.printed_every, attempt.stride)  # else any number is near
        is_step = told and is_live(state.machine) and state.progress.epoch is None and _is_at(attempt, number)
    return replace(event, step=number, epoch=None) if is_step else event


def _by_writer(state: JudgeState, before: KnownCheckpoint | None, event: CheckpointEvent, t: float) -> CheckpointEvent:
    """Return the event as of an unknown writer if the run saved a later step before, and its log did not go back.

    Not if the run was seen writing it, or the log is read at its step since: a trainer that goes back by itself prints
    that after the save. ``before``: what is known of the same save: who wrote it is told by no other later look. ``t``:
    when it was written. What counts something else than the log is no evidence, so the later one must have lain at the
    log's place.
    """
    attempt, step, kind = state.attempt, event.step, kind_of_name(base_name(event.path))
    slack = TWICE * max(attempt.printed_every, attempt.stride)

    def place(stored: int | None) -> int:
        return (attempt.offset or 0) + (stored or 0) * attempt.stride

    def follows(known: KnownCheckpoint) -> bool:
        low, high = places_at(attempt, known.t)
        alike = known.own and known.complete and kind_of_name(base_name(known.path)) == kind
        if not alike or low is None or high is None or not attempt.start_t <= known.t < t:
            return False
        return low - slack <= place(known.step) <= high + slack

    if event.whose is not None:
        return replace(event, whose=None) if event.whose == "run" else event
    least, since = places_at(attempt, t)
    if before is not None and (before.unsure or before.complete):
        passed = before.unsure
    else:
        passed = step is not None and least is not None and place(step) < least - slack
        passed = passed and any((k.step or 0) > (step or 0) and follows(k) for k in state.saved.checkpoints.known)
    went_back = least is not None and since is not None and since < least and abs(place(step) - since) <= slack
    return replace(event, whose="unsure") if passed and not went_back else event


def on_checkpoint(builder: StepBuilder, event: CheckpointEvent) -> None:
    """Process a checkpoint that appeared, grew, is complete, or was removed."""
    state, created_wall = builder.state, builder.knowledge.created_wall
    before = builder.checkpoint(event.path)
    if event.event == "removed" or event.whose == "other":  # what another process wrote is none of this run
        _removed(builder, before)
        return
    attempt, live, watched = state.attempt, is_live(state.machine), is_watched(state.machine)
    places = places_at(attempt, checkpoint_index.written_t(event, created_wall))
    pace_s = state.watch.clock.typical_s or state.progress.sec_per_step
    event = _by_the_log(state, before, event)
    # A rescan reports unchanged ones again.
    same = before is not None and checkpoint_index.is_same_save(before, event, created_wall)
    news = before is None or not before.complete or not same
    own = checkpoint_index.origin_of_event(event, created_wall) == "run"
    is_new = event.event == "complete" and own and news
    of_epoch, since = not is_new and before is not None and before.of_epoch, None
    if is_new and event.step is not None and live:
        since = counts_since(attempt, state.log.reading.now.run, event.step, pace_s, places)
        of_epoch = since is not None
    event = replace(event, step=None) if of_epoch else event
    if (is_new and live) or same:
        known = before if same else None
        t = known.t if known is not None else checkpoint_index.written_t(event, created_wall)
        event = _by_writer(state, known, event, t)
    if event.step is not None and live and is_new and event.whose is None:
        late = checkpoint_index.may_be_of_before(state.saved.checkpoints, event.t)
        attempt = with_saved(attempt, event.step, least=places[0], late=late)
    slack = slack_of(attempt, pace_s, every=state.log.reading.now.run.gap)
    position, spread = saved_position(attempt, event.step, places, slack, since or 0)
    index = checkpoint_index.with_event(
        state.saved.checkpoints,
        event,
        position=position,
        spread=spread,
        created_wall=created_wall,
        fresh=live and _is_at(attempt, event.step),
        log_epoch=attempt.log_epoch,
        epochs_before=(attempt.resume_epochs or 0) if attempt.weights_only else 0,
        of_epoch=of_epoch,
    )
    builder.set(attempt=attempt)
    builder.change("saved", checkpoints=index)
    grown = before is None or event.size_bytes is None or event.size_bytes != before.size_bytes
    if grown and not event.unknown_make and watched:
        seen, last = state.watch.liveness, state.watch.clock.last
        builder.change("watch", liveness=liveness.with_file(seen, last, builder.now, event.size_bytes or 0.0))
    known = checkpoint_index.find(index, event.path)
    if known is not None:
        if known.own and watched and news:
            hang_check.on_save_file(builder, known)
        if known.unclear is not None:  # if it counts as state of the training, the attempt trains
            resume_choice.recognise(builder)
            newest = builder.checkpoint(event.path)
            if newest is not None and newest.is_state and not (before is not None and before.is_state and same):
                hints.on_saved(builder, newest)
        if event.event == "complete":
            changed = before is not None and (before.t, before.bad) != (known.t, known.bad)
            _complete(builder, event, known, news=news or changed)
        elif grown and known.own:
            _while_saving(builder)
    hang_check.check_hang(builder)


def _tell_other_writer(builder: StepBuilder, event: CheckpointEvent) -> None:
    """Tell once that another process saves into the folder that the run was told. What it writes decides nothing."""
    folder, _, name = event.path.rpartition("/")
    told = builder.knowledge.output_dir
    if told is not None and is_below(event.path, told) and builder.open_of(OTHER_TRAINER) is None:
        builder.warn(
            "checkpoint",
            OTHER_TRAINER,
            f"another process may write to {folder}, too: nobody saw who wrote {name}",
            title="another process may write there",
            explanation=f"{name} is no resume point and ends nothing; each may overwrite what the other saves",
        )


def _complete(builder: StepBuilder, event: CheckpointEvent, known: KnownCheckpoint, *, news: bool) -> None:
    if news:
        builder.tell_checkpoint(known, event.verdict or "complete")
        if known.unsure and event.whose == "unsure" and is_live(builder.machine):
            _tell_other_writer(builder, event)
    aside = _set_aside(builder, known)
    if not news:
        return
    state, machine = builder.state, builder.machine
    good = known.complete and known.own and known.bad is None
    if good:
        if known.unclear is None:
            builder.close_all("a checkpoint came that is understood", resume_choice.CLASS)
        builder.change("course", saves=slow.with_save(state.course.saves, builder.now, state.watch.clock.start))
        builder.close_all("a checkpoint came", slow.MISSING)
        hints.on_saved(builder, known)
        _foresee_load(builder, event, known)
        machine = builder.machine
    ending = isinstance(machine, Stopping) and machine.then == "give_up"
    if builder.attempt.resume_verdict == "ignored" and known.own and ending:
        # The last save of an attempt that had started over is not the newest state of the run.
        builder.mark((event.path,), bad="written by an attempt that had started over")
    elif good and is_live(machine):
        if not aside:  # of this run's branch: progress, and a moment at which a restart loses little
            restarts.saved(builder, known)
            if known.unclear is None:
                remedies.on_saved(builder, known)
        on_saved(builder)
        if builder.state.policy.switch and not aside:
            commands.switch_at_checkpoint(builder)
    _while_saving(builder)
    exits.check(builder)


def _removed(builder: StepBuilder, gone: KnownCheckpoint | None) -> None:
    """Record it, and tell of an attempt that begins by deleting what the run saved, while a person can still stop it.

    Its resume point is gone, or all checkpoints are: a trainer that deletes old ones keeps the newest. The first steps
    may be there before that is seen; a trainer that went on has come to the step of what it deletes.
    """
    if gone is None:
        return
    state = builder.state
    index = checkpoint_index.without(state.saved.checkpoints, gone.path)
    builder.change("saved", checkpoints=index)
    builder.tell_checkpoint(gone, "complete", removed=True)
    attempt, copies, machine = state.attempt, state.saved.found_resume.copies, state.machine
    left = [k for k in index.known if k.own and k.complete and not any(is_below(k.path, each) for each in copies)]
    begins = isinstance(machine, Starting) and not machine.launched  # a shell script deletes before it is known to run
    number, path = attempt.number + begins, attempt.resume_from
    if isinstance(machine, Starting) and begins:
        path = None if machine.plan is None else machine.plan.path
    first_t, step = attempt.first_beat_t, attempt.step
    behind = step is not None and gone.step is not None and step < gone.step * attempt.stride
    early = attempt.beat_t is None or (behind and first_t is not None and builder.t - first_t <= LAG_S)
    at_start = (begins or (is_live(machine) and early)) and gone.own
    lost = (gone.complete or gone.is_state) and (gone.path == path or not left)
    if at_start and lost and builder.open_of(VANISHED) is None:
        kept = f"copies are in {copies[-1]}" if copies else "there is no copy of it"
        what = f"{base_name(gone.path)} was deleted as attempt {number} began; {kept}"
        number = builder.open_incident("checkpoint", VANISHED, what, severity="danger")
        builder.notify("warning", "checkpoints were deleted at the start of an attempt", what, incident=number)


REFUSED = "weights_only"
"""Class of the incident (kind ``checkpoint``) of a checkpoint that its trainer's own ``torch.load`` would not take."""


def _foresee_load(builder: StepBuilder, event: CheckpointEvent, known: KnownCheckpoint) -> None:
    """Tell of a load that would fail at a restart while a person may be there; a resume that has worked refutes it.

    Several files a save: those count whose names differ in numbers only. ``load-whole-checkpoints`` is proposed, never
    taken: it lets each load of the trainer run code.
    """
    state, refusal = builder.state, event.refused
    if refusal is None and builder.open_of(REFUSED) is None:
        return
    works = state.attempt.resume_from is not None and state.attempt.beat_t is not None
    here = remedies.remedy_input(builder, said=WEIGHTS_ONLY)
    cures = [o for o in remedies.options(builder.knowledge.remedies, MISMATCH, here) if o.remedy.own_file]
    if refusal is not None and not works and (cures or refusal.explicit):
        if builder.open_of(REFUSED) is not None:
            return
        what = f"{base_name(known.path)} {refusal.words}"
        ways = [f"write weights_only=False in {refusal.place}"]
        for cure in cures if not refusal.explicit else ():
            command = builder.typed("restart", "--with", cure.remedy.name)
            ways.append(f"`{command}` sets {cure.changes[0].key}=1 ({cure.remedy.cost})")
        said = f"to let a restart load it, {', or '.join(ways)}"
        number = builder.warn("checkpoint", REFUSED, what, title=CANNOT_LOAD, explanation=said)
        if not refusal.explicit:
            remedies.propose(builder, tuple(cures), MISMATCH, number, why=f"{refusal.place} takes weights only")
        return
    newest = {kind_of_name(k.path): k.refused for k in sorted(builder.index.known, key=checkpoint_index.age_of)}
    if works or not cures or not any(newest.values()):
        builder.close_all("a resume has worked" if works else "the trainer would load it now", REFUSED)


CANNOT_LOAD = "a restart cannot load what is saved"
MISMATCH, WEIGHTS_ONLY = "checkpoint_mismatch", "Weights only load failed"
"""Class of that failure, and its message."""


def _while_saving(builder: StepBuilder) -> None:
    if isinstance(machine := builder.machine, Stopping) and machine.saving is not None:
        restarts.on_checkpoint_while_saving(builder, machine, machine.saving)


def _set_aside(builder: StepBuilder, known: KnownCheckpoint) -> bool:
    """Return whether a verified checkpoint cannot be a resume point; the reason is reported once."""
    if not known.complete or known.bad is not None or not known.own:
        return False
    in_doubt = checkpoint_index.DOUBTED if known.doubted else None
    why = known.left or in_doubt or builder.support.objection(known.shape, known.holds)
    if why != known.aside:
        builder.mark((known.path,), aside=why)
        builder.fact(CheckpointsSetAside(paths=(known.path,), why=why or "", left=known.left is not None))
    return why is not None


# Folders that the run is seen to save to become output folders: their checkpoints are watched and resumed from.
#
# What may be the run's and is not known to be is told at the first sight, while the person is there.


def on_output(builder: StepBuilder, seen: OutputSeen) -> None:
    """Take a sighting; one that comes after the end of an attempt may be of what it saved last."""
    state, knowledge = builder.state, builder.knowledge
    if isinstance(state.machine, Finished | EndedEarly | GivenUp):
        return
    named, wall = resume_point.is_named(state.log.diagnosis.tail, seen.path, knowledge.cwd), knowledge.created_wall
    number = state.attempt.number
    known = resume_point.with_sighting(state.saved.outputs, seen, created_wall=wall, attempt=number, named=named)
    builder.change("saved", outputs=known)
    accept_outputs(builder)
    resume_choice.tell_output(builder)


def on_lines(builder: StepBuilder, text: str) -> None:
    """The log may name what has just appeared."""
    state = builder.state
    outputs = resume_point.with_log(state.saved.outputs, text, builder.knowledge.cwd, builder.t)
    if outputs is not state.saved.outputs:
        builder.change("saved", outputs=outputs)
        accept_outputs(builder)


def accept_outputs(builder: StepBuilder, *, over: bool = False) -> None:
    """Take what is known for certain now. ``over``: the attempt has ended, and no further save of it will come."""
    state, training = builder.state, resume_choice.training_of(builder.state)
    training = replace(training, over=True) if over else training
    found = resume_point.to_accept(state.saved.outputs, training, builder.knowledge.output_dir, state.saved.checkpoints)
    for one in found:
        builder.change("saved", outputs=resume_point.accepted(builder.state.saved.outputs, one.folder))
        builder.fact(OutputKnown(folder=one.folder, why=one.evidence))
    if found:
        builder.close_all("it is known where the run saves", resume_choice.UNSURE)
    # A folder around it, which was taken for state of an unknown make, is none.
    around = {k.path for k in state.saved.checkpoints.known for one in found if is_below(one.folder, k.path)}
    if around:
        kept = tuple(k for k in state.saved.checkpoints.known if k.path not in around)
        builder.change("saved.checkpoints", known=kept)


# Which older checkpoints are deleted if ``[checkpoints] keep_last`` is set.
#
# After each new complete checkpoint a plan is made (act reads the files). Each deletion that it proposes is a decision
# of its own, so that it is in the journal before it happens. Each proposal is checked again against what is known of
# the run: only checkpoints that this run wrote are deleted, and never one that a restart could need. One whose time
# cannot be right is kept: a person may have copied it in.


def on_saved(builder: StepBuilder) -> None:
    """Ask for a plan after a new complete checkpoint, if there are more than are to be kept."""
    settings = builder.settings.checkpoints
    if settings.keep_last <= 0 or builder.state.saved.planned_deletion is not None or _in_doubt(builder):
        return
    own = [k for k in builder.index.known if _is_deletable(k) and k.complete and k.bad is None]
    if len(own) <= settings.keep_last:
        return
    order = builder.decide(
        PlanRetention,
        f"{len(own)} checkpoints of this run, {settings.keep_last} are to be kept: plan which to delete",
        keep=settings.keep_last,
        deep=settings.verify == "deep",
    )
    builder.change("saved", planned_deletion=order)


def on_planned(builder: StepBuilder, outcome: Outcome) -> None:
    """Delete what the plan proposes, if nothing prevents it."""
    builder.change("saved", planned_deletion=None)
    if not outcome.ok:
        builder.note(f"no checkpoint was deleted: {outcome.detail or 'no reason given'}")
        return
    if _in_doubt(builder) or not is_watched(builder.machine):
        return
    try:
        proposed = msgspec.convert(outcome.data.get("delete", ()), tuple[Checkpoint, ...])
    except msgspec.ValidationError:
        return
    why = f"{builder.settings.checkpoints.keep_last} newer verified ones are kept"
    for found in proposed:
        name, reported = found.name, builder.state.saved.kept
        if not _may_be_deleted(builder, found):
            continue
        if not gate.is_closed(builder):
            builder.decide(DeleteCheckpoint, f"delete {name}: {why}", checkpoint=found)
        elif found.path not in reported:
            there = {known.path for known in builder.index.known}
            builder.change("saved", kept=(*(path for path in reported if path in there), found.path))
            gate.tell(builder, "delete", f"delete {name}", f"deleted {name}", why, checkpoint=found.path)


def _in_doubt(builder: StepBuilder) -> bool:
    """Return whether something may be wrong with the training: an older checkpoint may be needed then."""
    return builder.attempt.nan_t is not None or any(
        i.kind in {"loss", "crash", "hang", "resume", "checkpoint"} for i in builder.state.journal.incidents
    )


def _is_deletable(known: KnownCheckpoint) -> bool:
    return known.own and known.unclear is None and known.changed is None and known.written is None


def _may_be_deleted(builder: StepBuilder, found: Checkpoint) -> bool:
    """Return whether it is verified, surely of this run, and of no save that a restart, copy or evaluation needs."""
    state, path = builder.state, found.path
    known, jobs = builder.checkpoint(path), (state.saved.evaluations.running, state.saved.backups.running)
    if known is None or not _is_deletable(known) or not known.complete or known.bad is not None:
        return False
    newest = resume_point.newest_verified(state.saved.checkpoints, builder.support)
    best = memory.best_there(state.saved.evaluations, state.saved.checkpoints.known)
    needed = (state.attempt.resume_from, newest.path if newest else None, best, *(job.path for job in jobs if job))
    saves = {numbers_in(base_name(each)) or each for each in needed if each is not None}
    return (numbers_in(found.name) or path) not in saves
