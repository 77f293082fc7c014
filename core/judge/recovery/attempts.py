"""The start and the end of an attempt, and the ends of a run: finished, ended early, given up."""

import msgspec

from ...model.decision import GiveUp, RequestSave, StartAttempt
from ...model.fact import AttemptEnded, CheckpointsSetAside, ProfileChanged, ProgressMade
from ...model.observation import Exit, Outcome
from ...model.preset import NO_PROFILE
from ...model.progress import PLAIN, HoldKind, Progress, Why
from ...model.run import DIVERGING, OTHER_TRAINER, EndedBy, EndFacts
from ...model.story import ways_on
from .. import findings, run_states
from .. import state as unseen
from ..handlers import checkpoint_jobs
from ..knowledge import Knowledge
from ..memory import failed_starts, nth_wait_s
from ..progress import whole_epochs
from ..resume import checkpoint_index, resume_point
from ..resume.checkpoint_index import base_name
from ..resume.resume_check import stays_open
from ..scales import HOUR_S, KEPT, LAG_S, LASTS_S, TWICE
from ..slow import MISSING
from ..state import JudgeState, StepBuilder
from . import gate, policy
from .remedies import merged

replace = msgspec.structs.replace


def launch_after_delay(builder: StepBuilder, plan: run_states.RestartPlan) -> None:
    """Back off, or launch at once if the plan has no delay."""
    if plan.delay_s <= 0.0:
        launch(builder, plan)
        return
    waiting = run_states.BackingOff(plan, builder.t + plan.delay_s)
    builder.move("back_off", waiting, f"next attempt in {plan.delay_s:.0f} s: {plan.reason}")


PASSING: dict[HoldKind, tuple[str, str]] = {
    "no_room": ("a disk is full", "make room there"),
    "read_only": ("a disk is read-only", "it goes on once it can be written again (`mount` shows it)"),
    "no_resources": (
        "no process, memory or open file is free",
        "it goes on once others leave some; a limit of yours is raised with `ulimit` before trainwatch starts",
    ),
    "not_started": ("no trainer could be started in time", "the machine is overloaded, or its disk does not answer"),
    "program_gone": ("trainwatch was uninstalled", "it goes on once trainwatch is installed there again"),
    "other_trainer": ("another trainer runs", "it goes on once that one is over"),
    "not_read": ("the resume point cannot be verified", "`resume --from CHECKPOINT` takes another one"),
}
"""Why a launch waits and is tried again without a charge: key of its outcome → title and what helps."""


HELD: dict[HoldKind, str] = {
    "bad_in_front": "held: the trainer would take a bad checkpoint",
    "gpu_memory": "held: the GPU memory is not released",
    "not_copied": "held: a checkpoint cannot be copied aside",
    "not_understood": "held: what is saved is not understood",
    "other_trainer": "held: another trainer runs",
    "refused_checkpoint": "held: the requested checkpoint cannot be used",
    "unclear_output": "held: it is not known who saved a checkpoint",
}
"""Why no attempt follows until a person orders one → what is told."""


def hold(
    builder: StepBuilder,
    plan: run_states.RestartPlan,
    kind: HoldKind,
    reason: str,
    ways: tuple[str, ...] = (),
    *,
    incident: int | None = None,
) -> None:
    """No attempt follows until a person acts. ``ways``: what they can do, a sentence each; ``incident``: about it."""
    builder.close_incident(plan.incident, HELD[kind])
    builder.move("hold", run_states.Stopped(), reason, Why(kind, incident))
    number = plan.incident if incident is None else incident
    builder.notify("warning", HELD[kind], "\n".join((reason, *ways)), incident=number)
    for way in ways:
        builder.note(way)


