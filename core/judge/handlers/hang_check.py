"""When the detector runs, and what follows from a verdict: people are told first, then evidence, then the stop."""

import msgspec

from ...model.attempt import Evidence
from ...model.decision import CaptureStacks, LookForLoop
from ...model.observation import Outcome, ProcessSample
from ...model.patterns import LazyPattern
from ...model.record import Entry
from ..hang import deadlines, detector, evidence, launcher, liveness, pauses, ranks
from ..hang import deadlines as step_clock
from ..hang import deadlines as step_peak
from ..hang import detector as cost
from ..hang.evidence import Quiet
from ..knowledge import Knowledge
from ..memory import Cause, Failed
from ..recovery import policy
from ..recovery.apply import answer_failure
from ..recovery.attempts import close_quiet
from ..recovery.commands import follow_trainer
from ..recovery.ending import ended_well
from ..resume import resume_point
from ..run_states import Hung, Queued, RestartPlan, Suspended, is_watched
from ..state import JudgeState, Result, StepBuilder
from ..text.lines import plain
from . import saving
from .saving import loss_s

replace = msgspec.structs.replace

CAPTURE_S = 30.0
"""Longest wait for the evidence (py-spy) before the stop."""
TOLD_FROM_S = 5.0
"""A shorter silence says nothing: readings come about once a second."""
NO_PROGRESS = "no_progress"
"""Class of the incident (kind ``stall``) of a run that makes no new highest step."""


