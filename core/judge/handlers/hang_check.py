"""Hangs: when the rules are asked, and what follows: people are told first, then evidence, then the stop."""

import math

import msgspec

from ...model.decision import CaptureStacks, LookForLoop
from ...model.observation import Outcome, ProcessSample
from ...model.progress import Outlook
from ...model.run import Evidence
from ...model.text import LazyPattern
from .. import findings, memory
from ..hang import deadlines, liveness, pauses, rules
from ..hang.deadlines import HangInput, Quiet, SavePhase
from ..knowledge import Knowledge
from ..memory import Cause, Failed
from ..progress import knows_its_step
from ..recovery import policy
from ..recovery.apply import answer_failure
from ..recovery.attempts import close_quiet
from ..recovery.commands import follow_trainer, withdraw
from ..recovery.ending import ended_well
from ..resume import resume_point
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..run_states import Hung, RestartPlan, Suspended, is_watched
from ..scales import HALF_MINUTE_S, LAG_S, LASTS_S, TWICE, WHILE_S
from ..state import JudgeState, StepBuilder
from ..text.lines import plain

replace = msgspec.structs.replace

NO_PROGRESS = "no_progress"
"""Class of the incident (kind ``stall``) of a run that makes no new highest step."""


def check_hang(builder: StepBuilder) -> None:
    """Ask the rules that are due. Most observations come soon after a step, and nothing is."""
    state, setting, now = builder.state, builder.settings.hang, builder.now
    silence_s = now - state.watch.clock.last
    late, fault = silence_s >= deadlines.FLOOR_SHARE * setting.min_s, state.watch.gpu_fault
    stalled = now - state.watch.peak.at >= setting.max_s and state.watch.clock.beats > 0
    if not (late or stalled or state.watch.quiet or fault) or not _may_hang(state):
        return
    if fault is not None and state.watch.clock.last > fault.at:  # a step shows that it is not needed
        builder.change("watch", gpu_fault=None)
    run = _input(builder.knowledge, builder.state)
    _check_silence(builder, run)
    if stalled or builder.open_of(NO_PROGRESS) is not None:
        _check_progress(builder, run)


def _may_hang(state: JudgeState) -> bool:
    """A trainer that waits for a person is not hung, and without any log none is known to be."""
    blind = state.log.unread and not state.log.reads_beats and state.log.reads_log is None
    watched = is_watched(state.machine) and not (blind or isinstance(state.machine, Hung | Suspended))
    return watched and not state.time.stopped and (state.watch.asks_since is None or _goes_on(state))


def _goes_on(state: JudgeState) -> bool:
    """Steps came after something began to wait for input: a helper does, or a wrapper ("press enter to stop")."""
    return state.watch.clock.last > (state.watch.asks_since or 0.0) + LASTS_S


def _input(knowledge: Knowledge, state: JudgeState) -> HangInput:
    newest, line = resume_point.newest_verified(state.saved.checkpoints), plain(state.log.diagnosis.fold.rest).strip()
    return HangInput(
        now=state.time.now,
        t=state.time.t,
        period_s=state.time.period_s or 1.0,
        hang=knowledge.settings.hang,
        ended_well=not knowledge.stages and ended_well(state, knowledge.told.get(state.attempt.profile or "")),
        step=state.attempt.step,
        checkpoint_age_s=state.time.t - (state.attempt.start_t if newest is None else newest.t),
        save=save_in_progress(state),
        has_saved=any(known.own and known.complete for known in state.saved.checkpoints.known),
        question=line[-120:] if QUESTION.search(line) is not None else "",
        **msgspec.structs.asdict(state.watch),
    )


def is_over(builder: StepBuilder) -> bool:
    """Whether a hang that waits for an answer would not be declared now: signs of life are back."""
    if builder.state.operator.withheld is None or not isinstance(builder.machine, Hung):
        return False
    run = _input(builder.knowledge, builder.state)
    return rules.no_progress(run) is None and rules.judge(run) is None