def launch_again_later(builder: StepBuilder, plan: run_states.RestartPlan, kind: HoldKind, why: str) -> None:
    """``kind`` of PASSING prevented a launch: again after a while; beside another trainer never from the beginning."""
    (what, how), known = PASSING[kind], builder.open_of(OTHER_TRAINER) if kind == "other_trainer" else None
    other = None if known is None else known.id
    if kind == "other_trainer" and plan.fresh:
        hold(builder, plan, kind, why, (starts_again(builder.state, builder.knowledge),), incident=other)
        return
    least_s = max(plan.delay_s, LASTS_S if kind == "not_read" else 0.0)
    delay_s = max(least_s, nth_wait_s(builder.settings.restart.network_wait_s, len(plan.waited) + 1))
    until_t = builder.t + delay_s
    again = replace(plan, waited=(*plan.waited, kind)[-KEPT:])
    waiting = run_states.BackingOff(again, until_t, need_bytes=0.0)
    held = Why(kind, other, until_t=until_t)
    builder.move("no_room", waiting, f"{why}; it is launched again in {delay_s:.0f} s", held)
    if kind not in plan.waited:
        free = "no restart is charged for it"
        builder.notify("warning", f"held: {what}", f"{why}\n{how}; {free}", incident=plan.incident)


def launch(builder: StepBuilder, plan: run_states.RestartPlan) -> None:
    """Start the next attempt."""
    if gate.is_closed(builder, plan):
        gate.withhold(builder, "restart", plan, live=False)
        return
    checkpoint_jobs.set_time(builder)
    state, number = builder.state, builder.state.attempts + 1
    pending = state.policy.profile_pending
    profile = state.policy.profile if pending is None else None if pending == NO_PROFILE else pending
    builder.set(attempts=number)
    builder.change("policy", profile_pending=None, switch=False, profile=profile)
    if pending is not None:
        builder.fact(ProfileChanged(profile=profile, pending=False, why=f"from attempt {number} on"))
    known, begun = builder.checkpoint(plan.path), builder.checkpoint(builder.knowledge.begin_from)
    _leave_branch(builder, plan, number)
    where = _where(builder, plan)
    order = builder.decide(
        StartAttempt,
        f"{plan.reason}: start attempt {number} {where}",
        incident=plan.incident,
        attempt=number,
        resume_from=plan.path,
        resume_step=plan.step,
        profile=profile,
        changes=merged(state.policy.applied),
        steps_done=known.position if known is not None else None,
        epochs_done=known.epochs_done if known is not None else None,
        begun_steps=begun.position if begun is not None else None,
        begun_epochs=begun.epochs_done if begun is not None else None,
        exclude=state.policy.bad_nodes,
    )
    builder.move("launch", run_states.Starting(order=order, plan=plan), f"attempt {number} starts {where}")


def _where(builder: StepBuilder, plan: run_states.RestartPlan) -> str:
    return resume_point.start_in_words(plan.path, plan.step, builder.in_front(plan.path, plan.before_t))


def _leave_branch(builder: StepBuilder, plan: run_states.RestartPlan, number: int) -> None:
    """Set aside the checkpoints that are newer than the resume point: no restart takes them by itself."""
    known = builder.checkpoint(plan.path)
    if known is not None and known.left is not None:
        builder.mark((known.path,), left=None, aside=None)
        builder.fact(CheckpointsSetAside(paths=(known.path,), why=""))
    left = resume_point.left_behind(builder.index, plan.path, builder.support)
    if plan.path is None:
        left = tuple(dict.fromkeys((*left, *(k.path for k in resume_point.states(builder.index)))))
    to = "the beginning" if plan.path is None else base_name(plan.path)
    why = f"the run went back to {to} with attempt {number}"
    if left:
        builder.mark(left, left=why, aside=why)
        builder.fact(CheckpointsSetAside(paths=left, why=why, left=True))
    if left or plan.wanted is not None or plan.fresh:
        since = 0.0 if known is None or known.mtime is None else checkpoint_index.time_of(known)
        builder.change("saved.checkpoints", went_back=(since, builder.t, why))
    if plan.before_t is not None or (left and (plan.wanted is not None or plan.fresh)):
        best, epochs = (None, None) if known is None else (known.position, known.epochs_done)
        builder.change("policy.budget", best=best, epochs=epochs)


