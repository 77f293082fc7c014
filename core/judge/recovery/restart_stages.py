"""The stages of a restart up to the choice of the resume point.

(checkpoint asked for →) stop → no process left → GPU memory released → output folder listed → resume point chosen and
verified → back-off → launch → first step. resume_choice.py and attempts.py have the stages from the list on,
restart_success.py the last one. Every stage is a state of the run that waits for the outcome of one decision.
"""

from typing import Literal, assert_never

import msgspec

from ...model.decision import ClearGpu, EndLeftovers, EndWatch, StopAttempt
from ...model.launch.disk_need import has_inodes
from ...model.observation import Exit, HostSample, Outcome
from ...model.text.size_words import sizes_apart
from ...model.text.suggestion import typed
from ...model.why import Why
from ..findings import disk_forecast
from ..run_states import (
    Cleaning,
    Interrupted,
    RestartPlan,
    Saving,
    Stopped,
    Stopping,
    Then,
    WaitingForGpu,
    WaitingForRoom,
)
from ..step_builder import StepBuilder
from . import save_first
from .attempts import conclude, ended, give_up
from .ending import at_end
from .operator import gate
from .resume_point.resume_choice import choose

replace = msgspec.structs.replace
STOP_S = 3.0
"""What the signals get of a short time after a checkpoint was asked for: a trainer that has saved ends at once."""
LAST_S = 1.0
"""Kept free before the machine ends, for the journal."""


def stop(
    builder: StepBuilder,
    then: Then,
    plan: RestartPlan,
    *,
    mode: Literal["gentle", "kill"] = "gentle",
    by: str = "",
    exited: bool = False,
) -> None:
    """End the attempt's processes; ``then`` follows. ``exited``: the main process is gone already.

    ``by``: the operator who asked for it; without one, and without one in the plan, the gate may withhold it.
    """
    plan = replace(plan, by=by) if by else plan
    if gate.is_closed(builder, plan):
        gate.withhold_stop(builder, then, plan)
        return
    if mode == "gentle" and plan.by and save_first.is_wanted(builder):
        _save_first(builder, then, plan, by)
        return
    order = builder.decide(
        StopAttempt,
        plan.reason,
        incident=plan.incident,
        attempt=builder.state.attempt.number,
        mode=mode,
        within_s=_left_s(builder, plan),
    )
    stopping = Stopping(order=order, then=then, plan=plan, by=by, exited=exited, kill=mode == "kill")
    builder.move("stop", stopping, plan.reason)


def _save_first(builder: StepBuilder, then: Then, plan: RestartPlan, by: str) -> None:
    order = save_first.request(builder, f"{plan.reason}: ask for a checkpoint first", plan.incident, stop=True)
    wait_s = builder.knowledge.settings.restart.save_wait_s
    left_s = _left_s(builder, plan)
    if left_s is not None:
        wait_s = min(wait_s, max(0.0, left_s - STOP_S))
    saving = Saving(asked_t=builder.t, until_t=builder.t + wait_s)
    reason = f"{plan.reason}; it was asked for a checkpoint first, for which the stop waits up to {wait_s:.0f} s"
    builder.move("stop", Stopping(order=order, then=then, plan=plan, by=by, saving=saving), reason)


def on_checkpoint_while_saving(builder: StepBuilder, machine: Stopping, saving: Saving) -> None:
    """A checkpoint changed: go on with the stop once it is complete; while it grows, wait."""
    if save_first.came(builder.state, saving):
        end_saving(builder, machine, "the checkpoint that was asked for is complete")
        return
    until_t = max(saving.until_t, builder.t + builder.knowledge.settings.restart.save_wait_s)
    if machine.plan.deadline_t is not None:
        until_t = min(until_t, machine.plan.deadline_t - LAST_S)
    builder.move("command", replace(machine, saving=replace(saving, until_t=until_t)), "a checkpoint is written")


def end_saving(builder: StepBuilder, machine: Stopping, why: str) -> None:
    """Nothing more is waited for: end the processes."""
    builder.note(why)
    plan = machine.plan
    order = builder.decide(
        StopAttempt,
        plan.reason,
        incident=plan.incident,
        attempt=builder.state.attempt.number,
        mode="gentle",
        within_s=_left_s(builder, plan),
    )
    builder.move("stop", replace(machine, order=order, saving=None), plan.reason)


