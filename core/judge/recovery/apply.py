"""From a failure, or NaN, to what follows it: ``answer_failure`` collects, policy.py chooses, ``apply`` writes.

``apply`` is the only place that carries an answer out: the journal's facts, the budget, the settings of the next
attempt, and the stage that comes next.
"""

from typing import Any, Literal, assert_never

import msgspec

from ...model import run
from ...model.checkpoint import Verdict
from ...model.decision import CaptureStacks
from ...model.fact import BudgetChanged, CheckpointsSetAside
from ...model.observation import CheckpointValues
from ...model.progress import Why
from ...model.run import DIVERGING, Evidence
from ...model.shipped import EvidenceLine
from ...model.text import LazyPattern, plural
from .. import memory
from ..failure.catalogue import channel_state, diagnosis_of_class
from ..failure.diagnosis import at_end, hidden_failure
from ..hang.deadlines import usual_s
from ..memory import Cause, Failed
from ..progress import knows_its_step
from ..resume import checkpoint_index, resume_point
from ..resume.checkpoint_index import DOUBTED, KnownCheckpoint, Unread, Values, base_name, values_of, with_values
from ..run_states import RestartPlan, Stopped, is_live, is_watched
from ..scales import LASTS_S, MINUTE_S, TWICE
from ..state import JudgeState, StepBuilder
from ..text.reading import LossRun, Reading
from . import gate, policy, remedies, restarts, resume_choice
from .attempts import give_up
from .policy import NAN, Again, Answer, FailureInput, Finish, GiveUpRun, Hold
from .resume_choice import choose

replace = msgspec.structs.replace


