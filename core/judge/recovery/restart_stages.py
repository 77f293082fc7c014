"""From the end of one attempt to proof of life of the next, in the order of requirement A5.

stop → nothing of the tree left → GPU memory released → newest good checkpoint proven → wait → launch → first step.
Every stage is a state of the run that waits for the outcome of one decision, so each is decided once; and there is one
chain only, so two attempts never live at the same time.
"""

from typing import Literal, assert_never

import msgspec

from ...model.checkpoint import Verdict
from ...model.decision import (
    ClearGpu,
    EndLeftovers,
    EndWatch,
    GiveUp,
    StartAttempt,
    StopAttempt,
    VerifyCheckpoint,
)
from ...model.fact import (
    AttemptEnded,
    BudgetChanged,
    CheckpointKnown,
    CheckpointsSetAside,
    ProfileChanged,
    ProgressMade,
)
from ...model.observation import Exit, Outcome
from ...model.profile import NO_PROFILE
from ..resume import checkpoint_index
from ..resume.checkpoint_index import base_name
from ..resume.save_overdue import MISSING
from ..run_states import (
    BackingOff,
    Cleaning,
    Finished,
    GivenUp,
    Held,
    RestartPlan,
    Starting,
    Stopped,
    Stopping,
    Then,
    Verifying,
)
from ..state import JudgeState
from ..step_builder import Draft
from . import budget, fallback, not_resumable
from .remedies import merged


def productive_s(state: JudgeState) -> float:
    """Seconds from the attempt's start to its last step: what ETTR counts."""
    attempt = state.attempt
    return 0.0 if attempt.beat_t is None else max(0.0, attempt.beat_t - attempt.start_t)


def remember_end(draft: Draft) -> None:
    """Keep how far the run was, to say later what was lost; what was odd about this attempt is over with it."""
    fallback.remember(draft)
    if draft.state.attempt.step is not None and draft.state.told_t != draft.t:
        draft.set(told_t=draft.t)
        last = draft.state.attempt
        draft.fact(
            ProgressMade(
                attempt=last.number,
                progress=draft.state.progress,
                overall_step=last.position,
                step_offset=last.step_offset,
            )
        )
    for incident in draft.state.incidents:
        if incident.kind in {"stall", "loss"} or incident.class_ == MISSING:
            draft.close_incident(incident.id, "the attempt ended")
    position = draft.state.attempt.position
    if position is not None:
        draft.set(failed_position=position)


def charge(draft: Draft, plan: RestartPlan) -> RestartPlan:
    """Charge the budget for a restart that a failure made necessary."""
    restart = draft.knowledge.settings.restart
    spent = budget.charge(draft.state.budget)
    draft.set(budget=spent)
    draft.fact(BudgetChanged(used=spent.used, max=restart.max_restarts))
    return msgspec.structs.replace(plan, delay_s=budget.delay_s(spent, restart))


def spent_reason(draft: Draft) -> str:
    """Why no further restart is made."""
    most = draft.knowledge.settings.restart.max_restarts
    tries = f"{most} restart{'' if most == 1 else 's'}"
    return f"{tries} without a new checkpoint in between; more would not help, a person is needed"


def give_up(draft: Draft, reason: str, incident: int | None, advice: tuple[str, ...] = ()) -> None:
    """Stop trying, loudly. ``advice``: what a person needs to find the root cause, a sentence each."""
    for known in draft.state.incidents:
        if known.kind in {"crash", "hang", "resume"}:
            draft.close_incident(known.id, "given up")
    draft.decide(GiveUp, reason, incident=incident)
    draft.move("give_up", GivenUp(), reason)
    for sentence in advice:
        draft.note(sentence)
    draft.notify("give_up", "given up", "\n".join((reason, *advice)), incident=incident)
    draft.decide(EndWatch, "given up; `trainwatch resume` starts again", incident=incident, exit_code=1)


def finish(draft: Draft, observation: Exit | None, reason: str) -> None:
    """The training is done."""
    state = draft.state
    draft.fact(
        AttemptEnded(
            attempt=state.attempt.number,
            how="finished",
            code=observation.code if observation is not None else None,
            signal=observation.signal if observation is not None else None,
            last_step=state.attempt.step,
            productive_s=productive_s(state),
        )
    )
    conclude(draft, reason)


