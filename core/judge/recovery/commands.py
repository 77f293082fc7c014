"""Operator commands: stop, kill, restart, resume, pause, unpause, profile, ack, wait, shutdown.

A command is never an error: one that makes no sense in the present state is noted and changes nothing.
command_replies.py decides that and has the reply that the operator gets.
"""

from collections.abc import Callable

import msgspec

from ...model.decision import EndWatch, PauseAttempt, UnpauseAttempt
from ...model.fact import BudgetChanged, CommandReceived, IncidentUpdated, ProfileChanged
from ...model.observation import Command
from ...model.profile import NO_PROFILE
from .. import run_machine
from ..hang import active_time
from ..run_states import Hung, Paused, RestartPlan, Running, Starting, Stopped, Stopping
from ..step_builder import Draft
from . import command_replies, fallback, ramp, remedy_choice, restart_stages, resume_choice
from .budget import Budget

WAIT_S = 600.0
"""How long no hang is declared after the command ``wait``."""


def on_command(draft: Draft, command: Command) -> None:
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
        )
        if part is not None
    )
    fallback.remember(draft)
    draft.fact(CommandReceived(verb=command.verb, by=command.by, detail=detail))
    reply = command_replies.reply(draft.state, draft.knowledge, command)
    if reply.acts:
        _VERBS[command.verb](draft, command)
    else:
        draft.note(f"{command.verb}: {reply.message}")


def _stop(draft: Draft, command: Command) -> None:
    _end(draft, command, kill=command.verb == "kill")


def _end(draft: Draft, command: Command, *, kill: bool) -> None:
    machine = draft.state.machine
    plan = RestartPlan(reason=f"{command.verb} by {command.by}")
    if isinstance(machine, Starting) and not machine.launched:
        draft.move("command", msgspec.structs.replace(machine, hold=True), "to be ended as soon as it is there")
    elif isinstance(machine, Stopping):
        held = msgspec.structs.replace(machine, then="hold", by=command.by)
        if kill and not machine.kill:
            restart_stages.stop(draft, "hold", plan, mode="kill", by=command.by, exited=machine.exited)
        else:
            draft.move("command", held, f"{command.verb} by {command.by}: no restart after this")
    elif run_machine.is_live(machine):
        _close_hangs(draft, f"ended by {command.by}")
        restart_stages.stop(draft, "hold", plan, mode="kill" if kill else "gentle", by=command.by)
    else:  # between two attempts, or before the first one
        draft.move("hold", Stopped(), f"stopped by {command.by}; held until resume or restart")


def _take_remedies(draft: Draft, command: Command) -> None:
    if command.without_remedies:
        remedy_choice.drop(draft, f"asked for by {command.by}")
    for name in command.remedies:
        remedy_choice.take_by_name(draft, name, command.by)


def _restart(draft: Draft, command: Command) -> None:
    machine = draft.state.machine
    plan = RestartPlan(reason=f"restart by {command.by}", wanted=command.checkpoint, fresh=command.fresh)
    if isinstance(machine, Stopping):
        draft.move("command", msgspec.structs.replace(machine, then="restart", plan=plan), plan.reason)
    elif run_machine.is_live(machine):
        _take_profile(draft, command)
        _take_remedies(draft, command)
        _close_hangs(draft, f"restarted by {command.by}")
        restart_stages.stop(draft, "restart", plan, by=command.by)
    else:
        _resume(draft, command)


def _resume(draft: Draft, command: Command) -> None:
    machine = draft.state.machine
    if isinstance(machine, Stopping):
        plan = RestartPlan(reason=f"resume by {command.by}", wanted=command.checkpoint, fresh=command.fresh)
        draft.move("command", msgspec.structs.replace(machine, then="restart", plan=plan), plan.reason)
        return
    _take_profile(draft, command)
    _take_remedies(draft, command)
    # A person looked at it: earlier failures do not count any more.
    draft.set(history=())
    if draft.state.budget.used:
        draft.set(budget=Budget(used=0, best=draft.state.budget.best))
        draft.fact(BudgetChanged(used=0, max=draft.knowledge.settings.restart.max_restarts))
    plan = RestartPlan(reason=f"{command.verb} by {command.by}", wanted=command.checkpoint, fresh=command.fresh)
    if draft.state.attempt.number:
        # A stop may have failed: processes of the last attempt must be gone before the next one is launched.
        restart_stages.clear_and_restart(draft, plan)
    else:
        resume_choice.choose(draft, plan)