def _check_silence(builder: StepBuilder, run: HangInput) -> None:
    """Open or close the incident *quiet*, and declare a hang if ending the run costs less than waiting."""
    found = [case for case in rules.cases(run) if min(case.due_s, case.told_s) <= 0.0]
    sign = min(found, key=lambda case: case.due_s > 0.0, default=None)  # the first that counts, or of which is told
    due_t = None if sign is None else _due_t(builder.state, run, sign)
    ends = due_t is not None and due_t <= builder.t
    if not ends:
        _look_for_loop(builder, run)
    if sign is not None and builder.state.watch.quiet is None and (sign.told_s <= 0.0 or not ends):
        _open_quiet(builder, run, sign, capture=not ends)
    if sign is None:
        saves = f"a save is in progress: {run.save}"
        signs = saves if run.save else "there are signs of life again, or the log prints"
        close_quiet(builder, "training advances" if run.now - run.clock.last < run.floor_s else signs)
    elif ends:
        declare(builder, run, sign)
    else:
        assert builder.state.watch.quiet is not None
        builder.change("watch.quiet", due_t=due_t)


def outlook_of(knowledge: Knowledge, state: JudgeState) -> Outlook:
    """Return what is expected of the next step, for people who look at it."""
    known, clock = pauses.habit(state.watch.phase_times, state.progress.phase), state.watch.clock
    patient_s = state.attempt.patient_until - state.time.now
    first = clock.slow_s is None and clock.block.n > 0  # without the wait for the first line (imports, data)
    hang_t = None if state.watch.quiet is None else state.watch.quiet.due_t
    if state.watch.quiet is None and state.time.now - clock.last >= rules.STILL_S and _may_hang(state):
        run = _input(knowledge, state)
        still = next((case for case in rules.cases(run) if case.still), None)
        hang_t = None if still is None else _due_t(state, run, still)
    return Outlook(
        usual_s=clock.block.max_s if first else deadlines.usual_s(clock),
        pause_s=max(clock.pause_s, known.longest_s, known.quiet_s),
        hang_t=hang_t,
        patient_t=state.time.t + patient_s if patient_s > 0 else None,
    )


def _due_t(state: JudgeState, run: HangInput, case: rules.Case) -> float | None:
    """When the attempt is ended for it if all stays as it is, in run seconds; None = it is not.

    When the evidence has lasted for its deadline, ending the run costs less than waiting, and nobody asked to wait.
    """
    # A look at this silence shows work, and none later a loop?
    works = case.weight in {"even", "weak"} and run.loops.since == run.since and run.loops.moving
    worth_s = case.worth_ending_from(loss_s(state)) - case.silent_s
    due_s = max(case.due_s, worth_s, state.attempt.patient_until - run.now, 0.0)
    return None if works or due_s == math.inf else state.time.t + due_s


def _look_for_loop(builder: StepBuilder, run: HangInput) -> None:
    """Ask for a look at busy processes, if one is due."""
    watch, asked_s = builder.state.watch.loops, run.now - builder.state.watch.loops.asked_at
    if not rules.can_loop(run):
        return
    known_s = 0.0 if watch.agreed else watch.silent_s / 2.0  # honest work is not looked at all the time
    wait_s = HALF_MINUTE_S if watch.order else max(pauses.AGAIN * run.hang.min_s, known_s)
    if watch.since != run.since:
        watch = pauses.LoopWatch(since=run.since)
    elif asked_s < wait_s:
        return
    elif watch.waits and asked_s > run.gpus_rest_s:  # a wait that an earlier look found is over: they worked after it
        watch = replace(watch, agreed=0, places=(), waits=False)
    gpu = rules.can_wait(run)
    what = "are in a loop or wait for a GPU that does nothing" if gpu else "are in a loop"
    why = f"no step, but the processes are busy: look whether they {what}; nothing is ended yet"
    order = builder.decide(LookForLoop, why, gpu=gpu)
    builder.change("watch", loops=replace(watch, order=order, asked_at=run.now, silent_s=run.silence_s))