def conclude(draft: Draft, reason: str) -> None:
    """Say that the run is finished, and end the watch."""
    remember_end(draft)
    for incident in draft.state.incidents:
        draft.close_incident(incident.id, "the training finished")
    draft.move("finish", Finished(), reason)
    draft.notify("finish", "finished", reason)
    draft.decide(EndWatch, reason, exit_code=0)


def stop(
    draft: Draft,
    then: Then,
    plan: RestartPlan,
    *,
    mode: Literal["gentle", "kill"] = "gentle",
    by: str = "",
    exited: bool = False,
) -> None:
    """End the attempt's tree; what follows is ``then``. ``exited``: its main process is gone already."""
    order = draft.decide(
        StopAttempt, plan.reason, incident=plan.incident, attempt=draft.state.attempt.number, mode=mode
    )
    stopping = Stopping(order=order, then=then, plan=plan, by=by, exited=exited, kill=mode == "kill")
    draft.move("stop", stopping, plan.reason)


def clear_and_restart(draft: Draft, plan: RestartPlan) -> None:
    """The trainer is gone by itself: end what it may have left behind, then go on as after a stop."""
    leftovers = msgspec.structs.replace(plan, reason=f"{plan.reason}: end what is left of it first")
    order = draft.decide(
        EndLeftovers, leftovers.reason, incident=plan.incident, attempt=draft.state.attempt.number, mode="gentle"
    )
    stopping = Stopping(order=order, then="restart", plan=plan, exited=True, leftovers=True)
    draft.move("clear_leftovers", stopping, plan.reason)


def on_stop_outcome(draft: Draft, machine: Stopping, outcome: Outcome) -> None:
    """Nothing of the tree is left, or something would not end."""
    if outcome.ok:
        gone = msgspec.structs.replace(machine, gone_t=draft.t)
        draft.move("processes_gone", gone, "its processes are gone")
        if machine.exited:
            after_end(draft, gone)
        return
    if not machine.kill:
        reason = f"the gentle stop did not end it ({outcome.detail or 'no detail'})"
        order = draft.decide(
            EndLeftovers if machine.leftovers else StopAttempt,
            reason,
            incident=machine.plan.incident,
            attempt=draft.state.attempt.number,
            mode="kill",
        )
        draft.move("kill", msgspec.structs.replace(machine, order=order, kill=True), reason)
        return
    if not machine.exited:
        _ended(draft, machine, None)
    give_up(draft, f"its processes cannot be ended: {outcome.detail or 'no detail'}", machine.plan.incident)


def on_exit_while_stopping(draft: Draft, machine: Stopping, observation: Exit) -> None:
    """The trainer's end was seen; its tree may need a moment longer."""
    if machine.exited:
        return
    _ended(draft, machine, observation)
    new = msgspec.structs.replace(machine, exited=True)
    draft.move("exit", new, "its main process ended")
    if new.gone_t is not None:
        after_end(draft, new)


def on_status_lost(draft: Draft, machine: Stopping) -> None:
    """The tree is gone and no exit status came."""
    _ended(draft, machine, None)
    after_end(draft, msgspec.structs.replace(machine, exited=True))


def _ended(draft: Draft, machine: Stopping, observation: Exit | None) -> None:
    how = "finished" if machine.then == "finish" else "killed" if machine.kill else "stopped"
    state = draft.state
    draft.fact(
        AttemptEnded(
            attempt=state.attempt.number,
            how=how,
            code=observation.code if observation is not None else None,
            signal=observation.signal if observation is not None else None,
            last_step=state.attempt.step,
            productive_s=productive_s(state),
        )
    )
    remember_end(draft)


def after_end(draft: Draft, machine: Stopping) -> None:
    """The attempt is over and its tree is gone."""
    plan = machine.plan
    match machine.then:
        case "restart":
            clear_gpu(draft, plan)
        case "give_up":
            give_up(draft, plan.ending or spent_reason(draft), plan.incident, plan.advice)
        case "finish":
            conclude(draft, "the training had finished; its process did not end and was ended gently")
        case "hold":
            draft.move("hold", Stopped(), f"stopped by {machine.by or 'a person'}; held until resume or restart")
        case "end":
            draft.move("hold", Stopped(), f"stopped by {machine.by or 'a person'} with the supervisor")
            draft.decide(EndWatch, "the trainer was ended as asked", exit_code=0)
        case _:
            assert_never(machine.then)


def clear_gpu(draft: Draft, plan: RestartPlan) -> None:
    """Wait for the memory of the ended processes."""
    order = draft.decide(
        ClearGpu,
        "wait until the GPU memory of the ended processes is released",
        incident=plan.incident,
        attempt=draft.state.attempt.number,
    )
    draft.move("clear_gpu", Cleaning(order=order, plan=plan), "waiting for the GPU memory of the ended processes")


