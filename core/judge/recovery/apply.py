"""From a failure to what follows it: ``answer_failure`` collects the input, policy.py chooses, ``apply`` writes.

``apply`` is the only place that carries an answer out: the journal's facts, the budget, the settings of the next
attempt, and the stage that comes next.
"""

from typing import assert_never

import msgspec

from ...model import output_place
from ...model.fact import BudgetChanged
from ...model.progress import Why
from .. import memory
from ..attempt_progress import knows_its_step
from ..failure.circumstances import channel_state
from ..memory import Cause, Failed
from ..resume import checkpoint_index, resume_point
from ..resume.checkpoint_index import Unread
from ..run_states import RestartPlan, Stopped, Then
from ..state import JudgeState, StepBuilder
from . import gate, policy, ramp, remedy_choice, restarts, unclear_states
from .attempts import give_up
from .policy import Again, Answer, FailureInput, Finish, GiveUpRun, Hold
from .resume_choice import choose, clear_doubt, pass_over

replace = msgspec.structs.replace


def answer_failure(builder: StepBuilder, failed: Failed, plan: RestartPlan, *, ordered: str = "") -> None:
    """Decide what follows a failure and carry it out.

    ``plan``: the next attempt as it would be without any change. ``ordered``: who ordered the end.
    """
    cause, incident, reason = failed.cause, failed.incident, failed.reason
    if builder.attempt.place_is_sure:
        builder.set(budget=memory.failed(builder.state.budget, cause.position))
    cause = replace(cause, epochs=builder.state.budget.epochs)
    state, settings = builder.state, builder.settings
    class_ = builder.catalogue.class_of(cause.class_)
    may_fall_back = settings.profiles.fall_back and failed.settings_at_fault and class_.settings != "never"
    launched = cause.kind != "launch"
    seen = memory.count(state.history, cause.class_)
    attempt = state.attempt
    given = launched and attempt.resume_from is not None and attempt.beat_t is None
    unproven = given and unclear_states.is_unproven(builder)
    refuted = unproven and unclear_states.is_refuted(builder, cause)
    refused = unclear_states.refused(builder, cause) if cause.kind == "crash" and not unproven else ""
    stride = state.attempt.stride
    if cause.kind == "nan":  # it shows some steps after its cause
        stride = max(stride, (state.budget.every or 0) // 2)
    kernel = [finding for finding in state.diagnosis.findings if finding.line == 0]
    reset, lost = needs_reset(state), any(finding.failure == "gpu_lost" for finding in kernel)
    older = resume_point.newest_verified(state.checkpoints, builder.support, before_t=plan.before_t)
    saved = plan.before_t is None or (
        (before := resume_point.newest_verified(state.checkpoints, before_t=plan.before_t)) is not None
        and before.own
        and before.t >= state.attempt.start_t
    )
    own = [k for k in state.checkpoints.known if k.own and k.complete and k.bad is None]
    largest = max((k.size_bytes or 0.0 if k.disk_bytes is None else k.disk_bytes for k in own), default=0.0)
    older_helps = class_.older_checkpoint_helps and cause.kind == "crash"
    curable = failed.retryable or (class_.older_checkpoint_helps and older is not None)
    again = memory.came_back(state.history, cause, state.attempt.stride) or not (curable or policy.has_trained(state))
    remedy, waiting = (
        remedy_choice.choose(builder, _key(cause), seen, again=again, said=cause.line) if launched else (None, ())
    )
    failure = FailureInput(
        cause=cause,
        reason=reason,
        incident=incident,
        plan=plan,
        restart=settings.restart,
        run=tuple(filter(None, (builder.knowledge.run_id,))),
        began_anew=state.attempt.resume_from is None if launched else plan.fresh,
        spent=memory.is_spent(state.budget, settings.restart),
        restarts_made=max(state.budget.used, state.budget.unsaved),
        confidence=failed.confidence,
        trained=policy.has_trained(state),
        saved=state.attempt.saved and saved,
        found_resume=unclear_states.advice(builder) if refuted else (),
        refused_option=refused,
        other_way=unclear_states.other_way(builder) if refused else (),
        unproven_resume=unclear_states.advice(builder, refuted=False) if unproven and not refuted else (),
        changes=state.attempt.changes if launched and state.attempt.beat_t is None else (),
        waits_for="gpu" if reset or (lost and state.gpus_usable is False) else class_.waits_for,
        gpus_usable=False if reset else state.gpus_usable,
        job=failed.job,
        ordered=ordered,
        nan_action=cause.diverged or settings.nan.action,
        curable=curable,
        unread="" if class_.elsewhere else _unread(builder, cause, plan, reason, at_once=older_helps),
        elsewhere=class_.elsewhere,
        advice=failed.advice,
        settings=class_.settings,
        step_matters=class_.step_matters,
        history=state.history,
        stride=stride,
        step_known=knows_its_step(state.attempt),
        gpu_channel=channel_state(state.diagnosis.kernel, builder.catalogue),
        rung=ramp.rung(builder) if launched else None,
        ran_before=policy.settings_that_ran(state, started=launched) if may_fall_back else None,
        remedy=remedy,
        waiting=waiting,
        disk_free_bytes=state.disk_free_bytes,
        disk_need_bytes=output_place.need_bytes(largest, state.disk_total_bytes),
        inodes_left=output_place.has_inodes(state.disk_free_inodes),
        kernel=tuple(finding.text for finding in kernel),
        still_open=tuple(i.reason for i in state.incidents if i.kind in {"health", "disk", "stall"}),
    )
    answer = policy.choose(failure)
    if cause.kind == "crash":
        plan = gate.with_order(builder, plan)
    # A trainer that crashed and is given up has ended already.
    acts = not isinstance(answer, Hold) and (cause.lives or not isinstance(answer, GiveUpRun))
    if acts and gate.is_closed(builder, plan):
        then, how = _follows(answer)
        failed = replace(failed, cause=cause)
        gate.withhold(builder, then, plan, live=cause.lives, failed=failed, how=how)
        return
    apply(builder, failure, answer)


def _follows(answer: Answer) -> tuple[Then, str]:
    """What would follow, and how, as a clause."""
    match answer:
        case Finish():
            return "finish", "because the training is done"
        case GiveUpRun():
            return "give_up", f"because {answer.reason}"
        case Again():
            return "restart", answer.how
        case _:
            return "hold", ""


def _key(cause: Cause) -> str:
    """The failure's name in remedies.toml."""
    return f"hang:{cause.class_}" if cause.kind == "hang" else cause.class_


def needs_reset(state: JudgeState) -> bool:
    """Whether the kernel said that the only GPU of the run is lost until a reset, and no step came after that."""
    fault = state.gpu_fault
    return fault is not None and state.clock.last <= fault.at and len(state.gpus_of_run) < 2


def _unread(builder: StepBuilder, cause: Cause, plan: RestartPlan, reason: str, *, at_once: bool) -> Unread:
    """What follows for the checkpoint that the attempt was given; a trainer that chooses by itself is given none."""
    index, support = builder.index, builder.support
    if cause.kind != "crash" or cause.stepped or cause.given is None or support.by_itself:
        return ""
    known = checkpoint_index.find(index, cause.given)
    without = checkpoint_index.passed_over(index, cause.given, "")
    older = resume_point.newest_verified(without, support, before_t=plan.before_t)
    has_older = older is not None and older.path not in without.doubt.paths
    return checkpoint_index.unread(
        index,
        cause.given,
        reason,
        starts=checkpoint_index.STARTS if at_once else memory.unread(builder.state.history, cause),
        said=cause.said,
        has_older=has_older or (known is not None and known.unknown_make),  # else the run is held over it
    )


def apply(builder: StepBuilder, failure: FailureInput, answer: Answer) -> None:
    incident, key = failure.incident, _key(failure.cause)
    match answer:
        case Finish():
            ending = RestartPlan(reason="the training is done: stop its process gently", incident=incident)
            restarts.stop(builder, "finish", ending)
        case Hold():
            _hold(builder, failure, answer)
        case GiveUpRun():
            _count(builder, failure, counted=answer.counted)
            remedy_choice.propose(builder, answer.proposed, key, incident)
            if not failure.cause.lives:
                give_up(builder, answer.reason, incident, answer.advice, title=answer.title)
                return
            reason = f"{failure.name}, and no restart follows"
            ending = replace(failure.plan, reason=reason, ending=answer.reason, advice=answer.advice)
            restarts.stop(builder, "give_up", ending)
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
        pass_over(builder, answer.passed_over, failure.cause.said)
    _count(builder, failure, counted=answer.counted, same_rung=answer.rung is None)
    if answer.to is not None:
        why = policy.go_back(builder, answer.to, class_, failure.reason, incident)
        # An attempt that began anew wrote nothing yet: so does the next one.
        plan = replace(plan, reason=why, fresh=failure.began_anew)
    if answer.rung is not None:
        ramp.step_down(builder, answer.rung.below, class_, failure.reason, incident)
    if answer.remedy is not None:
        remedy_choice.take(builder, answer.remedy, _key(failure.cause), incident)
    remedy_choice.propose(builder, answer.proposed, _key(failure.cause), incident)
    if answer.note:
        builder.note(answer.note)
    wait_s = _charge(builder) if answer.charged else 0.0
    delay_s = max(wait_s, answer.delay_s) if answer.back_off else answer.delay_s
    _restart(builder, failure, replace(plan, delay_s=delay_s, need_bytes=answer.need_bytes, needs_gpu=answer.needs_gpu))


def _count(builder: StepBuilder, failure: FailureInput, *, counted: bool = True, same_rung: bool = True) -> None:
    """Append the failure to the history; the ramp's stretch without trouble ends. A failed launch does not count."""
    if not counted or failure.cause.kind == "launch":
        return
    builder.set(history=memory.with_cause(failure.history, failure.cause))
    if same_rung and not failure.spent:
        ramp.end_stretch(builder)


def _charge(builder: StepBuilder) -> float:
    """Charge the budget for one restart. Returns the back-off before it, in seconds."""
    restart = builder.settings.restart
    charged, delay_s = memory.charge(builder.state.budget, restart)
    builder.set(budget=charged)
    builder.fact(BudgetChanged(used=charged.used, max=restart.max_restarts))
    return delay_s


def _restart(builder: StepBuilder, failure: FailureInput, plan: RestartPlan) -> None:
    """Go to the first stage of the restart that is still to do."""
    if failure.cause.lives:
        restarts.stop(builder, "restart", plan)
    elif failure.cause.kind == "launch":
        choose(builder, plan)
    else:
        restarts.clear_and_restart(builder, plan)


def _hold(builder: StepBuilder, failure: FailureInput, answer: Hold) -> None:
    if failure.unread == "cleared":
        _count(builder, failure)
        clear_doubt(builder)
    builder.close_incident(failure.incident, answer.ending or answer.reason)
    builder.move("hold", Stopped(), f"{answer.reason}; held until resume or restart", Why(answer.why))
    follows = f"nothing is started until `{builder.typed('resume')}`"
    body = "\n".join((answer.reason, *(answer.advice or (follows,))))
    builder.notify("incident", answer.ending or "stopped, and held", body, incident=failure.incident)