def _left_s(builder: StepBuilder, plan: RestartPlan) -> float | None:
    """Seconds that a stop has before the machine ends; None = as long as the settings say."""
    return None if plan.deadline_t is None else max(LAST_S, plan.deadline_t - builder.t - LAST_S)


def clear_and_restart(builder: StepBuilder, plan: RestartPlan) -> None:
    """The trainer is gone: end the processes that it left behind, then restart as after a stop."""
    plan = gate.with_order(builder, plan)
    if gate.is_closed(builder, plan):
        gate.withhold_start(builder, plan)
        return
    builder.set(resume_ordered=None)
    reason = f"{plan.reason}: end leftover processes first"
    order = builder.decide(
        EndLeftovers, reason, incident=plan.incident, attempt=builder.state.attempt.number, mode="gentle"
    )
    stopping = Stopping(order=order, then="restart", plan=plan, exited=True, leftovers=True)
    builder.move("clear_leftovers", stopping, plan.reason)


def on_stop_outcome(builder: StepBuilder, machine: Stopping, outcome: Outcome) -> None:
    """No process is left, or one would not end: then kill, and if that fails, give up."""
    if machine.saving is not None:
        if not outcome.ok:
            end_saving(builder, machine, f"it was not asked for a checkpoint: {outcome.detail or 'no detail'}")
        return
    if outcome.ok:
        gone = replace(machine, gone_t=builder.t)
        builder.move("processes_gone", gone, "no process is left")
        if machine.exited:
            _after_end(builder, gone)
        return
    if not machine.kill:
        reason = f"the gentle stop did not end it ({outcome.detail or 'no detail'})"
        order = builder.decide(
            EndLeftovers if machine.leftovers else StopAttempt,
            reason,
            incident=machine.plan.incident,
            attempt=builder.state.attempt.number,
            mode="kill",
        )
        builder.move("kill", replace(machine, order=order, kill=True), reason)
        return
    if not machine.exited:
        _ended(builder, machine, None)
    give_up(builder, f"its processes cannot be stopped: {outcome.detail or 'no detail'}", machine.plan.incident)


def on_exit_while_stopping(builder: StepBuilder, machine: Stopping, observation: Exit) -> None:
    """The main process exited; its children may need a moment longer."""
    if machine.exited:
        return
    _ended(builder, machine, observation)
    new = replace(machine, exited=True)
    builder.move("exit", new, "the main process exited")
    if new.saving is not None:
        end_saving(builder, new, "it ended by itself after it was asked for a checkpoint")
        return
    if new.gone_t is not None:
        _after_end(builder, new)


def on_status_lost(builder: StepBuilder, machine: Stopping) -> None:
    """No process is left and no exit status came in time."""
    _ended(builder, machine, None)
    _after_end(builder, replace(machine, exited=True))


def _ended(builder: StepBuilder, machine: Stopping, observation: Exit | None) -> None:
    ended(builder, "finished" if machine.then == "finish" else "killed" if machine.kill else "stopped", observation)


def _after_end(builder: StepBuilder, machine: Stopping) -> None:
    """The attempt ended and no process of it is left."""
    plan = machine.plan
    match machine.then:
        case "restart":
            _clear_gpu(builder, plan)
        case "give_up":
            give_up(builder, plan.ending, plan.incident, plan.advice)
        case "finish":
            conclude(builder, "the training is done; its process did not exit and was stopped")
        case "hold":
            builder.move(
                "hold", Stopped(), f"stopped by {machine.by or 'a person'}; held until resume or restart", Why("person")
            )
        case "end_by":
            builder.move("hold", Stopped(), f"{plan.reason}; held until resume or restart", Why("ordered"))
            at_end.over(builder)
        case "end" if plan.deadline_t is not None:
            builder.move("leave", Interrupted(), f"{plan.reason}; the next start goes on")
            builder.decide(EndWatch, f"the trainer was stopped: {plan.reason}", exit_code=0)
        case "end":
            builder.move("hold", Stopped(), f"stopped by {machine.by or 'a person'} with the supervisor", Why("person"))
            builder.decide(EndWatch, "the trainer was stopped as requested", exit_code=0)
        case _:
            assert_never(machine.then)


def _clear_gpu(builder: StepBuilder, plan: RestartPlan) -> None:
    order = builder.decide(
        ClearGpu,
        "wait until the GPU memory of the ended processes is released",
        incident=plan.incident,
        attempt=builder.state.attempt.number,
    )
    builder.move("clear_gpu", Cleaning(order=order, plan=plan), "waiting for the GPU memory of the ended processes")


