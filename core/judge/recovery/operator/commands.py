"""Operator commands: stop, kill, restart, resume, pause, profile, ack, wait, act, save, shutdown.

``unpause`` is a ``resume`` that ends a pause and does nothing else.

A command is never an error: one that makes no sense in the present state is noted and changes nothing.
command_replies.py decides that and has the reply that the operator gets.
"""

from collections.abc import Callable

import msgspec

from ....model.decision import EndWatch, PauseAttempt, UnpauseAttempt
from ....model.fact import ActChanged, BudgetChanged, CommandReceived, IncidentUpdated, ProfileChanged
from ....model.observation import Command
from ....model.shipped.profile import NO_PROFILE
from ....model.why import Why
from ... import run_machine
from ...hang import active_time
from ...run_states import (
    BackingOff,
    Cleaning,
    Copying,
    Hung,
    Listing,
    Paused,
    RestartPlan,
    Running,
    Starting,
    Stopped,
    Stopping,
    Suspended,
    Then,
    Verifying,
    WaitingForGpu,
    WaitingForRoom,
)
from ...step_builder import StepBuilder
from .. import fallback, nan_rollback, restart_stages, save_first
from ..budget import Budget
from ..ending import at_end
from ..quiet_incident import close_quiet
from ..remedies import ramp, remedy_choice
from ..resume_point import resume_choice
from . import command_replies, gate, question

_BETWEEN = Cleaning | Listing | Copying | Verifying | BackingOff | WaitingForRoom | WaitingForGpu
"""States between two attempts that go on by themselves."""
SNOOZE_S = 600.0
"""How long no hang is declared after the command ``snooze``."""


def on_command(builder: StepBuilder, command: Command) -> None:
    """Record who gave the command, and carry it out if it makes sense."""
    detail = " ".join(
        part
        for part in (
            command.profile,
            command.checkpoint,
            "from the beginning" if command.fresh else None,
            "now" if command.now else None,
            f"with {', '.join(command.remedies)}" if command.remedies else None,
            "without remedies" if command.without_remedies else None,
            command.act,
        )
        if part is not None
    )
    fallback.remember(builder)
    builder.fact(CommandReceived(verb=command.verb, by=command.by, detail=detail))
    reply = command_replies.reply(builder.state, builder.knowledge, command)
    if reply.acts:
        _VERBS[command.verb](builder, command)
    else:
        builder.note(f"{command.verb}: {reply.message}", "refusal")
        if command.verb == "resume" and run_machine.is_live(builder.state.machine):
            builder.set(resume_ordered=(command.by, builder.t))


def _stop(builder: StepBuilder, command: Command) -> None:
    _end(builder, command, kill=command.verb == "kill")


def _end(builder: StepBuilder, command: Command, *, kill: bool) -> None:
    machine = builder.state.machine
    plan = RestartPlan(reason=f"{command.verb} by {command.by}")
    builder.set(ends=None)
    if isinstance(machine, Starting) and not machine.launched:
        builder.move(
            "command",
            msgspec.structs.replace(machine, stop_requested=True, restart_plan=None),
            "to be stopped as soon as it is started",
        )
    elif isinstance(machine, Stopping):
        held = msgspec.structs.replace(machine, then="hold", by=command.by)
        if machine.saving is not None and machine.then == "hold" and not kill:
            restart_stages.end_saving(builder, held, f"stop by {command.by} again: no checkpoint is waited for")
        elif kill and not machine.kill:
            restart_stages.stop(builder, "hold", plan, mode="kill", by=command.by, exited=machine.exited)
        else:
            builder.move("command", held, f"{command.verb} by {command.by}: no restart after this")
    elif run_machine.is_live(machine):
        finishing = builder.state.withheld is not None and builder.state.withheld.follows == "finish"
        _close_hangs(builder, f"ended by {command.by}")
        then: Then = "finish" if finishing else "hold"
        restart_stages.stop(builder, then, plan, mode="kill" if kill else "gentle", by=command.by)
    elif isinstance(machine, Stopped):
        gate.close(builder, f"{command.verb} by {command.by}: it stays stopped")
    else:  # between two attempts, or before the first one
        builder.move("hold", Stopped(), f"stopped by {command.by}; held until resume or restart", Why("person"))


def _take_remedies(builder: StepBuilder, command: Command) -> None:
    if command.without_remedies:
        remedy_choice.drop(builder, f"asked for by {command.by}")
    for name in command.remedies:
        remedy_choice.take_by_name(builder, name, command.by)