def on_launched(builder: StepBuilder, machine: run_states.Starting, outcome: Outcome) -> None:
    """The launch succeeded; its outcome tells how the checkpoint was passed to the trainer."""
    told, restores = outcome.data.get("told_resume"), outcome.data.get("resume")
    launched = replace(
        machine,
        told_resume=told if isinstance(told, bool) else None,
        restores=restores if isinstance(restores, str) else None,
        named=tuple(str(place) for place in outcome.data.get("resume_named") or ()),
    )
    builder.move("launched", launched)
    order = outcome.data.get("order")
    path = order.get("resume_from") if isinstance(order, dict) else None
    if told is False and isinstance(path, str):
        builder.note(
            f"{base_name(path)} cannot be passed to the command (write {{resume}} where its path belongs): "
            "unless it finds the checkpoint by itself, it starts from the beginning"
        )
    plan, number = machine.plan, builder.state.attempts
    tells = plan is not None and (bool(plan.by) or failed_starts(builder.state.policy.history) < TWICE)
    if number > 1 and plan is not None and machine.then != "hold" and tells:
        body = f"{plan.reason}: {_where(builder, plan)}"
        builder.notify("restart", f"attempt {number} started", body, incident=plan.incident)


def ended(builder: StepBuilder, how: str, observation: Exit | None) -> None:
    """Record the end of the attempt. ``how``: as in ``AttemptEnded``; ``observation``: its exit, None = not seen."""
    state, last_beat_t = builder.state, builder.attempt.beat_t
    builder.fact(
        AttemptEnded(
            attempt=state.attempt.number,
            how=how,
            code=observation.code if observation is not None else None,
            signal=observation.signal if observation is not None else None,
            last_step=state.attempt.step,
            # From its start to its last step: the numerator of ETTR.
            productive_s=0.0 if last_beat_t is None else max(0.0, last_beat_t - state.attempt.start_t),
            facts=end_facts(builder),
        )
    )
    if observation is not None and observation.left and how in {"finished", "ended_early"}:
        builder.note(f"left alone, because nothing shows that it trains: {', '.join(observation.left)}")
    remember_end(builder)


def remember_end(builder: StepBuilder) -> None:
    """Keep how far the run was, to tell later what was lost, and close the findings that concern this attempt only."""
    unseen.tell(builder)
    policy.remember(builder)
    attempt = builder.attempt
    if attempt.beat_t is not None and attempt.resume_verdict != "ignored":
        # A resume has worked: what is said of another checkpoint from now on is said for the first time.
        doubt = replace(builder.index.doubt, open=False, cleared=False)
        builder.change("saved.checkpoints", doubt=doubt)
    if attempt.step is not None and builder.state.log.progress_t != builder.t:
        builder.change("log", progress_t=builder.t)
        builder.fact(progress_made(builder.knowledge, builder.state))
    close_quiet(builder, "the attempt ended", "attempt")
    kinds, classes = {"stall", "loss", "progress"}, {MISSING, TERMINATION, OTHER_TRAINER}
    builder.close_where("the attempt ended", lambda i: i.kind in kinds or i.class_ in classes, ended_by="attempt")
    if attempt.position is not None:
        builder.change("policy", failed_position=attempt.position)


def conclude(builder: StepBuilder, reason: str, why: Why = PLAIN) -> None:
    """The run is finished: close all incidents and end the supervisor."""
    remember_end(builder)
    builder.close_where("the training finished", lambda incident: not stays_open(incident))
    builder.move("finish", run_states.Finished(), reason, why)
    builder.notify("finish", "finished", reason)
    checkpoint_jobs.end_watch(builder, "finish", reason, exit_code=0)