def check_hang(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Run the detectors that are due. Most observations come soon after a step, and nothing is."""
    setting = knowledge.settings.hang
    now = pauses.now(state.time)
    silence_s = now - state.clock.last
    late = silence_s >= deadlines.FLOOR_SHARE * setting.min_s
    stalled = now - state.peak.at >= setting.max_s and state.clock.beats > 0
    if not late and not stalled and state.quiet is None and state.gpu_fault is None:
        return state, entries
    if state.time.stopped or isinstance(state.machine, Hung | Suspended | Queued) or not is_watched(state.machine):
        return state, entries
    period_s = state.time.period_s or 1.0
    run = _input(knowledge, state, now, period_s)
    builder = StepBuilder(knowledge, state)
    late = silence_s >= deadlines.floor_s(setting.min_s, period_s)
    # A trainer that waits for a person is not hung; a restart would ask the same question.
    if late and state.asks_since is None:
        _check_silence(builder, run)
    elif state.quiet is not None:
        close_quiet(builder, "training advances")
    _check_lost_gpu(builder, run)
    if state.asks_since is None and (stalled or any(i.class_ == NO_PROGRESS for i in state.incidents)):
        _check_progress(builder, run)
    return builder.state, (*entries, *builder.entries)


def _input(knowledge: Knowledge, state: JudgeState, now: float, period_s: float) -> deadlines.HangInput:
    setting = knowledge.settings.hang
    return deadlines.HangInput(
        now=now,
        period_s=period_s,
        clock=state.clock,
        liveness=state.liveness,
        log_activity=state.log_activity,
        phase_times=state.phase_times,
        ended_well=ended_well(state),
        step=state.attempt.step,
        checkpoint_age_s=None if setting.checkpoint_age_s is None else _checkpoint_age_s(state),
        warmup_beats=setting.warmup_steps,
        min_s=setting.min_s,
        idle_io_bytes_per_s=setting.idle_io_bytes_per_s,
        saving=saving.in_progress(state),
        has_saved=any(known.own and known.complete for known in state.checkpoints.known),
        silent_rank=ranks.silent(state.ranks, state.time.t),
        begun_again=state.launcher.restarts > 0,
        waiting=launcher.waiting(state.launcher),
        joining_s=launcher.joining_s(state.launcher),
        stopped_s=_stopped_s(state),
        stopped_ranks=state.pause.ranks,
    )


def is_over(knowledge: Knowledge, state: JudgeState) -> bool:
    """Whether a hang that waits for an answer would not be declared now: signs of life are back."""
    if state.withheld is None or not isinstance(state.machine, Hung):
        return False
    now = pauses.now(state.time)
    limit_s = step_peak.limit_s(step_clock.usual_s(state.clock), knowledge.settings.hang.max_s)
    if limit_s is not None and stalled_for_s(state, now) >= limit_s:
        return False
    return detector.judge(_input(knowledge, state, now, state.time.period_s or 1.0), knowledge.settings.hang) is None


def _stopped_s(state: JudgeState) -> float | None:
    pause = state.pause
    return state.time.t - pause.since_t if pause.stopped == "part" and pause.since_t is not None else None


def _checkpoint_age_s(state: JudgeState) -> float:
    newest = resume_point.newest_verified(state.checkpoints)
    return state.time.t - (state.attempt.start_t if newest is None else newest.t)


def _check_silence(builder: StepBuilder, run: deadlines.HangInput) -> None:
    """Open or close the incident *quiet*, and declare a hang if ending the run costs less than waiting."""
    state, setting = builder.state, builder.knowledge.settings.hang
    verdict = detector.judge(run, setting)
    if verdict is None or verdict.weight not in {"certain", "strong"}:
        verdict = detector.in_loop(run, setting, state.loops) or verdict
    ends = verdict is not None and _is_due(builder, run, verdict)
    if not ends:
        _look_for_loop(builder, run)
    sign = verdict if verdict is not None else detector.judge(run, setting, detector.QUIET_SHARE)
    if sign is None:
        if state.quiet is not None:
            saves = f"a save is in progress: {run.saving}"
            close_quiet(builder, saves if run.saving else "there are signs of life again, or the log prints")
        return
    if state.quiet is None:
        open_quiet(builder, sign, capture=not ends)
    if verdict is not None and ends:
        declare(builder, verdict)
        return
    quiet = builder.state.quiet
    assert quiet is not None
    builder.set(quiet=replace(quiet, due_t=_due_t(builder, run, sign)))


def due_t(knowledge: Knowledge, state: JudgeState) -> float | None:
    """Return when a silence becomes a hang if all stays as it is, in run seconds; None = not known, or none begins."""
    if state.quiet is not None:
        return state.quiet.due_t
    now = pauses.now(state.time)
    if now - state.clock.last < TOLD_FROM_S or state.asks_since is not None or state.time.stopped:
        return None
    if isinstance(state.machine, Hung | Suspended) or not is_watched(state.machine):
        return None
    run = _input(knowledge, state, now, state.time.period_s or 1.0)
    coming = detector.dead_from(run, knowledge.settings.hang)
    if coming is None:
        return None
    worth_s = cost.worth_ending_from(coming.weight, deadline_s=coming.deadline_s, loss_s=loss_s(state))
    return state.time.t + max(
        max(worth_s, coming.silent_s) - (now - state.clock.last), state.attempt.patient_until - now, 0.0
    )


def _due_t(builder: StepBuilder, run: deadlines.HangInput, sign: detector.Verdict) -> float:
    """When the silence becomes a hang if all stays as it is, in run seconds."""
    due_s = cost.worth_ending_from(sign.weight, deadline_s=sign.deadline_s, loss_s=loss_s(builder.state))
    patient_s = builder.state.attempt.patient_until - run.now
    return builder.t + max(due_s - sign.silent_s, patient_s, 0.0)


def _look_for_loop(builder: StepBuilder, run: deadlines.HangInput) -> None:
    """Ask for a look at busy processes, if one is due."""
    state, setting = builder.state, builder.knowledge.settings.hang
    if not detector.can_loop(run, setting):
        return
    since = deadlines.last_progress(run.clock, run.log_activity)
    if pauses.is_due(state.loops, since=since, now=run.now, min_s=setting.min_s, lost_s=CAPTURE_S):
        gpu = detector.can_wait(run, setting)
        what = "are in a loop or wait for a GPU that does nothing" if gpu else "are in a loop"
        why = f"no step, but the processes are busy: look whether they {what}; nothing is ended yet"
        order = builder.decide(LookForLoop, why, attempt=state.attempt.number, gpu=gpu)
        builder.set(loops=pauses.asked(state.loops, order, since=since, now=run.now, rest_s=detector.gpus_rest_s(run)))


def on_look(builder: StepBuilder, outcome: Outcome) -> None:
    """Take what a look at the busy processes found."""
    builder.set(loops=pauses.answered(builder.state.loops, outcome))


def _is_due(builder: StepBuilder, run: deadlines.HangInput, verdict: detector.Verdict) -> bool:
    state = builder.state
    if run.now < state.attempt.patient_until:
        return False
    since = deadlines.last_progress(run.clock, run.log_activity)
    if verdict.weight in {"even", "weak"} and pauses.shows_work(state.loops, since):
        return False
    return cost.is_worth_ending(
        verdict.weight, silent_s=verdict.silent_s, deadline_s=verdict.deadline_s, loss_s=loss_s(state)
    )


def open_quiet(builder: StepBuilder, sign: detector.Verdict, *, capture: bool) -> None:
    """Tell people of the silence, and collect evidence. ``capture``: the hang that follows at once does not do it."""
    reason = _reason(builder, sign)
    number = builder.warn(
        "quiet",
        sign.kind,
        reason,
        title=f"quiet ({sign.kind})",
        evidence=_evidence(sign),
        detect_s=_since_sign_s(builder),
    )
    order = 0
    if capture:
        order = builder.decide(
            CaptureStacks,
            "take evidence of the silence; nothing is ended yet",
            incident=number,
            attempt=builder.state.attempt.number,
        )
    builder.set(quiet=Quiet(incident=number, capture=order))


def on_quiet_evidence(builder: StepBuilder, quiet: Quiet, outcome: Outcome) -> None:
    """Add what the stacks show to the incident *quiet*; a save lasts until its file is complete."""
    _see_save(builder, outcome)
    incident = builder.find_incident(quiet.incident)
    signs = evidence.signs_of(outcome)
    if incident is not None and signs:
        seen = tuple(Evidence(what=sign.what) for sign in signs)
        builder.update_incident(incident.id, evidence=(*incident.evidence, *seen))
        builder.set(quiet=replace(quiet, kind=signs[0].kind, signs=tuple(sign.what for sign in signs)))


def _check_lost_gpu(builder: StepBuilder, run: deadlines.HangInput) -> None:
    """A GPU of the run is lost: a step shows that it is not needed, and a silence ends without further wait."""
    state = builder.state
    fault = state.gpu_fault
    if fault is None or isinstance(state.machine, Hung):
        return
    if state.clock.last > fault.at:
        builder.set(gpu_fault=None)
        return
    verdict = detector.lost_gpu(run, builder.knowledge.settings.hang, fault.at)
    if verdict is not None:
        declare(builder, replace(verdict, evidence=(fault.text, *verdict.evidence)))


def _check_progress(builder: StepBuilder, run: deadlines.HangInput) -> None:
    """The slow clock: no new highest step of this attempt, whatever else the run does."""
    state, setting = builder.state, builder.knowledge.settings.hang
    known = next((i for i in state.incidents if i.class_ == NO_PROGRESS), None)
    limit_s = step_peak.limit_s(step_clock.usual_s(state.clock), setting.max_s)
    stalled_s = stalled_for_s(state, run.now)
    if limit_s is None or stalled_s < limit_s:
        if known is not None:
            builder.close_incident(known.id, "a new highest step, or an evaluation or a save that advances")
        return
    verdict = detector.no_progress(run, limit_s, stalled_s)
    if known is None:
        builder.warn("stall", NO_PROGRESS, verdict.reason, title="no progress", evidence=_evidence(verdict))
    if stalled_s < verdict.deadline_s or isinstance(builder.state.machine, Hung):
        return
    if run.now >= state.attempt.patient_until and detector.can_tell(run):
        declare(builder, verdict)


def stalled_for_s(state: JudgeState, now: float) -> float:
    """Return for how long no step was higher than ever and no evaluation or save advanced, in active seconds."""
    works_at = max(state.liveness.file_at or 0.0, state.log_activity.work_bar_at)
    return now - max(state.peak.at, works_at if works_at > state.clock.last else 0.0)


def declare(builder: StepBuilder, verdict: detector.Verdict) -> None:
    """Open the incident of a hang; its evidence is captured before anything is ended."""
    state = builder.state
    stopped = state.pause.stopped == "part"
    if state.quiet is not None and state.quiet.kind is not None and verdict.kind != "exiting" and not stopped:
        verdict = replace(verdict, kind=state.quiet.kind, evidence=(*verdict.evidence, *state.quiet.signs))
    reason = _reason(builder, verdict)
    number = builder.open_incident(
        "hang",
        verdict.kind,
        reason,
        severity="info" if verdict.kind == "exiting" else "danger",
        evidence=_evidence(verdict),
        confidence=cost.likelihood(verdict.weight, silent_s=verdict.silent_s, deadline_s=verdict.deadline_s),
        detect_s=_since_sign_s(builder),
    )
    close_quiet(builder, f"it became a hang (incident {number})", "hang")
    for incident in builder.state.incidents:
        if incident.class_ == NO_PROGRESS:
            builder.close_incident(incident.id, f"it became a hang (incident {number})", ended_by="hang")
    builder.notify("incident", f"hang ({verdict.kind})", reason, incident=number)
    capture = builder.decide(
        CaptureStacks,
        "take evidence of the hang before anything is ended",
        incident=number,
        attempt=state.attempt.number,
    )
    builder.move("hang", Hung(incident=number, capture=capture, until_t=builder.t + CAPTURE_S), verdict.reason)


def _since_sign_s(builder: StepBuilder) -> float:
    """The time since the last step, or since the launch before the first one, in seconds."""
    attempt = builder.state.attempt
    return builder.t - (attempt.beat_t if attempt.beat_t is not None else attempt.start_t)


def _reason(builder: StepBuilder, verdict: detector.Verdict) -> str:
    """The reason, with the rank for which the others wait if it can be told."""
    rank = ranks.silent(builder.state.ranks, builder.t)
    return f"{verdict.reason}; {rank}" if rank and not builder.state.pause.ranks else verdict.reason


def _evidence(verdict: detector.Verdict) -> tuple[Evidence, ...]:
    return tuple(Evidence(what=what) for what in verdict.evidence)


def end_hung(builder: StepBuilder, machine: Hung, outcome: Outcome | None = None) -> None:
    """Stop the trainer, after the evidence was captured or timed out. A save that it shows gets its own deadline."""
    _see_save(builder, outcome)
    in_save, lost = saving.in_progress(builder.state), builder.state.gpu_fault
    now, period_s = pauses.now(builder.state.time), builder.state.time.period_s or 1.0
    run = _input(builder.knowledge, builder.state, now, period_s)
    if in_save and lost is None and detector.judge(run, builder.knowledge.settings.hang) is None:
        builder.close_incident(machine.incident, f"a save is in progress: {in_save}")
        follow_trainer(builder, "a save is in progress")
        return
    incident = builder.find_incident(machine.incident)
    signs = evidence.signs_of(outcome)
    if incident is not None and signs:
        seen = tuple(Evidence(what=sign.what) for sign in signs)
        # What a process waits for is better evidence than what its GPU and CPU looked like, but no better than a stop.
        known = incident.class_ == "exiting" or builder.state.pause.stopped == "part"
        class_ = incident.class_ if known else signs[0].kind
        builder.update_incident(machine.incident, evidence=(*incident.evidence, *seen), class_=class_)
        incident = builder.find_incident(machine.incident)
    if must_wait(builder):
        mounts = builder.state.liveness.silent_mounts
        for_what = f"until {', '.join(mounts)} answers" if mounts else "until it is free"
        builder.set(machine=replace(machine, blocked=True), wake_t=None)
        builder.note(f"a process is blocked in the kernel (state D), which no signal ends: nothing is done {for_what}")
        return
    policy.remember(builder)
    attempt = builder.state.attempt
    class_ = incident.class_ if incident is not None else "idle"
    failed = Failed(
        cause=Cause(
            kind="hang",
            class_=class_ if lost is None else "gpu_lost",
            attempt=attempt.number,
            position=attempt.position,
            in_save=bool(in_save),
        ),
        incident=machine.incident,
        reason=incident.reason if incident is not None else "it hung",
        advice=builder.knowledge.catalogue.class_of("hang").remedies,
    )
    plan = RestartPlan(reason=f"restart after a hang ({class_})", incident=machine.incident)
    answer_failure(builder, failed, plan)


def _see_save(builder: StepBuilder, outcome: Outcome | None) -> None:
    frame = evidence.save_frame(outcome)
    if frame:
        builder.set(saving=replace(builder.state.saving, frame=frame))


def must_wait(builder: StepBuilder) -> bool:
    """Return whether a stop has to wait, because a process is blocked in the kernel.

    If all its mounts answer, a second deadline runs: it may wait for something that a restart ends.
    """
    seen, now = builder.state.liveness, pauses.now(builder.state.time)
    if not liveness.is_blocked(seen):
        return False
    again_s = deadlines.BLOCKED_S
    if seen.answer_from is None or seen.blocked_from is None:
        return True
    return now - seen.answer_from < again_s or now - seen.blocked_from < 2.0 * again_s


def on_freed(builder: StepBuilder, machine: Hung) -> None:
    """A process that was blocked is free: a full learned deadline runs before anything is ended."""
    state = builder.state
    if must_wait(builder):
        return
    if liveness.is_blocked(state.liveness):
        free = replace(machine, blocked=False)
        builder.set(machine=free)
        end_hung(builder, free)
        return
    now = pauses.now(state.time)
    builder.close_incident(machine.incident, "the blocked process is free again: it gets the time of a usual silence")
    builder.set(clock=step_clock.restart_wait(state.clock, now), peak=replace(state.peak, at=now))
    follow_trainer(builder, "the blocked process is free again")


# A trainer that waits at its terminal for an answer. It is not hung, and a restart would ask the same question.
#
# Sources: wandb's choice of an account at the start, Hugging Face's "trust remote code? [y/N]", scripts that ask
# before they overwrite an output directory. Known false alarms: a process that sleeps for another reason; so if the
# kernel does not show what it waits for, the last line of the log must end like a prompt.

ASKS = "asks"
"""Class of the incident (kind ``stall``)."""
SURE_S = 15.0
"""How long it must wait before people are notified: a person at the terminal answers sooner."""
PROMPT = LazyPattern(r"[?:>)\]]\s*$")
"""End of an unfinished last line that asks for something."""


def asks(state: JudgeState, sample: ProcessSample) -> bool:
    """Return whether it waits for an answer.

    If the kernel does not show it for certain, the last line of the log must ask for input, too.
    """
    if sample.asks is None:
        return False
    return sample.asks == "yes" or PROMPT.search(_last_line(state)) is not None


def check(builder: StepBuilder, sample: ProcessSample) -> None:
    """Report the question, and that it was answered."""
    state = builder.state
    now = pauses.now(state.time)
    known = next((i for i in state.incidents if i.class_ == ASKS), None)
    if not asks(state, sample):
        if state.asks_since is not None:
            waited_s = now - state.asks_since
            builder.set(
                asks_since=None,
                clock=step_clock.restart_wait(state.clock, now),
                peak=step_peak.excuse(state.peak, waited_s),
            )
        if known is not None:
            builder.close_incident(known.id, "it was answered")
        return
    if state.asks_since is None:
        builder.set(asks_since=now)
    elif known is None and now - state.asks_since >= SURE_S:
        line = _last_line(state).strip()[-120:]
        shown = f' ("{line}")' if line else ""
        where = "in its own terminal" if state.attempt.adopted else f"with `{builder.knowledge.typed('attach')}`"
        builder.warn(
            "stall", ASKS, f"the trainer waits for an answer{shown}: give it {where}", title="waits for an answer"
        )


def _last_line(state: JudgeState) -> str:
    return plain(state.diagnosis.fold.rest)