def _restart(builder: StepBuilder, command: Command) -> None:
    machine = builder.state.machine
    if question.is_answer(builder.state, command):
        question.carry_out(builder, command.by)
        return
    plan = _ordered(builder, command, "restart")
    if isinstance(machine, Starting) and not machine.launched:
        _take_profile(builder, command)
        _take_remedies(builder, command)
        told = msgspec.structs.replace(machine, stop_requested=False, restart_plan=plan)
        builder.move("command", told, f"{plan.reason}: as soon as the attempt that is being started exists")
    elif isinstance(machine, Stopping):
        at_end.set_time(builder, after_s=at_end.stop_takes_s(builder.knowledge, builder.state))
        builder.move("command", msgspec.structs.replace(machine, then="restart", plan=plan), plan.reason)
    elif run_machine.is_live(machine):
        _take_profile(builder, command)
        _take_remedies(builder, command)
        _close_hangs(builder, f"restarted by {command.by}")
        restart_stages.stop(builder, "restart", plan, by=command.by)
    else:
        _resume(builder, command)


def _resume(builder: StepBuilder, command: Command) -> None:
    machine = builder.state.machine
    if question.ends_pause(builder.state, command):
        _unpause(builder, command)
        return
    if question.is_answer(builder.state, command):
        question.carry_out(builder, command.by)
        return
    if builder.state.ends is None:  # a time that is too near to be met is not meant
        at_end.set_time(builder, after_s=at_end.stop_takes_s(builder.knowledge, builder.state))
    if isinstance(machine, Stopping):
        plan = _ordered(builder, command, "resume")
        builder.move("command", msgspec.structs.replace(machine, then="restart", plan=plan), plan.reason)
        return
    _take_profile(builder, command)
    _take_remedies(builder, command)
    plan = _ordered(builder, command, command.verb)
    # A person looked at it: earlier failures do not count any more.
    builder.set(history=())
    if builder.state.budget.used or builder.state.budget.unsaved:
        before = builder.state.budget
        builder.set(budget=Budget(best=before.best, every=before.every, epochs=before.epochs))
        builder.fact(BudgetChanged(used=0, max=builder.knowledge.settings.restart.max_restarts))
    if builder.state.attempt.number:
        # A stop may have failed: processes of the last attempt must be gone before the next one is launched.
        restart_stages.clear_and_restart(builder, plan)
    else:
        resume_choice.choose(builder, plan)


def _ordered(builder: StepBuilder, command: Command, verb: str) -> RestartPlan:
    """The next attempt as a person ordered it. A checkpoint with the failure in it is not taken unless it is named."""
    waiting = builder.state.withheld
    named = command.fresh or command.checkpoint is not None
    before_t = None if named else nan_rollback.before_nan_t(builder.state)
    return RestartPlan(
        reason=f"{verb} by {command.by}",
        wanted=command.checkpoint,
        fresh=command.fresh,
        before_t=before_t if waiting is None else waiting.plan.before_t,
        by=command.by,
    )


def _act(builder: StepBuilder, command: Command) -> None:
    """Change what is done without a person. What is under way by itself is held; what waited is judged again."""
    assert command.act is not None  # command_replies.py refuses the command without one
    builder.set(act=command.act)
    settings = builder.knowledge.settings.restart.act
    builder.fact(ActChanged(act=command.act, by=command.by, settings=settings))
    machine = builder.state.machine
    if command.act == "all":
        question.judge_again(builder, command.by)
    elif isinstance(machine, Stopping) and machine.then == "restart" and gate.is_closed(builder, machine.plan):
        held = msgspec.structs.replace(machine, then="hold", by=command.by)
        builder.move("command", held, f"{command.by} chose act = {command.act}: no restart after this")
    elif isinstance(
        machine, Cleaning | Listing | Copying | Verifying | BackingOff | WaitingForRoom | WaitingForGpu
    ) and gate.is_closed(builder, machine.plan):
        gate.withhold_start(builder, machine.plan)
    else:
        gate.renew(builder)


def _pause(builder: StepBuilder, command: Command) -> None:
    _close_hangs(builder, f"paused by {command.by}")
    builder.set(time=msgspec.structs.replace(builder.state.time, stopped=True))
    order = builder.decide(PauseAttempt, f"pause by {command.by}", attempt=builder.state.attempt.number)
    builder.move("pause", Paused(order=order), f"paused by {command.by} (its GPU memory stays held)")


def _unpause(builder: StepBuilder, command: Command) -> None:
    builder.decide(UnpauseAttempt, f"resume by {command.by}", attempt=builder.state.attempt.number)
    awake(builder, f"resumed by {command.by}")


def awake(builder: StepBuilder, reason: str) -> None:
    """The trainer runs again: the deadline of its next step starts anew."""
    state = builder.state
    line = msgspec.structs.replace(state.time, stopped=False)
    now = active_time.now(line)
    builder.set(time=line, clock=msgspec.structs.replace(state.clock, last=now))
    follow_trainer(builder, reason)