def answer_failure(builder: StepBuilder, failed: Failed, plan: RestartPlan, *, ordered: str = "") -> None:
    """Decide what follows a failure and carry it out.

    ``plan``: the next attempt as it would be without any change. ``ordered``: who ordered the end.
    """
    cause = failed.cause
    if plan.before_t is None:
        plan = replace(plan, before_t=before_lost_t(builder, cause))
    if builder.attempt.place_is_sure:
        builder.change("policy", budget=memory.failed(builder.state.policy.budget, cause.position))
    cause = replace(cause, epochs=builder.state.policy.budget.epochs)
    state, settings, known, index = builder.state, builder.settings, builder.state.policy, builder.index.known
    attempt, health, class_ = state.attempt, state.health, builder.catalogue.class_of(cause.class_)
    may_fall_back = settings.restart.max_restarts > 0 and failed.settings_at_fault and class_.settings != "never"
    launched, most = cause.kind != "launch", settings.restart.max_restarts
    given = attempt.resume_from is not None and attempt.beat_t is None
    crashed = given and cause.kind == "crash"
    wrong_way, other_way = resume_choice.wrong_way(builder, cause, failed.reason) if crashed else ("", ())
    unproven = resume_choice.advice(builder, refuted=False) if given and launched and not wrong_way else ()
    # NaN shows some steps after its cause.
    stride = max(attempt.stride, (known.budget.every or 0) // 2 if cause.kind == "nan" else 0)
    kernel = [finding for finding in state.log.diagnosis.findings if finding.line == 0]
    fault, lost = state.watch.gpu_fault, any(finding.failure == "gpu_lost" for finding in kernel)
    # The kernel said that the only GPU of the run is lost until a reset, and no step came after that.
    reset = fault is not None and state.watch.clock.last <= fault.at and len(health.gpus_of_run) < 2
    older = resume_point.newest_verified(builder.index, builder.support, before_t=plan.before_t)
    before = resume_point.newest_verified(builder.index, before_t=plan.before_t)
    saved = plan.before_t is None or (before is not None and before.own and before.t >= attempt.start_t)
    own = [k for k in index if k.own and k.complete and k.bad is None]
    largest = max((k.size_bytes or 0.0 if k.disk_bytes is None else k.disk_bytes for k in own), default=0.0)
    older_helps = class_.older_checkpoint_helps and cause.kind == "crash"
    # What may pass is no proof against a file from before the run: the trainer may skip it.
    bad = [k.path for k in index if k.damage is not None and (k.own or not failed.retryable)]
    not_loaded = any(not checkpoint_index.names_another_file(cause.line, path) for path in bad)
    may_be_it = cause.kind == "crash" and not class_.elsewhere and class_.name != "unknown"  # as after a SIGKILL
    plan = replace(plan, not_loaded=not_loaded and may_be_it and attempt.beat_t is None)
    taken = plan.not_loaded and bool(builder.in_front(attempt.resume_from))  # the run is held for it
    curable = failed.retryable or taken or (class_.older_checkpoint_helps and older is not None)
    trained = policy.has_trained(state)
    again = memory.came_back(known.history, cause, attempt.stride) or not (curable or trained)
    names_other, ours = checkpoint_index.names_another_file, (cause.given, builder.knowledge.output_dir)
    # What ended one after its steps is the file of an evaluation or an export, which no attempt had.
    misses = _MISSING.search(cause.line) and not any(c.stepped and c.line == cause.line for c in known.history)
    # the cause line clears the settings
    outside = cause.kind == "crash" and failed.retryable and not class_.retryable
    remedy: remedies.Option | None = None
    waiting: tuple[remedies.Option, ...] = ()
    if launched and not outside:
        seen = memory.count(known.history, cause.class_)
        remedy, waiting = remedies.choose(builder, _key(cause), seen, again=again, said=cause.line)
    failed = replace(failed, cause=cause)
    failure = FailureInput(
        **msgspec.structs.asdict(failed),
        plan=plan,
        restart=settings.restart,
        run=tuple(filter(None, (builder.knowledge.run_id,))),
        began_anew=attempt.resume_from is None if launched else plan.fresh,
        spent=known.budget.used >= most or known.budget.unsaved >= TWICE * most,
        restarts_made=max(known.budget.used, known.budget.unsaved),
        trained=trained,
        saved=attempt.saved and saved,
        wrong_way=wrong_way,
        other_way=other_way,
        unproven_resume=unproven,
        changes=attempt.changes if launched and attempt.beat_t is None else (),
        waits_for="gpu" if reset or (lost and health.gpus_usable is False) else class_.waits_for,
        gpus_usable=False if reset else health.gpus_usable,
        ordered=ordered,
        nan_action=cause.diverged or settings.nan.action,
        curable=curable,
        unread="" if class_.elsewhere else _unread(builder, failed, plan, at_once=older_helps),
        elsewhere=class_.elsewhere,
        misses=bool(misses) and all(names_other(cause.line, path) for path in ours if path),
        settings="never" if outside else class_.settings,
        step_matters=class_.step_matters and not outside,
        history=known.history,
        stride=stride,
        step_known=knows_its_step(attempt),
        gpu_channel=channel_state(state.log.diagnosis.kernel, builder.catalogue),
        rung=remedies.rung(builder) if launched else None,
        ran_before=policy.settings_that_ran(state, started=launched) if may_fall_back else None,
        remedy=remedy,
        waiting=waiting,
        disk_free_bytes=health.host.disk_free_bytes,
        disk_need_bytes=run.need_bytes(largest, health.host.disk_total_bytes),
        inodes_left=run.has_inodes(health.host.disk_free_inodes),
        kernel=tuple(finding.text for finding in kernel),
        still_open=tuple(i.reason for i in state.journal.incidents if i.kind in {"health", "disk", "stall"}),
    )
    answer = policy.choose(failure)
    if cause.kind == "crash":
        plan = gate.with_order(builder, plan)
    # A trainer that crashed and is given up has ended already.
    acts = cause.lives or not isinstance(answer, GiveUpRun)
    if acts and not isinstance(answer, Hold) and gate.is_closed(builder, plan):
        gate.withhold(builder, answer.then, plan, live=cause.lives, failed=failed, how=answer.how)
        return
    apply(builder, failure, answer)


_MISSING = LazyPattern(r"\bFileNotFoundError\b|\bNo such file or directory\b")


def _key(cause: Cause) -> str:
    """The failure's name in remedies.toml."""
    return f"hang:{cause.class_}" if cause.kind == "hang" else cause.class_


def _unread(builder: StepBuilder, failed: Failed, plan: RestartPlan, *, at_once: bool) -> Unread:
    """What follows for the checkpoint that the attempt was given; a trainer that chooses by itself is given none.

    ``at_once``: the first end with it says enough. See checkpoint_index.py.
    """
    index, support, cause, doubt = builder.index, builder.support, failed.cause, builder.index.doubt
    path = cause.given
    if cause.kind != "crash" or cause.stepped or path is None or support.by_itself or support.unnamed or doubt.cleared:
        return ""
    if checkpoint_index.names_another_file(failed.reason, path):
        return ""
    known = checkpoint_index.find(index, path)
    was_doubted = known is not None and known.doubted
    if doubt.open and not was_doubted and cause.said and cause.said == doubt.said:
        return "cleared"
    doubted = at_once or memory.unread(builder.state.policy.history, cause) >= TWICE
    if not doubted or was_doubted:
        return ""
    older = resume_point.newest_verified(checkpoint_index.passed_over(index, path, ""), support, before_t=plan.before_t)
    has_older = older is not None and not older.doubted and older.path != path
    # Else the run is held over one of an unknown make.
    return "passed_over" if has_older or (known is not None and known.unknown_make) else ""


def apply(builder: StepBuilder, failure: FailureInput, answer: Answer) -> None:
    incident, key = failure.incident, _key(failure.cause)
    match answer:
        case Finish():
            ending = RestartPlan(reason="the training is done: stop its process gently", incident=incident)
            restarts.stop(builder, answer.then, ending)
        case Hold():
            if failure.unread == "cleared":
                _count(builder, failure)
                # An older checkpoint ends in the same way: none is to blame, go back to the newest.
                paths = tuple(k.path for k in builder.index.known if k.doubted)
                builder.fact(CheckpointsSetAside(paths=paths, why=""))
                index = replace(builder.index, doubt=checkpoint_index.Doubt(cleared=True))
                builder.change("saved", checkpoints=checkpoint_index.changed(index, paths, aside=None, doubted=False))
            builder.close_incident(incident, answer.ending or answer.reason)
            builder.move("hold", Stopped(), f"{answer.reason}; held until resume or restart", Why(answer.why))
            advice = answer.advice or (f"nothing is started until `{builder.typed('resume')}`",)
            body = "\n".join((answer.reason, *advice))
            builder.notify("incident", answer.ending or "stopped, and held", body, incident=incident)
        case GiveUpRun():
            _count(builder, failure, counted=answer.counted)
            remedies.propose(builder, answer.proposed, key, incident)
            if not failure.cause.lives:
                give_up(builder, answer.reason, incident, answer.advice, title=answer.title)
                return
            reason = f"{failure.name}, and no restart follows"
            ending = replace(failure.plan, reason=reason, ending=answer.reason, advice=answer.advice)
            restarts.stop(builder, answer.then, ending)
        case Again():
            _again(builder, failure, answer)
        case _:
            assert_never(answer)


def _again(builder: StepBuilder, failure: FailureInput, answer: Again) -> None:
    """Write down what differs in the next attempt, charge for it, and begin the restart."""
    plan, incident, class_ = failure.plan, failure.incident, failure.cause.class_
    if answer.change:
        plan = replace(plan, reason=f"{plan.reason}, {answer.change}")
    if answer.passed_over:
        path, index = answer.passed_over, builder.index
        builder.note(f"{base_name(path)}: {DOUBTED}: the next attempt resumes from the one before, if there is one")
        builder.fact(CheckpointsSetAside(paths=(path,), why=DOUBTED))
        index = checkpoint_index.passed_over(index, path, failure.cause.said)
        builder.change("saved", checkpoints=checkpoint_index.changed(index, (path,), aside=DOUBTED))
    _count(builder, failure, counted=answer.counted, same_rung=answer.rung is None)
    if answer.to is not None:
        why = policy.go_back(builder, answer.to, class_, failure.reason, incident)
        # An attempt that began anew wrote nothing yet: so does the next one.
        plan = replace(plan, reason=why, fresh=failure.began_anew)
    if answer.rung is not None:
        remedies.step_down(builder, answer.rung.below, class_, failure.reason, incident)
    if answer.remedy is not None:
        remedies.take(builder, answer.remedy, _key(failure.cause), incident)
    remedies.propose(builder, answer.proposed, _key(failure.cause), incident)
    if answer.note:
        builder.note(answer.note)
    delay_s = answer.delay_s
    if answer.charged:
        charged, wait_s = memory.charge(builder.state.policy.budget, failure.restart)
        builder.change("policy", budget=charged)
        builder.fact(BudgetChanged(used=charged.used, max=failure.restart.max_restarts))
        delay_s = max(wait_s, delay_s) if answer.back_off else delay_s
    plan = replace(plan, delay_s=delay_s, need_bytes=answer.need_bytes, needs_gpu=answer.needs_gpu)
    if failure.cause.lives:
        restarts.stop(builder, answer.then, plan)
    elif failure.cause.kind == "launch":
        choose(builder, plan)
    else:
        restarts.clear_and_restart(builder, plan)


def _count(builder: StepBuilder, failure: FailureInput, *, counted: bool = True, same_rung: bool = True) -> None:
    """Append the failure to the history; the ramp's stretch without trouble ends. A failed launch does not count."""
    if not counted or failure.cause.kind == "launch":
        return
    builder.change("policy", history=memory.with_cause(failure.history, failure.cause))
    if same_rung and not failure.spent:
        remedies.end_stretch(builder)


# NaN: when it is acted on, and what is known of it at the end of an attempt.
#
# Sources: runs that trained on NaN for days and ended with exit status 0. Training does not come back from NaN weights,
# so each further step is lost. Known false alarms: an overflowing step under mixed precision prints NaN and is skipped;
# an average keeps one such value (text/reading.py tells both apart).
LAST_STEPS = 5
"""NaN steps in a row at the end of an attempt that are no accident. A gradient scaler skips a single one."""


def on_nan_steps(builder: StepBuilder, read: Reading) -> None:
    """The newest printed loss is NaN: act if it has been for ``[nan] steps``, as ``[nan] action`` says."""
    state, setting, losses = builder.state, builder.settings.nan, read.losses
    if not losses.is_nan_for(setting.steps) or _is_stained(state, losses):
        return
    since = "" if losses.nan_from is None else f", since step {losses.nan_from}"
    act_on_nan(builder, f"the loss was NaN for {plural(losses.nan_steps, 'step')}{since}", nan_position(state, read))


def on_divergence(builder: StepBuilder) -> None:
    """The loss is far above its floor for good: told, and acted on if ``[loss] diverged`` says so and it is ``FAR``."""
    seen, action = builder.state.course.loss, builder.settings.loss.diverged
    reason = f"the loss diverged: it is {builder.state.progress.loss:.3g}, its lowest was {seen.floor:.3g}"
    if builder.open_of(DIVERGING) is None:
        incident = builder.open_incident("loss", DIVERGING, reason, step=seen.since_step)
        builder.notify("warning", reason, "", incident)
    if action != "warn" and seen.is_far:
        act_on_nan(builder, reason, seen.since_step, seen.since_t, action)


def act_on_nan(
    builder: StepBuilder,
    reason: str,
    position: int | None,
    lost_t: float | None = None,
    diverged: Literal["rollback", "stop"] | None = None,
) -> None:
    """The training is lost since ``position``: end the attempt and go back, or only report it, as the settings say.

    ``lost_t``: run time of the first checkpoint that is not finite, or since which the loss is ``diverged``, which is
    what the settings say of that.
    """
    attempt, found = builder.attempt, diagnosis_of_class(builder.catalogue.class_of(NAN), 1.0, EvidenceLine(0, reason))
    before_t = min((t for t in (attempt.nan_t, lost_t) if t is not None), default=None)
    if any(i.class_ == NAN and i.attempt == attempt.number for i in builder.state.journal.incidents):
        return  # reported, and the settings say that nothing follows
    told: dict[str, Any] = {"evidence": (Evidence(what=reason),), "explanation": found.explanation}
    if (diverged or builder.settings.nan.action) == "warn":
        incident = builder.open_incident("loss", NAN, reason, **told)
        builder.notify("warning", "NaN", f'{reason}; it trains on ([nan] action = "warn")', incident)
        return
    incident = builder.open_incident("crash", NAN, reason, title=found.title, **told)
    builder.notify("incident", f"{found.title} ({NAN})", reason, incident)
    why = f"take evidence before the attempt is ended for its {'loss' if diverged else 'NaN'}"
    builder.decide(CaptureStacks, why, incident=incident)
    policy.remember(builder)
    cause = Cause(kind="nan", class_=NAN, attempt=attempt.number, position=position, diverged=diverged)
    failed = Failed(cause=cause, incident=incident, reason=reason, advice=found.remedies)
    back = f"back to the last checkpoint from before the {'divergence' if diverged else 'NaN'}"
    answer_failure(builder, failed, RestartPlan(reason=back, incident=incident, before_t=before_t))


def on_values(builder: StepBuilder, read: CheckpointValues) -> None:
    """The values of a checkpoint were read. One that is newly not finite is lost; ``on_nan_due`` acts on it."""
    before, there = builder.index, builder.checkpoint(read.path)
    if there is None or there.mtime != read.mtime:
        return
    index = with_values(before, read.path, read.nonfinite, read.nan, read.reason)
    builder.change("saved", checkpoints=index)
    for known in index.known:
        was = checkpoint_index.find(before, known.path)
        if was is not None and was.bad != known.bad:
            verdict: Verdict = "complete" if known.bad is None else "nonfinite"
            builder.tell_checkpoint(known, verdict)
    state = builder.state
    if state.attempt.lost_at is None and is_live(state.machine) and _first_lost(state) is not None:
        builder.change("attempt", lost_at=state.time.now)
    _tell_saved_nan(builder)


NAN_SAVED = "nan_saved"
"""Class of the incident (kind ``checkpoint``) of saves that are not finite while the losses are: an average of the
weights (EMA) or the state of an optimizer that no loss shows."""


def _tell_saved_nan(builder: StepBuilder) -> None:
    """Tell once of saves that are lost while the losses are finite, until one is finite again. It ends nothing."""
    state = builder.state
    read = [k for k in checkpoint_index.by_age(state.saved.checkpoints.known) if k.own and k.nonfinite is not None]
    lost = [k for k in read if k.damage is not None and k.damage[0] == "nonfinite"]
    if lost[-1:] != read[-1:] or not lost:
        builder.close_all("what is saved is finite again", NAN_SAVED)
        return
    known = next((k for k in reversed(lost) if _is_finite_since(state, k.latest)), None)
    if known is None or not is_live(state.machine) or builder.open_of(NAN_SAVED) is not None:
        return
    found = values_of(state.saved.checkpoints, known)
    if found.compared and found.new:
        builder.warn(
            "checkpoint",
            NAN_SAVED,
            _not_finite(known, found),
            title="NaN in what is saved",
            explanation="the losses are finite, so it trains on; no restart uses this checkpoint. Averages of weights "
            "(EMA) and optimizers keep a NaN: from here on all of them may be lost",
        )


def nan_is_due(state: JudgeState) -> bool:
    """Whether a checkpoint that was read makes the training lost, and the trainer lived on after that.

    Where the next loss is not due yet, it is waited for: a buffer may be first used in the middle of the training.
    """
    at, reading = state.attempt.lost_at, state.log.reading.now
    if at is None or not is_watched(state.machine):
        return False
    losses, line_s, lasts_s = reading.losses, usual_s(state.watch.clock) or 0.0, LASTS_S
    comes = losses.last is not None and not losses.nan_values and losses.without <= losses.spread
    if comes and _first_lost(state) is not None:
        if reading.progress.phase in {"eval", "sample", "save"}:
            return False
        lines = max(losses.hold or 1, losses.spread + 1) / max(1, reading.run.gap)
        lasts_s = max(LASTS_S, TWICE * line_s * max(1.0, lines))
    return state.time.now - at >= lasts_s


def on_nan_due(builder: StepBuilder) -> None:
    """Act on the first lost checkpoint. A trainer whose last lines show a failure is left to end by itself."""
    state, at = builder.state, builder.attempt.lost_at
    log = at_end(state.log.diagnosis, state.log.reading, builder.catalogue)
    shown = hidden_failure(log, builder.catalogue)  # after the last steps, and not the NaN
    # It may still free its GPU, or wait for its other ranks.
    if builder.now - (at or 0.0) < MINUTE_S and shown is not None and shown.failure != NAN:
        return
    builder.change("attempt", lost_at=None)
    lost = _first_lost(state)
    if lost is not None:
        act_on_nan(builder, _not_finite(lost, values_of(state.saved.checkpoints, lost)), lost.position, lost.t)
    else:
        _tell_saved_nan(builder)


def _not_finite(known: KnownCheckpoint, found: Values) -> str:
    more = "" if len(found.new) == 1 else f" and {len(found.new) - 1} other tensors"
    finite = ", finite in an earlier checkpoint" if found.compared else ""
    return f"{base_name(known.path)} holds NaN or Inf in {found.new[0]}{more}{finite}"


def _first_lost(state: JudgeState) -> KnownCheckpoint | None:
    """The first checkpoint of this attempt that is not finite and was, or is while the loss is NaN.

    None if the loss of a later step is finite: who trains on with finite losses has lost nothing.
    """
    index, attempt = state.saved.checkpoints, state.attempt
    for known in sorted(index.known, key=checkpoint_index.age_of):
        ours = known.own and known.complete and known.left is None and known.t >= attempt.start_t
        if not ours or not known.nonfinite or _is_finite_since(state, known.latest):
            continue
        found = values_of(index, known)
        if found.new and (found.compared or attempt.nan_t is not None):
            return known
    return None


def _is_finite_since(state: JudgeState, position: int | None) -> bool:
    """Whether the log shows a new finite loss of a step after this position, or has gone back by itself since."""
    losses, at = state.log.reading.now.losses, state.attempt.position
    if position is None or at is None or losses.at is None or losses.last is None or losses.nan_values:
        return False
    return at - losses.without - (losses.last - losses.at) > position or at < max(
        (read for _, read in state.attempt.readings), default=at
    )


def _is_stained(state: JudgeState, losses: LossRun) -> bool:
    """Whether the printed loss is an average that one NaN value made NaN, and what was saved since is finite."""
    since = state.attempt.nan_t
    if not losses.is_likely_average or since is None:
        return False
    known = state.saved.checkpoints.known
    saved = [k for k in known if k.own and k.complete and k.t > since and k.nonfinite is not None]
    return bool(saved) and not any(k.nonfinite for k in saved)


def nan_position(state: JudgeState, read: Reading) -> int | None:
    """Position of the run at which the loss became NaN; where it is now if it is not."""
    at, first = state.attempt.position, nan_first_step(read)
    if at is None:
        return None
    return max(0, at - max(0, read.losses.nan_steps - 1)) if first is None else (state.attempt.offset or 0) + first


def nan_first_step(reading: Reading) -> int | None:
    """The step of the newest run of NaN losses, as the log counts; None if it cannot be told."""
    at = reading.progress.run_step
    return None if at is None else max(0, at - max(0, reading.losses.nan_steps - 1))


def nan_began_t(state: JudgeState, read: Reading) -> float:
    """Run time since which saves are not finite: that of the first save of a step after the first NaN step, else now.

    A save is seen at once; the lines of fast steps are read many at a time, so they can come after it.
    """
    at, start_t = nan_position(state, read), state.attempt.start_t
    saved = (
        k.t
        for k in state.saved.checkpoints.known
        if k.own and k.t >= start_t and k.latest is not None and at is not None and k.latest > at
    )
    return min(saved, default=state.time.t)


def before_lost_t(builder: StepBuilder, *ended_of: Cause) -> float | None:
    """Run time before which a checkpoint has to be complete for its weights to be neither NaN nor diverged, or None.

    A single NaN step at the end proves nothing (LAST_STEPS), unless the attempt ended for it. A diverged loss counts
    if ``[loss] diverged`` says so.
    """
    state, number = builder.state, builder.attempt.number
    if builder.lost_by_divergence:
        return state.course.loss.since_t
    ended_for_it = any(cause.class_ == NAN and cause.attempt == number for cause in (*state.policy.history, *ended_of))
    losses = (read.now.losses for read in (state.log.reading, *state.log.other_logs.values()))
    lasts = any(each.is_nan_for(LAST_STEPS) and not _is_stained(state, each) for each in losses)
    return state.attempt.nan_t if ended_for_it or lasts else None