def _open_quiet(builder: StepBuilder, run: HangInput, sign: rules.Case, *, capture: bool) -> None:
    """Tell people of the silence, and collect evidence. ``capture``: the hang that follows at once does not do it."""
    number = builder.warn(
        "quiet",
        sign.kind,
        _reason(run, sign),
        title=f"quiet ({sign.kind})",
        evidence=rules.evidence_of(run, sign.first),
        detect_s=_since_sign_s(builder),
    )
    why = "take evidence of the silence; nothing is ended yet"
    order = builder.decide(CaptureStacks, why, incident=number) if capture else 0
    builder.change("watch", quiet=Quiet(incident=number, capture=order))


def on_quiet_evidence(builder: StepBuilder, quiet: Quiet, outcome: Outcome) -> None:
    """Add what the stacks show to the incident *quiet*; a save lasts until its file is complete."""
    _see_save(builder, outcome)
    if signs := _add_signs(builder, quiet.incident, outcome):
        builder.change("watch.quiet", kind=signs[0].kind, signs=tuple(sign.what for sign in signs))


def _add_signs(
    builder: StepBuilder, number: int, outcome: Outcome | None, *, names: bool = False
) -> tuple[rules.Sign, ...]:
    """Add what the stacks show to the evidence of an open incident. ``names``: it gets the kind that they show."""
    incident, signs = builder.find_incident(number), rules.signs_of(outcome)
    if incident is None or not signs:
        return ()
    class_ = signs[0].kind if names else incident.class_
    said = (*incident.evidence, *(Evidence(what=sign.what) for sign in signs))
    builder.update_incident(number, evidence=said, class_=class_)
    return signs


def _check_progress(builder: StepBuilder, run: HangInput) -> None:
    """The slow clock: no new highest step of this attempt, whatever else the run does."""
    case, state = rules.no_progress(run), builder.state
    if case is None:
        builder.close_all("a new highest step, or an evaluation or a save that advances", NO_PROGRESS)
        return
    if builder.open_of(NO_PROGRESS) is None:
        told = rules.evidence_of(run, case.first)
        builder.warn("stall", NO_PROGRESS, case.reason, title="no progress", evidence=told)
    due_t = _due_t(state, run, case)
    if due_t is not None and due_t <= builder.t and not isinstance(state.machine, Hung):
        declare(builder, run, case)


def declare(builder: StepBuilder, run: HangInput, case: rules.Case) -> None:
    """Open the incident of a hang; its evidence is captured before anything is ended."""
    state, quiet, kind = builder.state, builder.state.watch.quiet, case.kind
    signs: tuple[str, ...] = ()
    if quiet is not None and quiet.kind is not None and kind != "exiting" and state.watch.pause.stopped != "part":
        kind, signs = quiet.kind, quiet.signs
    reason = _reason(run, case)
    number = builder.open_incident(
        "hang",
        kind,
        reason,
        severity="info" if kind == "exiting" else "danger",
        evidence=rules.evidence_of(run, case.first, signs),
        confidence=case.likelihood,
        detect_s=_since_sign_s(builder),
    )
    ending = f"it became a hang (incident {number})"
    close_quiet(builder, ending, "hang")
    builder.close_all(ending, NO_PROGRESS, ended_by="hang")
    builder.notify("incident", f"hang ({kind})", reason, incident=number)
    capture = builder.decide(CaptureStacks, "take evidence of the hang before anything is ended", incident=number)
    builder.move("hang", Hung(incident=number, capture=capture, until_t=builder.t + HALF_MINUTE_S), case.reason)


def _since_sign_s(builder: StepBuilder) -> float:
    """The time since the last step, or since the launch before the first one, in seconds."""
    attempt = builder.attempt
    return builder.t - (attempt.beat_t if attempt.beat_t is not None else attempt.start_t)


def _reason(run: HangInput, case: rules.Case) -> str:
    """The reason, with the rank for which the others wait if it can be told."""
    rank = pauses.silent(run.ranks, run.t)
    return f"{case.reason}; {rank}" if rank and not run.pause.ranks else case.reason