def follow_trainer(builder: StepBuilder, reason: str) -> None:
    """Watch a trainer that exists: running if it has made a step or saved a checkpoint, else starting."""
    if builder.state.trains:
        builder.move("training", Running(), reason)
    else:
        builder.move("started", Starting(launched=True), reason)


def _profile(builder: StepBuilder, command: Command) -> None:
    name = command.profile
    assert name is not None  # command_replies.py refuses the command without one
    live = run_machine.is_live(builder.state.machine)
    ramp.chosen(builder, name, command.by)
    builder.set(profile_pending=name, switch=live)
    remedy_choice.drop(builder, f"{command.by} chose the profile {name}")
    when = "now" if live and command.now else "at the next checkpoint" if live else "at the next start"
    profile = None if name == NO_PROFILE and NO_PROFILE not in builder.knowledge.profiles else name
    builder.fact(ProfileChanged(profile=profile, pending=True, why=f"asked for by {command.by}, {when}"))
    if command.now and isinstance(builder.state.machine, Running | Hung | Starting | Suspended) and live:
        _close_hangs(builder, f"profile {name} by {command.by}")
        restart_stages.stop(builder, "restart", RestartPlan(reason=f"profile {name} by {command.by}"), by=command.by)


def _take_profile(builder: StepBuilder, command: Command) -> None:
    if command.profile is not None:
        _profile(builder, msgspec.structs.replace(command, now=False))


def switch_at_checkpoint(builder: StepBuilder) -> None:
    """A checkpoint is complete: restart with the profile that waits for one."""
    name = builder.state.profile_pending
    if name is not None and isinstance(builder.state.machine, Running):
        climbs = name == builder.state.ramp.climbing
        reason = f"profile {name} at a checkpoint, {'by the ramp' if climbs else 'as asked'}"
        restart_stages.stop(builder, "restart", RestartPlan(reason=reason), by="" if climbs else "a person")


def _ack(builder: StepBuilder, command: Command) -> None:
    for incident in builder.state.incidents:
        if command.incident in {None, incident.id} and not incident.acknowledged:
            known = msgspec.structs.replace(incident, acknowledged=True)
            rest = tuple(known if i.id == known.id else i for i in builder.state.incidents)
            builder.set(incidents=rest)
            builder.fact(IncidentUpdated(incident=known))
    waiting = builder.state.withheld
    if waiting is not None and command.incident in {None, waiting.action.incident}:
        gate.refuse(builder, waiting, command.by)


def _snooze(builder: StepBuilder, command: Command) -> None:
    until = active_time.now(builder.state.time) + SNOOZE_S
    builder.set(attempt=msgspec.structs.replace(builder.state.attempt, patient_until=until))
    if isinstance(builder.state.machine, Hung):
        _close_hangs(builder, f"{command.by} asked to wait")
        follow_trainer(builder, f"{command.by} asked to wait")
    builder.note(f"no hang is declared for {SNOOZE_S / 60:.0f} min, as {command.by} asked")


def _save(builder: StepBuilder, command: Command) -> None:
    save_first.request(builder, f"save by {command.by}")


def _shutdown(builder: StepBuilder, command: Command) -> None:
    machine = builder.state.machine
    launching = isinstance(machine, Starting) and not machine.launched
    if command.stop_trainer and (launching or run_machine.is_live(machine)):
        reason = f"shutdown with the trainer by {command.by}"
        plan = RestartPlan(reason=reason, deadline_t=None if command.within_s is None else builder.t + command.within_s)
        if isinstance(machine, Starting) and launching:
            told = msgspec.structs.replace(machine, end_plan=msgspec.structs.replace(plan, by=command.by))
            builder.move("command", told, f"{reason}: as soon as it is started")
        elif isinstance(machine, Stopping):
            builder.move("command", msgspec.structs.replace(machine, then="end", plan=plan, by=command.by), reason)
        else:
            restart_stages.stop(builder, "end", plan, by=command.by)
        return
    runs = launching or run_machine.is_live(machine)
    rest = "a running trainer goes on" if runs else "nothing of the run is running"
    builder.decide(EndWatch, f"shutdown by {command.by}; {rest}", exit_code=0)


def _close_hangs(builder: StepBuilder, ending: str) -> None:
    close_quiet(builder, ending)
    for incident in builder.state.incidents:
        if incident.kind == "hang":
            builder.close_incident(incident.id, ending)


_VERBS: dict[str, Callable[[StepBuilder, Command], None]] = {
    "stop": _stop,
    "kill": _stop,
    "restart": _restart,
    "resume": _resume,
    "pause": _pause,
    "unpause": _unpause,
    "profile": _profile,
    "ack": _ack,
    "snooze": _snooze,
    "act": _act,
    "save": _save,
    "shutdown": _shutdown,
}