def _pause(draft: Draft, command: Command) -> None:
    _close_hangs(draft, f"paused by {command.by}")
    draft.set(timeline=msgspec.structs.replace(draft.state.timeline, stopped=True))
    order = draft.decide(PauseAttempt, f"pause by {command.by}", attempt=draft.state.attempt.number)
    draft.move("pause", Paused(order=order), f"paused by {command.by} (its GPU memory stays held)")


def _unpause(draft: Draft, command: Command) -> None:
    draft.decide(UnpauseAttempt, f"unpause by {command.by}", attempt=draft.state.attempt.number)
    awake(draft, f"unpaused by {command.by}")


def awake(draft: Draft, reason: str) -> None:
    """The trainer runs again: the deadline of its next step starts anew."""
    state = draft.state
    line = msgspec.structs.replace(state.timeline, stopped=False)
    now = active_time.active(line)
    draft.set(timeline=line, clock=msgspec.structs.replace(state.clock, last=now))
    follow_trainer(draft, reason)


def follow_trainer(draft: Draft, reason: str) -> None:
    """Watch a trainer that exists: running if it has made a step, else starting."""
    if draft.state.clock.beats:
        draft.move("training", Running(), reason)
    else:
        draft.move("started", Starting(launched=True), reason)


def _profile(draft: Draft, command: Command) -> None:
    name = command.profile
    assert name is not None  # command_replies.py refuses the command without one
    live = run_machine.is_live(draft.state.machine)
    ramp.chosen(draft, name, command.by)
    draft.set(profile_pending=name, switch=live)
    remedy_choice.drop(draft, f"{command.by} chose the profile {name}")
    when = "now" if live and command.now else "at the next checkpoint" if live else "at the next start"
    profile = None if name == NO_PROFILE and NO_PROFILE not in draft.knowledge.profiles else name
    draft.fact(ProfileChanged(profile=profile, pending=True, why=f"asked for by {command.by}, {when}"))
    if command.now and isinstance(draft.state.machine, Running | Hung | Starting) and live:
        _close_hangs(draft, f"profile {name} by {command.by}")
        restart_stages.stop(draft, "restart", RestartPlan(reason=f"profile {name} by {command.by}"), by=command.by)


def _take_profile(draft: Draft, command: Command) -> None:
    if command.profile is not None:
        _profile(draft, msgspec.structs.replace(command, now=False))


def switch_at_checkpoint(draft: Draft) -> None:
    """A checkpoint is complete: restart with the profile that waits for one."""
    name = draft.state.profile_pending
    if name is not None and isinstance(draft.state.machine, Running):
        why = "by the ramp" if name == draft.state.ramp.climbing else "as asked"
        restart_stages.stop(draft, "restart", RestartPlan(reason=f"profile {name} at a checkpoint, {why}"))


def _ack(draft: Draft, command: Command) -> None:
    for incident in draft.state.incidents:
        if command.incident in {None, incident.id} and not incident.acknowledged:
            known = msgspec.structs.replace(incident, acknowledged=True)
            rest = tuple(known if i.id == known.id else i for i in draft.state.incidents)
            draft.set(incidents=rest)
            draft.fact(IncidentUpdated(incident=known))


def _wait(draft: Draft, command: Command) -> None:
    until = active_time.active(draft.state.timeline) + WAIT_S
    draft.set(attempt=msgspec.structs.replace(draft.state.attempt, patient_until=until))
    if isinstance(draft.state.machine, Hung):
        _close_hangs(draft, f"{command.by} asked to wait")
        follow_trainer(draft, f"{command.by} asked to wait")
    draft.note(f"no hang is declared for {WAIT_S / 60:.0f} min, as {command.by} asked")


def _shutdown(draft: Draft, command: Command) -> None:
    machine = draft.state.machine
    if command.stop_trainer and run_machine.is_live(machine):
        reason = f"shutdown with the trainer by {command.by}"
        if isinstance(machine, Stopping):
            draft.move("command", msgspec.structs.replace(machine, then="end", by=command.by), reason)
        else:
            restart_stages.stop(draft, "end", RestartPlan(reason=reason), by=command.by)
        return
    draft.decide(EndWatch, f"shutdown by {command.by}; a running trainer goes on", exit_code=0)


def _close_hangs(draft: Draft, ending: str) -> None:
    for incident in draft.state.incidents:
        if incident.kind == "hang":
            draft.close_incident(incident.id, ending)


_VERBS: dict[str, Callable[[Draft, Command], None]] = {
    "stop": _stop,
    "kill": _stop,
    "restart": _restart,
    "resume": _resume,
    "pause": _pause,
    "unpause": _unpause,
    "profile": _profile,
    "ack": _ack,
    "wait": _wait,
    "shutdown": _shutdown,
}