def end_hung(builder: StepBuilder, machine: Hung, outcome: Outcome | None = None) -> None:
    """Stop the trainer, after the evidence was captured or timed out. A save that it shows gets its own deadline."""
    _see_save(builder, outcome)
    in_save, lost = save_in_progress(builder.state), builder.state.watch.gpu_fault
    if in_save and rules.judge(_input(builder.knowledge, builder.state)) is None:
        builder.close_incident(machine.incident, f"a save is in progress: {in_save}")
        follow_trainer(builder, "a save is in progress")
        return
    incident = builder.find_incident(machine.incident)
    # What a process waits for is better evidence than what its GPU and CPU looked like, but no better than a stop.
    known = incident is None or incident.class_ == "exiting" or builder.state.watch.pause.stopped == "part"
    _add_signs(builder, machine.incident, outcome, names=not known)
    incident = builder.find_incident(machine.incident)
    if must_wait(builder):
        mounts = builder.state.watch.liveness.silent_mounts
        for_what = f"until {', '.join(mounts)} answers" if mounts else "until it is free"
        builder.set(machine=replace(machine, blocked=True), wake_t=None)
        builder.note(f"a process is blocked in the kernel (state D), which no signal ends: nothing is done {for_what}")
        return
    policy.remember(builder)
    attempt, class_ = builder.attempt, incident.class_ if incident is not None else "idle"
    cause = Cause(
        kind="hang",
        class_=class_ if lost is None else "gpu_lost",
        attempt=attempt.number,
        position=attempt.position,
        in_save=bool(in_save),
    )
    reason = incident.reason if incident is not None else "it hung"
    advice = builder.catalogue.class_of("hang").remedies
    plan = RestartPlan(reason=f"restart after a hang ({class_})", incident=machine.incident)
    answer_failure(builder, Failed(cause=cause, incident=machine.incident, reason=reason, advice=advice), plan)


def _see_save(builder: StepBuilder, outcome: Outcome | None) -> None:
    frame = rules.save_frame(outcome)
    if frame:
        builder.change("watch.saving", frame=frame)


def must_wait(builder: StepBuilder) -> bool:
    """Return whether a stop has to wait: a process is blocked in the kernel. If all its mounts answer, not for ever."""
    seen, now = builder.state.watch.liveness, builder.now
    if not liveness.is_blocked(seen):
        return False
    if seen.answer_from is None or seen.blocked_from is None:
        return True
    return now - seen.answer_from < WHILE_S or now - seen.blocked_from < TWICE * WHILE_S


def on_freed(builder: StepBuilder, machine: Hung) -> None:
    """A process that was blocked is free: a full learned deadline runs before anything is ended."""
    state = builder.state
    if must_wait(builder):
        return
    if liveness.is_blocked(state.watch.liveness):
        free = replace(machine, blocked=False)
        builder.set(machine=free)
        end_hung(builder, free)
        return
    builder.change("watch.peak", at=builder.now)
    withdraw(builder, "the blocked process is free again: it gets the time of a usual silence")


# A trainer that waits at its terminal for an answer. It is not hung, and a restart would ask the same question.
#
# Sources: wandb's choice of an account at the start, Hugging Face's "trust remote code? [y/N]", scripts that ask
# before they overwrite an output directory. Known false alarms: a process that sleeps for another reason; so if the
# kernel does not show what it waits for, the last line of the log must end like a prompt. A helper that waits for input
# all the time: once steps follow, its wait keeps no hang from being seen.

ASKS = "asks"
"""Class of the incident (kind ``stall``)."""
SURE_S = 15.0
"""How long it must wait before people are notified: a person at the terminal answers sooner."""
PROMPT = LazyPattern(r"[?:>)\]]\s*$")
"""End of an unfinished last line that asks for something."""

QUESTION = LazyPattern(r"\?\s*(?:[\[(][^\])?]{0,80}[\])])?\s*:?$")
"""The same of a line that certainly does: ``Overwrite? [y/N]``."""


