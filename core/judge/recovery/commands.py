"""Operator commands: stop, kill, restart, resume, pause, profile, ack, wait, act, save, shutdown.

``unpause`` is a ``resume`` that ends a pause and does nothing else.

A command is never an error: one that makes no sense in the present state is noted and changes nothing.
commands.py decides that and has the reply that the operator gets.
"""

from collections.abc import Callable

import msgspec

from ...model.decision import EndWatch, PauseAttempt, UnpauseAttempt
from ...model.fact import ActChanged, BudgetChanged, CommandReceived, IncidentUpdated, ProfileChanged
from ...model.observation import Command
from ...model.preset import NO_PROFILE
from ...model.progress import Why
from .. import run_states
from ..handlers import checkpoint_jobs
from ..hang import deadlines, pauses
from ..knowledge import Knowledge
from ..memory import Budget
from ..run_states import (
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
from ..state import JudgeState, StepBuilder
from . import attempts, gate, nan_rollback, policy, ramp, remedy_choice, restarts, resume_choice, unclear_states
from .apply import answer_failure
from .attempts import can_ask, cannot_be_told, close_quiet, ways
from .unclear_states import why_not_resumable

_BETWEEN = Cleaning | Listing | Copying | Verifying | BackingOff | WaitingForRoom | WaitingForGpu
"""States between two attempts that go on by themselves."""
replace = msgspec.structs.replace
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
    policy.remember(builder)
    builder.fact(CommandReceived(verb=command.verb, by=command.by, detail=detail))
    reply = reply_to(builder.state, builder.knowledge, command)
    if reply.acts:
        _VERBS[command.verb][1](builder, command)
    else:
        builder.note(f"{command.verb}: {reply.message}", "refusal")
        if command.verb == "resume" and run_states.is_live(builder.machine):
            builder.set(resume_ordered=(command.by, builder.t))


def _end(builder: StepBuilder, command: Command) -> None:
    machine, kill = builder.machine, command.verb == "kill"
    plan = RestartPlan(reason=f"{command.verb} by {command.by}")
    builder.set(ends=None)
    if isinstance(machine, Starting) and not machine.launched:
        builder.move(
            "command",
            replace(machine, stop_requested=True, restart_plan=None),
            "to be stopped as soon as it is started",
        )
    elif isinstance(machine, Stopping):
        held = replace(machine, then="hold", by=command.by)
        if machine.saving is not None and machine.then == "hold" and not kill:
            restarts.end_saving(builder, held, f"stop by {command.by} again: no checkpoint is waited for")
        elif kill and not machine.kill:
            restarts.stop(builder, "hold", plan, mode="kill", by=command.by, exited=machine.exited)
        else:
            builder.move("command", held, f"{command.verb} by {command.by}: no restart after this")
    elif run_states.is_live(machine):
        finishing = builder.state.withheld is not None and builder.state.withheld.follows == "finish"
        _close_hangs(builder, f"ended by {command.by}")
        then: Then = "finish" if finishing else "hold"
        restarts.stop(builder, then, plan, mode="kill" if kill else "gentle", by=command.by)
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
    machine = builder.machine
    if is_answer(builder.state, command):
        carry_out(builder, command.by)
        return
    plan = _ordered(builder, command, "restart")
    if isinstance(machine, Starting) and not machine.launched:
        _take_profile(builder, command)
        _take_remedies(builder, command)
        told = replace(machine, stop_requested=False, restart_plan=plan)
        builder.move("command", told, f"{plan.reason}: as soon as the attempt that is being started exists")
    elif isinstance(machine, Stopping):
        checkpoint_jobs.set_time(builder, after_s=checkpoint_jobs.stop_takes_s(builder.knowledge, builder.state))
        builder.move("command", replace(machine, then="restart", plan=plan), plan.reason)
    elif run_states.is_live(machine):
        _take_profile(builder, command)
        _take_remedies(builder, command)
        _close_hangs(builder, f"restarted by {command.by}")
        restarts.stop(builder, "restart", plan, by=command.by)
    else:
        _resume(builder, command)


def _resume(builder: StepBuilder, command: Command) -> None:
    machine = builder.machine
    if ends_pause(builder.state, command):
        _unpause(builder, command)
        return
    if is_answer(builder.state, command):
        carry_out(builder, command.by)
        return
    if builder.state.ends is None:  # a time that is too near to be met is not meant
        checkpoint_jobs.set_time(builder, after_s=checkpoint_jobs.stop_takes_s(builder.knowledge, builder.state))
    if isinstance(machine, Stopping):
        plan = _ordered(builder, command, "resume")
        builder.move("command", replace(machine, then="restart", plan=plan), plan.reason)
        return
    _take_profile(builder, command)
    _take_remedies(builder, command)
    plan = _ordered(builder, command, command.verb)
    # A person looked at it: earlier failures do not count any more.
    builder.set(history=())
    if builder.state.budget.used or builder.state.budget.unsaved:
        before = builder.state.budget
        builder.set(budget=Budget(best=before.best, every=before.every, epochs=before.epochs))
        builder.fact(BudgetChanged(used=0, max=builder.settings.restart.max_restarts))
    if builder.attempt.number:
        # A stop may have failed: processes of the last attempt must be gone before the next one is launched.
        restarts.clear_and_restart(builder, plan)
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
    assert command.act is not None  # commands.py refuses the command without one
    builder.set(act=command.act)
    settings = builder.settings.restart.act
    builder.fact(ActChanged(act=command.act, by=command.by, settings=settings))
    machine = builder.machine
    if command.act == "all":
        judge_again(builder, command.by)
    elif isinstance(machine, Stopping) and machine.then == "restart" and gate.is_closed(builder, machine.plan):
        held = replace(machine, then="hold", by=command.by)
        builder.move("command", held, f"{command.by} chose act = {command.act}: no restart after this")
    elif isinstance(machine, _BETWEEN) and gate.is_closed(builder, machine.plan):
        gate.withhold(builder, "restart", machine.plan, live=False)
    else:
        gate.renew(builder)


def _pause(builder: StepBuilder, command: Command) -> None:
    _close_hangs(builder, f"paused by {command.by}")
    builder.set(time=replace(builder.state.time, stopped=True))
    order = builder.decide(PauseAttempt, f"pause by {command.by}", attempt=builder.attempt.number)
    builder.move("pause", Paused(order=order), f"paused by {command.by} (its GPU memory stays held)")


def _unpause(builder: StepBuilder, command: Command) -> None:
    builder.decide(UnpauseAttempt, f"resume by {command.by}", attempt=builder.attempt.number)
    awake(builder, f"resumed by {command.by}")


def awake(builder: StepBuilder, reason: str) -> None:
    """The trainer runs again: the deadline of its next step starts anew."""
    state = builder.state
    line = replace(state.time, stopped=False)
    now = pauses.now(line)
    builder.set(time=line, clock=replace(state.clock, last=now))
    follow_trainer(builder, reason)


def follow_trainer(builder: StepBuilder, reason: str) -> None:
    """Watch a trainer that exists: running if it has made a step or saved a checkpoint, else starting."""
    if builder.state.trains:
        builder.move("training", Running(), reason)
    else:
        builder.move("started", Starting(launched=True), reason)


def _profile(builder: StepBuilder, command: Command) -> None:
    name = command.profile
    assert name is not None  # commands.py refuses the command without one
    live = run_states.is_live(builder.machine)
    ramp.chosen(builder, name, command.by)
    builder.set(profile_pending=name, switch=live)
    remedy_choice.drop(builder, f"{command.by} chose the profile {name}")
    when = "now" if live and command.now else "at the next checkpoint" if live else "at the next start"
    profile = None if name == NO_PROFILE and NO_PROFILE not in builder.knowledge.profiles else name
    builder.fact(ProfileChanged(profile=profile, pending=True, why=f"asked for by {command.by}, {when}"))
    if command.now and isinstance(builder.machine, Running | Hung | Starting | Suspended) and live:
        _close_hangs(builder, f"profile {name} by {command.by}")
        restarts.stop(builder, "restart", RestartPlan(reason=f"profile {name} by {command.by}"), by=command.by)


def _take_profile(builder: StepBuilder, command: Command) -> None:
    if command.profile is not None:
        _profile(builder, replace(command, now=False))


def switch_at_checkpoint(builder: StepBuilder) -> None:
    """A checkpoint is complete: restart with the profile that waits for one."""
    name = builder.state.profile_pending
    if name is not None and isinstance(builder.machine, Running):
        climbs = name == builder.state.ramp.climbing
        reason = f"profile {name} at a checkpoint, {'by the ramp' if climbs else 'as asked'}"
        restarts.stop(builder, "restart", RestartPlan(reason=reason), by="" if climbs else "a person")


def _ack(builder: StepBuilder, command: Command) -> None:
    for incident in builder.state.incidents:
        if command.incident in {None, incident.id} and not incident.acknowledged:
            known = replace(incident, acknowledged=True)
            rest = tuple(known if i.id == known.id else i for i in builder.state.incidents)
            builder.set(incidents=rest)
            builder.fact(IncidentUpdated(incident=known))
    waiting = builder.state.withheld
    if waiting is not None and command.incident in {None, waiting.action.incident}:
        gate.refuse(builder, waiting, command.by)


def _snooze(builder: StepBuilder, command: Command) -> None:
    until = pauses.now(builder.state.time) + SNOOZE_S
    builder.change_attempt(patient_until=until)
    if isinstance(builder.machine, Hung):
        _close_hangs(builder, f"{command.by} asked to wait")
        follow_trainer(builder, f"{command.by} asked to wait")
    builder.note(f"no hang is declared for {SNOOZE_S / 60:.0f} min, as {command.by} asked")


def _save(builder: StepBuilder, command: Command) -> None:
    attempts.request(builder, f"save by {command.by}")


def _shutdown(builder: StepBuilder, command: Command) -> None:
    machine = builder.machine
    launching = isinstance(machine, Starting) and not machine.launched
    if command.stop_trainer and (launching or run_states.is_live(machine)):
        reason = f"shutdown with the trainer by {command.by}"
        plan = RestartPlan(reason=reason, deadline_t=None if command.within_s is None else builder.t + command.within_s)
        if isinstance(machine, Starting) and launching:
            told = replace(machine, end_plan=replace(plan, by=command.by))
            builder.move("command", told, f"{reason}: as soon as it is started")
        elif isinstance(machine, Stopping):
            builder.move("command", replace(machine, then="end", plan=plan, by=command.by), reason)
        else:
            restarts.stop(builder, "end", plan, by=command.by)
        return
    runs = launching or run_states.is_live(machine)
    rest = "a running trainer goes on" if runs else "nothing of the run is running"
    builder.decide(EndWatch, f"shutdown by {command.by}; {rest}", exit_code=0)


def _close_hangs(builder: StepBuilder, ending: str) -> None:
    close_quiet(builder, ending)
    for incident in builder.state.incidents:
        if incident.kind == "hang":
            builder.close_incident(incident.id, ending)


# Whether an operator command makes sense in the present state, and the reply that the operator gets.
#
# The same text goes back over the control socket and into the journal. A command that is refused, or fulfilled
# already, changes nothing.


class CommandReply(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: it is, or will be, as was asked for. ``acts``: something is done for it. ``message``: a sentence."""

    ok: bool = True
    acts: bool = True
    message: str = ""


YES = CommandReply()


def refused(message: str) -> CommandReply:
    """The command makes no sense now."""
    return CommandReply(ok=False, acts=False, message=message)


def fulfilled(message: str) -> CommandReply:
    """Nothing is to be done."""
    return CommandReply(acts=False, message=message)


def reply_to(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    """The reply to ``command`` in this state. Changes nothing."""
    return _VERBS[command.verb][0](state, knowledge, command)


def _present(state: JudgeState) -> str:
    """The state in words: ``it is backing off``."""
    word = run_states.WORDS[run_states.name_of(state.machine)].replace("_", " ")
    number = state.attempt.number
    return f"it is {word} (attempt {number})" if run_states.is_live(state.machine) else f"it is {word}"


def _reply_end(state: JudgeState, _knowledge: Knowledge, _command: Command) -> CommandReply:
    name = run_states.name_of(state.machine)
    if name in {"stopped", "finished", "ended_early", "given_up"} and state.withheld is None:
        return fulfilled(f"nothing is running: {_present(state)} already")
    return YES


def _reply_restart(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    return _is_over(state, knowledge, command) or _next_attempt(state, knowledge, command)


def _reply_resume(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    machine = state.machine
    if (over := _is_over(state, knowledge, command)) is not None:
        return over
    if ends_pause(state, command):
        return YES
    if is_answer(state, command):
        return _next_attempt(state, knowledge, command)
    if isinstance(machine, Paused | Suspended):
        how = f"`{knowledge.typed('resume')}` lets it go on, `{knowledge.typed('restart')}` begins a new attempt"
        return refused(f"{_present(state)}, and its process lives; {how}")
    if isinstance(machine, Starting) or (run_states.is_live(machine) and not isinstance(machine, Stopping)):
        how = f"`{knowledge.typed('restart')}` begins a new attempt"
        return refused(f"the run is going already: {_present(state)}; {how}")
    return _next_attempt(state, knowledge, command)


def _is_over(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply | None:
    """An answer to a question that does not wait any more must not end or start anything."""
    waiting = state.withheld
    if command.incident is None or (waiting is not None and waiting.action.incident == command.incident):
        return None
    live = run_states.is_live(state.machine) and not isinstance(state.machine, Stopping)
    verb = "restart" if live else "resume"
    return refused(
        f"incident {command.incident} waits for no answer any more: {_present(state)}; nothing was ended or started "
        f"(`{knowledge.typed(verb)}` without --incident does it all the same)"
    )


def _next_attempt(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    """Whether the next attempt can resume as asked, with the remedies asked for."""
    why = None if command.fresh else why_not_resumable(state, knowledge, command.checkpoint)
    if why is None and not command.fresh and command.checkpoint is None:
        unclear = unclear_states.why_not_begun_anew(state, knowledge)
        if unclear is not None:
            return refused(f"{unclear}; `{knowledge.typed(command.verb, '--fresh')}` begins anew")
    if why is None:
        return _remedies(knowledge, command)
    if command.checkpoint is not None:
        return refused(why)
    if cannot_be_told(knowledge) and not run_states.is_live(state.machine):
        return refused(f"{why}; go on with {ways(knowledge)}")
    return refused(f"{why}; `{knowledge.typed(command.verb, '--fresh')}` does that")


def _remedies(knowledge: Knowledge, command: Command) -> CommandReply:
    known = {row.name for row in knowledge.remedies}
    unknown = [name for name in command.remedies if name not in known]
    if unknown:
        return refused(f"there is no remedy {unknown[0]!r}; known: {', '.join(sorted(known)) or 'none'}")
    return YES


def _reply_pause(state: JudgeState, knowledge: Knowledge, _command: Command) -> CommandReply:
    machine = state.machine
    if isinstance(machine, Paused):
        return fulfilled("it is paused already")
    if isinstance(machine, Running | Hung | Suspended) or (isinstance(machine, Starting) and machine.launched):
        return YES
    ending = ", and is left to end" if isinstance(machine, Stopping) else f"; `{knowledge.typed('resume')}` starts it"
    finished = run_states.name_of(machine) == "finished"
    return refused(f"nothing is running that could be paused: {_present(state)}{'' if finished else ending}")


def _reply_unpause(state: JudgeState, knowledge: Knowledge, _command: Command) -> CommandReply:
    if isinstance(state.machine, Paused | Suspended):
        return YES
    hint = "" if run_states.is_live(state.machine) else f"; `{knowledge.typed('resume')}` starts it"
    finished = run_states.name_of(state.machine) == "finished"
    return refused(f"the run is not paused: {_present(state)}{'' if finished else hint}")


def _reply_profile(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    known = knowledge.profiles
    none = command.profile == NO_PROFILE and NO_PROFILE not in known
    if command.profile is None or (known and command.profile not in known and not none):
        return refused(f"there is no profile {command.profile!r}; known: {', '.join(known) or 'none'}")
    if run_states.name_of(state.machine) == "finished":
        return refused("the run is finished; give a profile to the next start")
    live = run_states.is_live(state.machine) and not isinstance(state.machine, Stopping)
    wanted = None if none else command.profile
    if state.profile == wanted and state.profile_pending in {None, command.profile} and not state.applied and live:
        with_it = "without a profile" if none else f"with {command.profile}"
        how = f"`{knowledge.typed('restart')}` begins a new attempt like that"
        return fulfilled(f"it trains {with_it} already; {how}")
    anew = why_not_resumable(state, knowledge)
    if anew is None and not command.now and cannot_be_told(knowledge):
        anew = "a checkpoint cannot be passed to the command (write {resume} where its path belongs)"
    if live and anew is not None:
        return refused(f"a switch needs a restart, and {anew}; `{knowledge.typed('restart', '--fresh')}` begins anew")
    return YES


def _reply_ack(state: JudgeState, _knowledge: Knowledge, command: Command) -> CommandReply:
    open_ = {incident.id: incident for incident in state.incidents}
    if command.incident is not None and command.incident not in open_:
        listed = ", ".join(map(str, open_)) or "none"
        return refused(f"there is no open incident {command.incident}; open: {listed}")
    if all(incident.acknowledged for incident in open_.values()):
        return fulfilled("no open incident waits to be acknowledged")
    return YES


def _reply_snooze(state: JudgeState, _knowledge: Knowledge, _command: Command) -> CommandReply:
    if run_states.is_watched(state.machine):
        return YES
    return refused(f"nothing is running that could be waited for: {_present(state)}")


def _reply_act(_state: JudgeState, _knowledge: Knowledge, command: Command) -> CommandReply:
    return YES if command.act is not None else refused('say which: "all", "ask" or "notify"')


def _reply_save(state: JudgeState, knowledge: Knowledge, _command: Command) -> CommandReply:
    if not isinstance(state.machine, Running):
        return refused(f"only a training that runs can save: {_present(state)}")
    if not can_ask(state, knowledge):
        return refused(
            "the trainer cannot be asked for a checkpoint: set save_signal or save_file under [run], or use "
            "trainwatch.heartbeat in the script"
        )
    return YES


_Reply = Callable[[JudgeState, Knowledge, Command], CommandReply]
_VERBS: dict[str, tuple[_Reply, Callable[[StepBuilder, Command], None]]] = {
    "stop": (_reply_end, _end),
    "kill": (_reply_end, _end),
    "restart": (_reply_restart, _restart),
    "resume": (_reply_resume, _resume),
    "pause": (_reply_pause, _pause),
    "unpause": (_reply_unpause, _unpause),
    "profile": (_reply_profile, _profile),
    "ack": (_reply_ack, _ack),
    "snooze": (_reply_snooze, _snooze),
    "act": (_reply_act, _act),
    "save": (_reply_save, _save),
    "shutdown": (lambda _state, _knowledge, _command: YES, _shutdown),
}


# The answer of a person to what was withheld (gate.py): what would have been done is done now.


def is_answer(state: JudgeState, command: Command) -> bool:
    """Whether ``restart`` or ``resume`` means what was withheld. A command with wishes of its own is an order."""
    return state.withheld is not None and state.withheld.follows == "restart" and not has_wishes(command)


def has_wishes(command: Command) -> bool:
    """Whether it says how the next attempt begins."""
    wishes = command.checkpoint, command.profile, command.fresh, command.remedies, command.without_remedies
    return any(wishes)


def ends_pause(state: JudgeState, command: Command) -> bool:
    """Whether ``resume`` lets a stopped process go on: nothing else is asked for, and no question is answered."""
    return isinstance(state.machine, Paused | Suspended) and command.incident is None and not has_wishes(command)


def carry_out(builder: StepBuilder, by: str) -> None:
    """Do what was withheld."""
    waiting = builder.state.withheld
    assert waiting is not None  # is_answer was asked
    gate.close(builder, f"ordered by {by}")
    plan = replace(waiting.plan, by=by, reason=f"{waiting.plan.reason}, ordered by {by}")
    if waiting.failed is not None:
        answer_failure(builder, waiting.failed, plan)
    elif waiting.state == "stopped":
        restarts.clear_and_restart(builder, plan)
    else:
        restarts.stop(builder, "restart", plan)


def judge_again(builder: StepBuilder, by: str) -> None:
    """Everything is done without a person from now on: the run is restarted, or a hang is judged anew."""
    waiting = builder.state.withheld
    if waiting is None:
        return
    if waiting.state == "stopped":
        carry_out(builder, by)
    elif isinstance(builder.machine, Hung):
        withdraw(builder, f"{by} chose act = all: it is judged again")
    else:
        gate.close(builder, f"{by} chose act = all")


def withdraw(builder: StepBuilder, why: str) -> None:
    """The hang that a question was about is over, or is to be judged anew: the trainer is watched as before."""
    machine = builder.machine
    assert isinstance(machine, Hung)
    builder.close_incident(machine.incident, why)
    builder.set(clock=deadlines.restart_wait(builder.state.clock, pauses.now(builder.state.time)))
    follow_trainer(builder, why)