def on_clear_outcome(draft: Draft, machine: Cleaning, outcome: Outcome) -> None:
    """The GPU is clear, or the time limit passed."""
    if outcome.ok or draft.knowledge.settings.restart.if_gpu_not_clear == "go_on":
        if not outcome.ok:
            draft.note(f"the GPU is not clear ({outcome.detail or 'time limit passed'}); going on all the same")
        if machine.plan.need_bytes is not None:
            hold(draft, machine.plan, machine.plan.need_bytes)
        else:
            choose(draft, machine.plan)
        return
    reason = f"the GPU memory of the ended processes was not released: {outcome.detail or 'time limit passed'}"
    draft.close_incident(machine.plan.incident, "held: the GPU is not clear")
    draft.move("hold", Stopped(), reason)
    draft.notify("warning", "held", reason, incident=machine.plan.incident)


def hold(draft: Draft, plan: RestartPlan, need_bytes: float) -> None:
    """Start nothing until there is room on the disk: a trainer that cannot save loses all it does."""
    free = draft.state.disk_free_bytes
    now = "" if free is None else f", {free / GB:.1f} GB are"
    reason = f"held: the disk is full; it goes on when {need_bytes / GB:.1f} GB are free{now}"
    draft.move("no_room", Held(need_bytes=need_bytes, plan=msgspec.structs.replace(plan, need_bytes=None)), reason)
    how = "make room: `trainwatch checkpoints prune DIR --keep N` shows what could go"
    draft.notify("warning", "held: the disk is full", f"{reason}\n{how}", incident=plan.incident)


def on_room(draft: Draft, machine: Held) -> None:
    """There is room again."""
    draft.note("there is room on the disk again")
    choose(draft, machine.plan)


GB = 1e9


def choose(draft: Draft, plan: RestartPlan) -> None:
    """Choose a resume point and have it proven; without one start over, or give up, as the settings say."""
    state, knowledge = draft.state, draft.knowledge
    if plan.fresh or knowledge.preset.resume == "none":
        wait(draft, msgspec.structs.replace(plan, path=None, step=None))
        return
    first = state.attempt.resume_from
    path, known = plan.wanted, checkpoint_index.find(state.shelf, plan.wanted)
    if path is None:
        known = checkpoint_index.newest_good(state.shelf, knowledge.telling, before_t=plan.before_t, keep=first)
        path = known.path if known is not None else None
        _tell_damaged(draft, known)
    if path is None and first is not None and knowledge.telling.forms and not checkpoint_index.find(state.shelf, first):
        path = first  # what the attempt itself resumed from, outside the watched directory
    if path is None:
        _start_over(draft, plan)
        return
    if plan.wanted is None and known is not None and known.holds == "weights" and not knowledge.telling.weights_do:
        draft.note(f"{base_name(path)} holds weights alone: there is no whole training state to go on from")
    order = draft.decide(
        VerifyCheckpoint,
        f"prove the resume point {base_name(path)} before the launch",
        incident=plan.incident,
        path=path,
        deep=knowledge.settings.checkpoints.verify == "deep",
    )
    step = known.step if known is not None else None
    draft.move(
        "verify",
        Verifying(order=order, plan=msgspec.structs.replace(plan, path=path, step=step)),
        f"proving the resume point {base_name(path)}",
    )


def _start_over(draft: Draft, plan: RestartPlan) -> None:
    """No resume point: begin anew, or leave it to a person, as the settings say."""
    anew = not_resumable.objection(draft)
    if anew is not None:
        give_up(draft, anew, plan.incident, not_resumable.ADVICE)
        return
    if not draft.knowledge.settings.restart.without_checkpoint:
        give_up(draft, "no good checkpoint to resume from, and starting over is switched off", plan.incident)
        return
    other = checkpoint_index.newest_good(draft.state.shelf, before_t=plan.before_t)
    why = None if other is None else draft.knowledge.telling.objection(other.shape, other.holds)
    if other is not None and why is not None:
        draft.note(f"it begins anew: {base_name(other.path)} is sound, but {why}")
    wait(draft, msgspec.structs.replace(plan, path=None, step=None))