def check_question(builder: StepBuilder, sample: ProcessSample) -> None:
    """Report the question, and that it was answered. If the kernel is not sure, the log must ask for input, too."""
    state, since, now = builder.state, builder.state.watch.asks_since, builder.now
    line = plain(state.log.diagnosis.fold.rest)
    if sample.asks is None or (sample.asks != "yes" and PROMPT.search(line) is None):
        if since is not None:
            peak = replace(state.watch.peak, at=state.watch.peak.at + (now - since))
            builder.change("watch", asks_since=None, clock=replace(state.watch.clock, last=now), peak=peak)
        builder.close_all("it was answered", ASKS)
    elif since is None:
        close_quiet(builder, "it waits for an answer")
        builder.change("watch", asks_since=now)
    elif _goes_on(state):
        builder.close_all("training advances", ASKS)
    elif builder.open_of(ASKS) is None and now - since >= SURE_S:
        shown = f' ("{line.strip()[-120:]}")' if line.strip() else ""
        where = "in its own terminal" if state.attempt.adopted else f"with `{builder.typed('attach')}`"
        what = f"the trainer waits for an answer{shown}: give it {where}"
        builder.warn("stall", ASKS, what, title="waits for an answer")


# What it costs to end an attempt that may be alive: the number that hang/rules.py weighs against waiting.


def loss_s(state: JudgeState) -> float:
    """Return what ending the attempt costs, in seconds: the training since its newest checkpoint, and a start.

    Where an earlier attempt was ended for a hang at the same step, it is all that is left of the run: two hangs at one
    step give the run up, while a trainer that makes a long pause there by design goes on by itself.
    """
    attempt, newest = state.attempt, resume_point.newest_verified(state.saved.checkpoints)
    reload_s = state.watch.phase_times.start.longest_s
    if attempt.beat_t is None:
        return reload_s
    since_t = attempt.start_t if newest is None else max(attempt.start_t, newest.t)
    again_s = max(0.0, attempt.beat_t - since_t) + reload_s
    epochs = state.policy.budget.epochs
    hung_here = memory.hung_at(state.policy.history, attempt.position, epochs, attempt.stride)
    if not (knows_its_step(attempt) and hung_here):
        return again_s
    left_s = findings.eta_s(state.course.pace, state.progress)
    return max(again_s, 8 * 3600.0 if left_s is None else left_s)  # a night, if its end is unknown


def save_in_progress(state: JudgeState) -> str:
    """Return what shows a save that is not complete, as a clause; "" = nothing does."""
    attempt = state.attempt
    last_t = attempt.start_t if attempt.beat_t is None else attempt.beat_t
    newest = [known for known in state.saved.checkpoints.known if known.own and known.t >= last_t - LASTS_S]
    unfinished = next((known for known in newest if _is_unfinished(known)), None)
    if unfinished is not None:
        return f"{base_name(unfinished.path)} is not complete"
    if attempt.beat_t is None or any(known.complete and known.t >= last_t - LAG_S for known in newest):
        return ""
    if state.watch.log_activity.phase == "save" and state.watch.log_activity.trusted:
        return "the log announced it"
    return f"the stack shows {state.watch.saving.frame}" if state.watch.saving.frame else ""


def _is_unfinished(known: KnownCheckpoint) -> bool:
    """Whether it is being written, or what is written last is missing."""
    if known.complete or known.unknown_make:
        return False
    torn = known.damage is not None and known.damage[0] == "torn"
    return torn or known.unfinished or (known.damage is None and known.unclear is None)


def on_save_file(builder: StepBuilder, known: KnownCheckpoint) -> None:
    """Take a checkpoint of this run that changed."""
    watch, saving = builder.state.watch, builder.state.watch.saving
    if not known.complete:
        if saving.begun_at is None and _is_unfinished(known):
            builder.change("watch.saving", begun_at=builder.now)
        return
    begun_at = watch.clock.last if saving.begun_at is None else saving.begun_at
    took_s = max(0.0, builder.now - (builder.t - known.t) - begun_at)
    times = pauses.learned(watch.phase_times, "save", took_s, 0.0)
    builder.change("watch", saving=SavePhase(took_s=max(saving.took_s, took_s)), phase_times=times)