def on_clear_outcome(builder: StepBuilder, machine: Cleaning, outcome: Outcome) -> None:
    """The GPU memory is released, or the time limit passed: then go on or hold, as the settings say."""
    plan = machine.plan
    if outcome.ok or builder.knowledge.settings.restart.if_gpu_not_clear == "go_on":
        if not outcome.ok:
            builder.note(f"the GPU memory is not released ({outcome.detail or 'time limit passed'}); continuing anyway")
        if plan.need_bytes is not None:
            wait_for_room(builder, plan, plan.need_bytes)
        elif plan.needs_gpu:
            _wait_for_gpu(builder, plan)
        else:
            choose(builder, plan)
        return
    reason = f"the GPU memory of the ended processes was not released: {outcome.detail or 'time limit passed'}"
    builder.close_incident(plan.incident, "held: the GPU memory is not released")
    builder.move("hold", Stopped(), reason, Why("gpu_memory"))
    builder.notify("warning", "held", reason, incident=plan.incident)


def _wait_for_gpu(builder: StepBuilder, plan: RestartPlan) -> None:
    """Start nothing on a lost GPU; it goes on when one of the run answers again."""
    state = builder.state
    gone = state.gpus_usable is False or state.gpu_fault is None
    reason = "no GPU of this run answers; it continues when one does"
    if not gone:
        reason = "the GPU of this run is lost until it is reset; it continues when it was gone and answers again"
    how = (
        f"see nvidia-smi; a reset or a reboot brings it back (`{builder.knowledge.typed('resume')}` does not wait). To "
        f"go on with another GPU: `{builder.knowledge.typed('stop')}`, and start again with CUDA_VISIBLE_DEVICES or "
        "run.gpus set to it"
    )
    builder.move("no_gpu", WaitingForGpu(plan=replace(plan, needs_gpu=False), gone=gone), reason, Why("gpu_lost"))
    builder.notify("warning", "held: the GPU is lost", f"{reason}\n{how}", incident=plan.incident)


def on_gpus(builder: StepBuilder, machine: WaitingForGpu) -> None:
    """A sample of the GPUs came: go on if one of the run answers again."""
    usable = builder.state.gpus_usable
    if usable is False and not machine.gone:
        builder.set(machine=replace(machine, gone=True))
    if not usable or not machine.gone:
        return
    builder.note("a GPU of this run answers again")
    choose(builder, machine.plan)


def wait_for_room(builder: StepBuilder, plan: RestartPlan, need_bytes: float) -> None:
    """Start nothing until ``need_bytes`` are free on the disk: a trainer that cannot save loses all its work."""
    state = builder.state
    free = state.disk_free_bytes
    need, then = sizes_apart(need_bytes, free)
    output_dir = builder.knowledge.output_dir
    where = f" in {output_dir}" if output_dir else ""
    reason = f"the disk is full; it continues when {need} are free{then and f' ({then} were)'}{where}"
    folder = output_dir or "DIR"
    why = Why("disk_full", need_bytes=need_bytes, free_bytes=free)
    how = f"make room: `{typed('checkpoints prune', folder, '--keep', 'N')}` shows what could go"
    if not has_inodes(state.disk_free_inodes):
        reason = "no more files can be created on the disk (no free inodes); it continues when some are deleted"
        why = Why("no_inodes")
        how = "`df -i` shows it; caches and folders with many small files take the most"
    for incident in state.incidents:
        if incident.class_ == disk_forecast.CLASS:
            builder.close_incident(incident.id, "the disk is full")
    builder.move("no_room", WaitingForRoom(need_bytes=need_bytes, plan=replace(plan, need_bytes=None)), reason, why)
    builder.notify("warning", "held: the disk is full", f"{reason}\n{how}", incident=plan.incident)


def has_room(sample: HostSample, machine: WaitingForRoom) -> bool:
    """Whether the sample shows the room that is waited for."""
    if machine.until_t is not None:
        return False
    return (sample.disk_free_bytes or 0.0) >= machine.need_bytes and has_inodes(sample.disk_free_inodes)


def on_room(builder: StepBuilder, machine: WaitingForRoom) -> None:
    """There is room on the disk again."""
    builder.note("the disk has space again")
    choose(builder, machine.plan)