def give_up(
    builder: StepBuilder, reason: str, incident: int | None, advice: tuple[str, ...] = (), *, title: str = "given up"
) -> None:
    """No further attempt; notify, and end the supervisor. ``advice``: where to look, a sentence each."""
    builder.close_where("given up", lambda known: known.kind in {"crash", "hang", "resume"})
    builder.decide(GiveUp, reason, incident=incident)
    builder.move("give_up", run_states.GivenUp(), reason, Why(incident=incident))
    for sentence in advice:
        builder.note(sentence)
    over(builder, title, "\n".join((reason, *advice)), incident)


def over(builder: StepBuilder, title: str, body: str, incident: int | None) -> None:
    """No attempt follows by itself: tell people, run their command, and end the supervisor."""
    builder.notify("give_up", title, body, incident=incident)
    again = starts_again(builder.state, builder.knowledge)
    what = "ended early" if isinstance(builder.machine, run_states.EndedEarly) else "given up"
    checkpoint_jobs.end_watch(builder, "give_up", f"{what}; {again}", incident=incident)


def close_quiet(builder: StepBuilder, ending: str, by: EndedBy = "") -> None:
    """Close the incident *quiet* if it is open. ``ending``: how the silence ended."""
    quiet = builder.state.watch.quiet
    if quiet is not None:
        builder.change("watch", quiet=None)
        builder.close_incident(quiet.incident, ending, ended_by=by)


def end_facts(builder: StepBuilder) -> EndFacts:
    """What was so when an attempt ended, beside its log: the diagnosis counts it, and the journal keeps it.

    A trainer that chooses its checkpoint by itself and made no step took the newest file, as far as can be told.
    """
    state = builder.state
    low, verdict, path = state.health.disk_low, None, state.attempt.resume_from
    front = builder.in_front(path) if state.attempt.beat_t is None else ()
    known = front[-1] if front else builder.checkpoint(path)
    if known is not None and known.damage is not None:
        verdict = known.damage[0]
    elif known is not None:
        verdict = "complete" if known.complete and known.bad is None else None
    host, kills_before = state.health.host, state.health.oom_kills_before
    kills = None if host.oom_kills is None or kills_before is None else host.oom_kills - kills_before
    swap, swap_total = host.swap_used_bytes, host.swap_total_bytes
    return EndFacts(
        disk_free_bytes=host.disk_free_bytes if low is None else low.free_bytes,
        disk_free_inodes=host.disk_free_inodes,
        swap_used=round(swap / swap_total, 3) if swap is not None and swap_total else None,
        oom_kills=kills,
        checkpoint=verdict,
        kernel=state.log.diagnosis.kernel,
        diverged=state.course.loss.diverges or None,
    )


def cannot_be_told(knowledge: Knowledge) -> bool:
    """Whether the command has no place for a checkpoint's path and the settings leave a new start to a person.

    A start would begin anew and write over what was saved. Known false alarm: a trainer that finds its newest
    checkpoint by itself; ``[restart] if_not_told = "go_on"`` is for it.
    """
    if knowledge.resume_support.forms or knowledge.preset.resume == "none":
        return False
    return knowledge.settings.restart.if_not_told == "wait"


def starts_again(state: JudgeState, knowledge: Knowledge) -> str:
    """The commands that start a run that is over, as a clause."""
    if cannot_be_told(knowledge) and resume_point.newest_verified(state.saved.checkpoints) is not None:
        return f"to start it again: {ways(knowledge)}"
    return f"`{knowledge.typed('resume')}` starts again"


def ways(knowledge: Knowledge) -> str:
    """The commands that go on with a run whose command has no place for a checkpoint, as a clause."""
    return ways_on((knowledge.run_id,) if knowledge.run_id else ())


# When a trainer is asked for a checkpoint: before a stop that a person orders, and at danger signs.
#
# ``[run] save_signal`` or ``save_file`` says how. It is not asked if nothing would be gained or harm could be done: a
# trainer that hangs cannot answer, one whose loss is NaN would save NaN, one that started over would write over the
# checkpoints of the run.


TERMINATION = "termination"
"""Class of the incident (kind ``health``): the cloud announced the end of this machine."""