def on_verify_outcome(draft: Draft, machine: Verifying, outcome: Outcome) -> None:
    """The resume point is good, or the next older one is tried."""
    plan = machine.plan
    assert plan.path is not None
    verdict = str(outcome.data.get("verdict") or ("complete" if outcome.ok else "corrupt"))
    step = outcome.data.get("step")
    if outcome.ok and verdict == "complete":
        wait(draft, msgspec.structs.replace(plan, step=step if isinstance(step, int) else plan.step))
        return
    why = str(outcome.data.get("reason") or outcome.detail or verdict)
    number, told = _set_bad(draft, plan.path, verdict, why, "skipped" if plan.wanted is None else "refused")
    if plan.wanted is not None:
        draft.close_incident(plan.incident, "held: the checkpoint asked for is not good")
        draft.move("hold", Stopped(), told)
        draft.notify("warning", "not resumed", told, incident=number)
        return
    draft.notify("warning", f"checkpoint {verdict}", told, incident=number)
    choose(draft, msgspec.structs.replace(plan, path=None, step=None))


def _tell_damaged(draft: Draft, chosen: checkpoint_index.Known | None) -> None:
    """Its writer is gone, so what is not whole will not become so: say why an older one is taken."""
    damaged = [
        (k.path, *k.damage) for k in checkpoint_index.damaged_after(draft.state.shelf, chosen) if k.damage is not None
    ]
    if not damaged:
        return
    told = [_set_bad(draft, *each, "skipped") for each in damaged]
    title = f"checkpoint {damaged[0][1]}" if len(told) == 1 else f"{len(told)} checkpoints are damaged"
    draft.notify("warning", title, "\n".join(reason for _, reason in told), incident=told[0][0])


def _set_bad(draft: Draft, path: str, verdict: str, why: str, ending: str) -> tuple[int, str]:
    """Never resume from it, with an incident. Returns its id and its reason."""
    distrust(draft, path, why, verdict)
    reason = f"{base_name(path)} cannot be resumed from: {why}"
    return draft.open_incident("checkpoint", verdict, reason, severity="warning", ending=ending), reason


def distrust(draft: Draft, path: str, why: str, verdict: str = "corrupt") -> None:
    """Never resume from it until it is written anew."""
    shelf = draft.state.shelf
    if checkpoint_index.find(shelf, path) is None:
        entry = checkpoint_index.Known(path=path, t=draft.t, own=False, bad=why)
        draft.set(shelf=msgspec.structs.replace(shelf, known=(*shelf.known, entry)))
        return
    draft.set(shelf=checkpoint_index.mark_bad(shelf, path, why))
    known = checkpoint_index.find(draft.state.shelf, path)
    if known is not None and verdict in _VERDICTS:
        checkpoint = checkpoint_index.as_checkpoint(known, draft.knowledge.created_wall, _VERDICTS[verdict])
        draft.fact(CheckpointKnown(checkpoint=checkpoint))


_VERDICTS: dict[str, Verdict] = {
    "complete": "complete",
    "writing": "writing",
    "torn": "torn",
    "corrupt": "corrupt",
    "nonfinite": "nonfinite",
    "opaque": "opaque",
}


def wait(draft: Draft, plan: RestartPlan) -> None:
    """Back off, or launch at once."""
    if plan.delay_s <= 0.0:
        launch(draft, plan)
        return
    draft.move(
        "back_off",
        BackingOff(until_t=draft.t + plan.delay_s, plan=plan),
        f"next attempt in {plan.delay_s:.0f} s: {plan.reason}",
    )


def launch(draft: Draft, plan: RestartPlan) -> None:
    """Start the next attempt."""
    state = draft.state
    number = state.attempts + 1
    profile = next_profile(state)
    draft.set(attempts=number, profile_pending=None, switch=False, profile=profile)
    if state.profile_pending is not None:
        draft.fact(ProfileChanged(profile=profile, pending=False, why=f"from attempt {number} on"))
    known = checkpoint_index.find(state.shelf, plan.path)
    _leave_branch(draft, plan, number)
    where = _where(plan)
    order = draft.decide(
        StartAttempt,
        f"{plan.reason}: start attempt {number} {where}",
        incident=plan.incident,
        attempt=number,
        resume_from=plan.path,
        resume_step=plan.step,
        profile=profile,
        changes=merged(state.applied),
        steps_done=known.position if known is not None else None,
        epochs_done=known.epochs_done if known is not None else None,
    )
    draft.move("launch", Starting(order=order, plan=plan), f"attempt {number} starts {where}")


