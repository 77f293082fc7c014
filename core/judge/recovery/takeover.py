"""What a supervisor does about a trainer that was launched or is found running, and about a run without a trainer."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...model.checkpoint import Checkpoint
from ...model.fact import AttemptEnded, AttemptStarted
from ...model.observation import Start
from ...model.preset import NO_PROFILE
from ...model.shipped import AppliedRemedy
from ...model.story import RunStory
from .. import findings, run_states
from ..findings import Pace
from ..handlers import checkpoint_jobs
from ..hang import deadlines
from ..hang.pauses import ActiveTime
from ..memory import AttemptLog, Evaluations, SettingsThatRan
from ..progress import AttemptProgress, begin_attempt, read_anew
from ..resume import checkpoint_index
from ..resume.checkpoint_index import GOOD, KnownCheckpoint, base_name
from ..run_states import BackingOff, Interrupted, Machine, RestartPlan, Running, Starting, Stopped, Stopping
from ..scales import SHOWN
from ..slow import Course, Stall
from ..state import JudgeState, StepBuilder, from_snapshot
from . import attempts, commands, gate, remedies, restarts, resume_choice
from .apply import before_lost_t
from .attempts import close_quiet

replace = msgspec.structs.replace

GO_ON = RestartPlan(reason="continue after an interruption")
OURS = {"resume_step", "may_take"}
"""What the judge knows of the beginning of an attempt."""


def go_on(builder: StepBuilder) -> None:
    """No trainer process exists: start, restart or wait, depending on the state that the last supervisor left."""
    machine = builder.machine
    again = replace(GO_ON, before_t=before_lost_t(builder))
    _lost(builder)
    if isinstance(machine, BackingOff) and (machine.need_bytes, machine.gpu_gone) != (None, None):
        builder.set(wake_t=run_states.wake_t(machine))  # a restored state has none
        return
    match machine:
        case Starting(then="hold"):
            restarts.after_end(builder, "hold", machine.next or restarts.STOP_IN_LAUNCH)
        case (
            BackingOff(plan=plan)
            | run_states.Preparing(plan=plan)
            | Stopping(then="restart", plan=plan)
            | Starting(then="restart", next=RestartPlan() as plan)
            | Starting(launched=False, plan=RestartPlan() as plan)
        ):
            restarts.clear_and_restart(builder, replace(plan, verified=None))
        case run_states.Idle():
            wanted = builder.knowledge.begin_from
            first = RestartPlan(reason="first launch", by="the start of the run", wanted=wanted)
            (attempts.launch if wanted is None else resume_choice.choose)(builder, first)
        case Stopping(then="end", plan=plan) if plan.deadline_t is not None:  # the machine ended before all was done
            builder.move("leave", Interrupted(), f"{plan.reason}; the next start goes on")
            restarts.clear_and_restart(builder, again)
        case Stopping(then=then, plan=plan):
            restarts.after_end(builder, "hold" if then == "end" else then, plan)
        case _ if isinstance(machine, Starting | run_states.Trains | Interrupted):
            if not isinstance(machine, Interrupted):
                builder.move("lost", Interrupted(), "the trainer ended while no supervisor was running")
            restarts.clear_and_restart(builder, again)
        case _:
            assert isinstance(machine, Stopped | run_states.Over)


def _lost(builder: StepBuilder) -> None:
    state = builder.state
    if run_states.is_live(state.machine):
        builder.fact(AttemptEnded(attempt=state.attempt.number, how="lost", last_step=state.attempt.step))
        attempts.remember_end(builder)


def started(builder: StepBuilder, start: Start) -> None:
    """A trainer process exists: the one that was launched, or one that was found running."""
    state = builder.state
    machine = state.machine
    now = state.time.now
    same = start.adopted and start.attempt == state.attempt.number
    if not same:
        _lost(builder)
    known = checkpoint_index.find(state.saved.checkpoints, start.resume_from) if start.resume_from is not None else None
    settings, launch = restarts.settings_of(state, start.profile), machine
    launch = launch if isinstance(launch, Starting) else Starting()
    # With weights alone it counts its steps from zero: as the launch reports, else the preset.
    restores = launch.restores
    if restores not in {"state", "weights"}:
        restores = builder.knowledge.preset.resume if start.resume_from is not None else None
    front = builder.in_front(start.resume_from)
    attempt = AttemptProgress(
        number=start.attempt,
        pid=start.pid,
        start_t=builder.t,
        resume_from=start.resume_from,
        resume_step=start.resume_step if start.resume_step is not None else known.step if known else None,
        resume_position=known.position if known is not None else None,
        resume_spread=known.spread if known is not None else 0,
        profile=start.profile,
        adopted=start.adopted,
        adopted_t=builder.t if start.adopted else None,
        weights_only=restores == "weights",
        stride=state.attempt.stride,
        resume_verdict="none" if start.resume_from is None else "open",
        told_resume=launch.told_resume,
        named=launch.named,
        resume_epoch=known.epoch if known is not None else None,
        resume_log_epoch=known.log_epoch if known is not None else None,
        former=restarts.former(state, settings, builder.knowledge.told.get(state.attempt.profile or "")),
        loss_settings=settings,
        resume_epochs=known.epochs_done if known is not None else None,
        changes=tuple(f"{c.key} {c.before} -> {c.after}" for c in start.changes[: 2 * SHOWN]),
    )
    if same:
        # A new supervisor: the attempt is known, and its log is read from the beginning again.
        lost_at = None if state.attempt.lost_at is None else now
        attempt = replace(read_anew(state.attempt, start.pid), adopted_t=builder.t, lost_at=lost_at)
    close_quiet(builder, "a new supervisor took over")
    resumed, course = attempt.resume_from is not None and not attempt.weights_only, state.course
    builder.set(
        attempts=max(state.attempts, start.attempt),
        taken_over=True,
        attempt=attempt,
        log=AttemptLog(
            reading=begin_attempt(state.log.reading, resumed=resumed, began=attempt.began),
            beating=same and state.log.beating,
        ),
        watch=deadlines.begin_watch(state.watch, now, same=same),
        course=Course(
            loss=findings.begin_attempt(course.loss),
            pace=Pace(s_per_step=course.pace.s_per_step),
            stall=Stall(usual_s=course.stall.usual_s, learned=course.stall.learned),
            saves=course.saves,
            saves_unread=course.saves_unread if same else (),
        ),
    )
    builder.change("time", stopped=False)
    builder.change("health", disk_low=None, oom_kills_before=state.health.host.oom_kills)
    if start.profile is not None:
        builder.change("policy", profile=start.profile)
    remedies.begin_attempt(builder, attempt.resume_epochs)
    if not same:
        builder.fact(
            AttemptStarted(
                **{n: getattr(start, n) for n in AttemptStarted.__struct_fields__ if n not in OURS},
                resume_step=None if front else attempt.resume_step,
                may_take=base_name(front[-1].path) if front else "",
            )
        )
    if start.adopted:
        checkpoint_jobs.set_time(builder)
    _stand(builder, start, same=same, was=machine)


def _stand(builder: StepBuilder, start: Start, *, same: bool, was: run_states.Machine) -> None:
    """The state of the run with this trainer. A stop that the last supervisor had decided is repeated."""
    if same and isinstance(was, Stopping) and not gate.is_closed(builder, was.plan):
        # The stop of this attempt was decided and is not done.
        restarts.stop(builder, was.then, was.plan, kill=was.kill)
        return
    if same and isinstance(was, run_states.Paused):
        builder.change("time", stopped=True)
        return
    if same and isinstance(was, run_states.Hung):
        builder.close_incident(was.incident, "a new supervisor took over")
    commands.follow_trainer(builder, f"attempt {start.attempt} {'adopted' if start.adopted else 'started'}")
    if isinstance(was, Starting) and was.then is not None and not (was.then == "end" and start.adopted):
        restarts.stop(builder, was.then, was.next or restarts.STOP_IN_LAUNCH)


# The judge's state of a run that has a journal: what was learned from its snapshot, the run's state from its story.

_MACHINES: dict[str, Machine] = {
    "idle": run_states.Idle(),
    "running": Running(),
    "stopped": Stopped(),
    "finished": run_states.Finished(),
    "ended_early": run_states.EndedEarly(),
    "given_up": run_states.GivenUp(),
    **dict.fromkeys(("interrupted", "cleaning", "backing_off"), Interrupted()),
}
"""The state for a new supervisor that has only the story, by its word there; in every other one a trainer may run."""


def from_story(
    story: RunStory, snapshot: Mapping[str, Any] | None, profile: str | None, newest_folder: int | None = None
) -> JudgeState:
    """Never fails: without a usable snapshot, durations and pace are learned again.

    ``newest_folder``: the highest number of an attempt that has a folder, 0 = none has, None = not known.
    """
    learned = from_snapshot(snapshot) if snapshot is not None else None
    state = learned if learned is not None else JudgeState()
    last = story.attempt
    applied = tuple(AppliedRemedy(name=r.name, changes=r.changes) for r in story.remedies)
    ran = next((a for a in reversed(story.attempts) if a.last_step is not None), None)  # its settings made steps last
    attempt = AttemptProgress() if last is None else state.attempt
    if last is not None and attempt.number != last.number:
        attempt = AttemptProgress(
            number=last.number,
            pid=last.pid or 0,
            start_t=last.t,
            resume_from=last.resume_from,
            resume_step=last.resume_step,
            profile=last.profile,
            adopted=last.adopted,
            step=last.last_step,
        )
    there = {k.path: k for k in state.saved.checkpoints.known}
    for found in story.checkpoints:
        before = there.get(found.path)
        if before is None or (before.mtime is not None and before.mtime != found.mtime):
            there[found.path] = _known(found, story)
    begun = max((a.number for a in story.attempts), default=0)
    # A launch that was decided and has no folder did not begin: its number is free.
    known = newest_folder if _is_pending(state) else None
    clock, policy, saved = state.watch.clock, state.policy, state.saved
    if last and last.number != state.attempt.number:
        clock = deadlines.begin_attempt(clock, 0.0)
    if ran is not None and policy.ran is None:
        policy = replace(policy, ran=SettingsThatRan(attempt=ran.number, profile=ran.profile, applied=applied))
    return replace(
        state,
        time=ActiveTime(t=story.t, away_s=min(state.time.away_s, story.t), unseen=state.time.unseen),
        machine=_machine(story, learned),
        wake_t=None,
        attempts=max(begun, state.attempts if known is None else max(known, state.attempts - 1)),
        attempt=attempt,
        log=replace(state.log, progress_t=None),
        watch=replace(state.watch, clock=clock),
        saved=replace(
            saved,
            checkpoints=replace(saved.checkpoints, known=tuple(there.values()), looked_t=story.t, looked_from=None),
            outputs=replace(saved.outputs, known=tuple(place.folder for place in story.outputs)),
            planned_deletion=None,
            end=None if saved.end is None else replace(saved.end, ordered=False),
            backups=replace(saved.backups, running=None),
            evaluations=Evaluations(
                scores=tuple(story.evaluations.values()),
                done={path: found.mtime for path, found in story.evaluations.items()},
                begun={path: (begun.mtime, begun.times, 0.0) for path, begun in story.evaluations_begun.items()},
                told=saved.evaluations.told,
            ),
        ),
        policy=replace(
            policy,
            budget=replace(policy.budget, used=story.budget_used),
            ramp=replace(policy.ramp, failed=story.failed_rungs),
            trained=policy.trained or any(a.last_step for a in story.attempts),
            applied=policy.applied or applied,
            # Where somebody switched, no profile is a choice, too.
            profile=story.profile if story.profile is not None or story.profile_switches else profile,
            profile_pending=(story.profile or NO_PROFILE) if story.profile_pending else None,
            # The story's step is as old as the last progress written down; the snapshot was taken at the end itself.
            failed_position=policy.failed_position if policy.failed_position is not None else story.overall_step,
        ),
        operator=replace(state.operator, act=story.act if story.act != story.act_settings else None),
        journal=replace(
            state.journal,
            # Every decision has a record of its own, so the journal's count is beyond all their ids.
            decision=max(state.journal.decision, story.seq),
            incident=max([state.journal.incident, *(i.id for i in story.incidents)]),
            incidents=story.open_incidents,
            metric_folders=tuple(files.folder for files in story.metric_files),
        ),
    )


def _machine(story: RunStory, learned: JudgeState | None) -> Machine:
    """The state that the last supervisor left.

    A snapshot is written with every change of state, so the newest one has all of it: who asked for a stop, and what
    was to follow. If it does not fit the story (cut off, of another version), the state is derived from the story.
    """
    machine = _MACHINES.get(story.state, Starting(launched=True))
    if learned is not None and run_states.WORDS[run_states.name_of(learned.machine)] == story.state:
        machine = learned.machine
    held, last = isinstance(machine, Starting) and machine.then == "hold", story.attempt
    if held or not isinstance(machine, Starting | run_states.Trains):
        return machine
    if last is None:
        return run_states.Idle()
    if learned is not None and machine is learned.machine and _is_pending(learned) and learned.attempts > last.number:
        return machine
    # The journal may say that the newest attempt is over: then nothing of it can be running.
    return machine if last.ended_t is None else Interrupted()


def _is_pending(state: JudgeState) -> bool:
    """Whether a launch was decided and nothing was heard of it."""
    return isinstance(state.machine, Starting) and not state.machine.launched


def _known(checkpoint: Checkpoint, story: RunStory) -> KnownCheckpoint:
    good = checkpoint.verdict in GOOD and not checkpoint.unknown_make
    unclear = None if checkpoint.understood else (checkpoint.verdict, checkpoint.reason or checkpoint.verdict)
    aside = story.set_aside.get(checkpoint.path)
    return KnownCheckpoint(
        path=checkpoint.path,
        t=max(0.0, min(story.t, story.written_t(checkpoint))),
        mtime=checkpoint.mtime,
        size_bytes=float(checkpoint.size_bytes),
        step=checkpoint.step,
        epoch=checkpoint.epoch,
        position=checkpoint.step,
        complete=good,
        own=story.origin(checkpoint) == "run",
        unsure=story.origin(checkpoint) == "unknown",
        bad=None if good or unclear is not None else (checkpoint.reason or checkpoint.verdict),
        form="directory" if checkpoint.kind == "directory" else None,
        holds=checkpoint.holds,
        left=aside.why if aside is not None and aside.left else None,
        aside=None if aside is None else aside.why,
        unclear=unclear,
        unknown_make=checkpoint.unknown_make,
        is_state=unclear is not None,
    )