def is_wanted(builder: StepBuilder) -> bool:
    """Whether the trainer can be asked now, and a checkpoint would save steps."""
    state = builder.state
    if not can_ask(state, builder.knowledge) or not isinstance(state.machine, run_states.Running):
        return False
    attempt = state.attempt
    if attempt.nan_t is not None or attempt.resume_verdict in {"open", "ignored"} or not attempt.place_is_sure:
        return False
    newest = resume_point.newest_verified(state.saved.checkpoints)
    saved = None if newest is None else newest.latest
    return attempt.position is None or saved is None or saved < attempt.position


def can_ask(state: JudgeState, knowledge: Knowledge) -> bool:
    """Whether there is a way to ask this trainer for a checkpoint."""
    return knowledge.can_ask_to_save or state.log.beating


def request(builder: StepBuilder, reason: str, incident: int | None = None, *, stop: bool = False) -> int:
    """Ask for a checkpoint. Returns the id of the decision. ``stop``: it is ended after that."""
    builder.change("saved", save_asked_t=builder.t)
    return builder.decide(RequestSave, reason, incident=incident, stop=stop)


def on_danger(builder: StepBuilder, why: str, incident: int | None) -> None:
    """A sign that the machine may end the trainer soon: save what there is."""
    asked_t = builder.state.saved.save_asked_t
    if not is_wanted(builder) or (asked_t is not None and builder.t - asked_t < HOUR_S / 2):
        return
    if gate.is_closed(builder):
        builder.change("saved", save_asked_t=builder.t)
        what = "the trainer for a checkpoint"
        gate.tell(builder, "save", f"ask {what}", f"asked {what}", why, incident=incident)
    else:
        request(builder, f"ask for a checkpoint: {why}", incident)


def came(state: JudgeState, asked_t: float) -> bool:
    """Whether a checkpoint that was asked for then is complete, and none is being written."""
    new = [k for k in state.saved.checkpoints.known if k.own and k.bad is None and k.t >= asked_t - LAG_S]
    return bool(new) and all(k.complete for k in new)


def shown_progress(knowledge: Knowledge, state: JudgeState) -> Progress:
    """Progress for people: with the total that the settings know if the log shows none, and the time left."""
    now, attempt = state.log.reading.now, state.attempt
    run, told = now.run, knowledge.told.get(attempt.profile or "")
    resumed = attempt.resume_from is not None and attempt.resume_verdict != "ignored"
    before = whole_epochs(attempt, run.whole or run.total)
    progress = findings.with_told(state.progress, run, told, resumed=resumed, epochs_before=before)
    epoch = progress.epoch
    if run.step is not None or epoch is None:
        return findings.with_own_pace(progress, state.course.pace, state.watch.clock.step_s)
    # A log that prints an epoch as it ends, and no step. One that was read late tells no times.
    first, last = attempt.first_beat_t, attempt.beat_t
    if attempt.adopted or first is None or last is None or run.first_named is None:
        return progress
    return findings.with_epoch_pace(progress, epoch - run.first_named, last - first, epoch + (run.base == 0))


def progress_made(knowledge: Knowledge, state: JudgeState) -> ProgressMade:
    """How far the attempt is, for the journal."""
    now, shown = state.attempt, shown_progress(knowledge, state)
    at, whole = now.offset or 0, now.former.total
    # A bar of what was left at the resume point: its steps and its total count on from there.
    rest = bool(at) and at == now.resumed_at and None not in {shown.run_total_steps, whole}
    rest = rest and abs((shown.run_total_steps or 0) + at - (whole or 0)) <= TWICE
    return ProgressMade(
        attempt=now.number,
        progress=shown,
        overall_step=now.position,
        step_offset=at if rest else now.step_offset,
        stride=now.stride,
        loss_state=findings.state_of(
            state.course.loss,
            is_nan=state.log.reading.now.loss_is_nan,
            diverges=any(i.class_ == DIVERGING for i in state.journal.incidents),
        ),
        loss_floor=state.course.loss.floor,
    )