def _where(plan: RestartPlan) -> str:
    if plan.path is None:
        return "from the beginning"
    return f"from {base_name(plan.path)}" + (f" (step {plan.step})" if plan.step is not None else "")


def next_profile(state: JudgeState) -> str | None:
    """What the next launch trains with: the profile that was asked for, else the one that it has."""
    pending = state.profile_pending
    return state.profile if pending is None else None if pending == NO_PROFILE else pending


def _leave_branch(draft: Draft, plan: RestartPlan, number: int) -> None:
    """What is newer than where a launch goes on from is of a branch that the run leaves: nothing resumes from it again.

    A person who names one of those later takes it back in.
    """
    shelf, known = draft.state.shelf, checkpoint_index.find(draft.state.shelf, plan.path)
    if known is not None and known.left is not None:
        shelf = checkpoint_index.changed(shelf, (known.path,), left=None, aside=None)
        draft.fact(CheckpointsSetAside(paths=(known.path,), why=""))
    left = checkpoint_index.left_behind(shelf, plan.path, draft.knowledge.telling)
    to = "the beginning" if plan.path is None else base_name(plan.path)
    why = f"the run went back to {to} with attempt {number}"
    if left:
        shelf = checkpoint_index.changed(shelf, left, left=why, aside=why)
        draft.fact(CheckpointsSetAside(paths=left, why=why, left=True))
    if left or plan.wanted is not None or plan.fresh:
        since = 0.0 if known is None or known.mtime is None else known.mtime
        shelf = msgspec.structs.replace(shelf, went_back=(since, draft.t, why))
    draft.set(shelf=shelf)
    if left and (plan.wanted is not None or plan.fresh):
        best = None if known is None else known.position
        draft.set(budget=msgspec.structs.replace(draft.state.budget, best=best))


def on_launched(draft: Draft, machine: Starting, outcome: Outcome) -> None:
    """The trainer exists; the launch says how it was told what to resume from."""
    told, restores = outcome.data.get("told_resume"), outcome.data.get("resume")
    named = outcome.data.get("resume_named") or ()
    draft.move(
        "launched",
        msgspec.structs.replace(
            machine,
            told_resume=told if isinstance(told, bool) else None,
            restores=restores if isinstance(restores, str) else None,
            named=tuple(str(place) for place in named),
        ),
        "the launch worked",
    )
    order = outcome.data.get("order")
    path = order.get("resume_from") if isinstance(order, dict) else None
    if told is False and isinstance(path, str):
        draft.note(
            f"the command has no way to be told of {base_name(path)} (write {{resume}} where its path belongs): "
            "unless it finds the checkpoint by itself, it starts from the beginning"
        )
    plan, number = machine.plan, draft.state.attempts
    if number > 1 and plan is not None and not machine.hold:
        body = f"{plan.reason}: {_where(plan)}"
        draft.notify("restart", f"attempt {number} started", body, incident=plan.incident)


def on_start_failed(draft: Draft, outcome: Outcome) -> None:
    """The launch itself did not work (no such command, no disk …)."""
    need = outcome.data.get("need_bytes")
    machine = draft.state.machine
    meant = machine.plan if isinstance(machine, Starting) and machine.plan is not None else RestartPlan(reason="")
    again = RestartPlan(reason="the launch failed", wanted=meant.wanted, fresh=meant.fresh, before_t=meant.before_t)
    if isinstance(need, int | float):
        fresh = meant.fresh or outcome.data.get("fresh") is True
        hold(draft, msgspec.structs.replace(again, reason="go on with room on the disk", fresh=fresh), need)
        return
    why = outcome.detail or "the trainer could not be started"
    number = draft.open_incident("crash", "config_error", why, explanation="the command could not be started")
    draft.notify("incident", "cannot start", why, incident=number)
    if outcome.data.get("settings") is True and fallback.applies(draft, "config_error", started=False):
        words = fallback.go_back(draft, "config_error", why, number)
        choose(draft, msgspec.structs.replace(again, reason=words, incident=number))
        return
    if not outcome.data.get("retryable", True):
        give_up(draft, f"the trainer cannot be started: {why}", number)
    elif budget.is_spent(draft.state.budget, draft.knowledge.settings.restart):
        give_up(draft, spent_reason(draft), number)
    else:
        choose(draft, charge(draft, msgspec.structs.replace(again, incident=number)))


def verdict_of(quick: str | None) -> Verdict:
    """The quick verdict of a finished file; none given = complete."""
    return _VERDICTS.get(quick or "complete", "complete")
