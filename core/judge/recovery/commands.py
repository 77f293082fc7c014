"""Operator commands: stop, kill, restart, resume, pause, profile, ack, snooze, act, save, shutdown; ask of a program.

Each verb is one function ``f(builder, command) -> reply``. A command is never an error: one that makes no sense in the
present state, or is fulfilled already, is noted and changes nothing. The text of the reply goes back over the control
socket and into the journal. ``unpause`` is a ``resume`` that ends a pause and does nothing else.
"""

from collections.abc import Callable

import msgspec

from ...model.decision import EndWatch, PauseAttempt, UnpauseAttempt
from ...model.fact import ActChanged, BudgetChanged, CommandReceived, ProfileChanged, QuestionClosed
from ...model.observation import Command, Reply
from ...model.preset import NO_PROFILE
from .. import run_states
from ..handlers import checkpoint_jobs
from ..hang import liveness
from ..memory import Budget
from ..run_states import Finished, Hung, Paused, RestartPlan, Running, Starting, Stopped, Stopping, Suspended, Then
from ..scales import WHILE_S
from ..state import JudgeState, StepBuilder
from . import attempts, gate, policy, remedies, restarts, resume_choice
from .apply import answer_failure, before_lost_t
from .attempts import can_ask, cannot_be_told, close_quiet, ways
from .resume_choice import why_not_resumable

replace = msgspec.structs.replace
SUSPENDED = "suspended"
"""Class of the incident (kind ``stall``) of a trainer that a signal stopped which is not ours."""


YES = Reply(ok=True)
"""Something is done for the command; a reply with a message says why nothing is."""


def refused(message: str) -> Reply:
    """The command makes no sense now."""
    return Reply(ok=False, message=message)


def fulfilled(message: str) -> Reply:
    """It is as was asked for already."""
    return Reply(ok=True, message=message)


def on_command(builder: StepBuilder, command: Command) -> Reply:
    """Record who gave the command, and carry it out if it makes sense."""
    parts = (
        command.profile,
        command.checkpoint,
        "from the beginning" if command.fresh else None,
        "now" if command.now else None,
        f"with {', '.join(command.remedies)}" if command.remedies else None,
        "without remedies" if command.without_remedies else None,
        command.act,
        command.asked,
    )
    policy.remember(builder)
    detail = " ".join(part for part in parts if part is not None)
    builder.fact(CommandReceived(verb=command.verb, by=command.by, detail=detail))
    reply = _VERBS[command.verb](builder, command)
    waiting = builder.state.operator.withheld
    if reply.ok and waiting is not None and waiting.action.by and waiting.action.verb == command.verb:
        gate.close(builder, f"ordered by {command.by}")  # an order that leaves the run in its state
    if reply.message:
        builder.note(f"{command.verb}: {reply.message}", "refusal")
        if command.verb == "resume" and run_states.is_live(builder.machine):
            builder.change("operator", resume_ordered=(command.by, builder.t))
    return reply


def _present(builder: StepBuilder) -> str:
    """The state in words: ``it is backing off``."""
    word = run_states.WORDS[run_states.name_of(builder.machine)].replace("_", " ")
    live = run_states.is_live(builder.machine)
    return f"it is {word} (attempt {builder.attempt.number})" if live else f"it is {word}"


def _end(builder: StepBuilder, command: Command) -> Reply:
    machine, kill, by = builder.machine, command.verb == "kill", command.by
    concluded = builder.state.operator.concluded
    if isinstance(machine, Stopped | run_states.Over) and concluded is None:
        return fulfilled(f"nothing is running: {_present(builder)} already")
    plan = RestartPlan(reason=f"{command.verb} by {by}", by=by)
    finishing = concluded is not None and concluded.then == "finish"
    builder.change("operator", ends=None)
    if isinstance(machine, Stopping) and machine.saving is not None and machine.then == "hold" and not kill:
        restarts.end_saving(builder, machine, f"stop by {by} again: no checkpoint is waited for")
    elif _order_end(builder, "finish" if finishing else "hold", plan, f"ended by {by}", kill=kill):
        pass
    elif isinstance(machine, Stopped):
        gate.close(builder, f"{command.verb} by {by}: it stays stopped")
    else:  # between two attempts, or before the first one
        restarts.after_end(builder, "hold", plan)
    return YES


def _order_end(builder: StepBuilder, then: Then, plan: RestartPlan, ending: str = "", *, kill: bool = False) -> bool:
    """What a person ordered follows the end of the attempt, which is ended for it, or will be once it is launched.

    ``ending``: of a hang that it has. Returns False if there is no attempt.
    """
    machine = builder.machine
    if isinstance(machine, Starting) and not machine.launched:
        builder.move("command", replace(machine, then=then, next=plan))
    elif isinstance(machine, Stopping) and (machine.kill or not kill):
        builder.move("command", replace(machine, then=then, plan=replace(plan, incident=machine.plan.incident)))
    elif isinstance(machine, Stopping):
        restarts.stop(builder, then, plan, kill=True, exited=machine.exited)
    elif run_states.is_live(machine):
        if ending:
            _close_hangs(builder, ending)
        restarts.stop(builder, then, plan, kill=kill)
    else:
        return False
    return True


def _next(builder: StepBuilder, command: Command) -> Reply:
    """``restart`` and ``resume``: the next attempt, now or as soon as the present one has ended.

    ``resume`` begins none while a trainer lives: it lets a paused one go on, and answers what waits for an answer.
    """
    machine, typed = builder.machine, builder.typed
    live, answers = run_states.is_live(machine) and not isinstance(machine, Stopping), is_answer(builder.state, command)
    waiting, launching = builder.state.operator.concluded, isinstance(machine, Starting) and not machine.launched
    if command.incident is not None and (waiting is None or waiting.action.incident != command.incident):
        # An answer to a question that does not wait any more must not end or start anything.
        does = f"`{typed('restart' if live else 'resume')}` without --incident does it all the same"
        over = f"incident {command.incident} waits for no answer any more: {_present(builder)}"
        return refused(f"{over}; nothing was ended or started ({does})")
    if command.verb == "resume" and isinstance(machine, Paused | Suspended):
        if command.incident is None and not has_wishes(command):
            return _unpause(builder, command)
        if not answers:
            alive = f"{_present(builder)}, and its process lives; `{typed('resume')}` lets it go on"
            return refused(f"{alive}, `{typed('restart')}` begins a new attempt")
    if command.verb == "resume" and not answers and (live or isinstance(machine, Starting)):
        return refused(f"the run is going already: {_present(builder)}; `{typed('restart')}` begins a new attempt")
    why_not = _no_next_attempt(builder, command)
    if why_not is not None:
        return why_not
    if answers:
        carry_out(builder, command.by)
        return YES
    # A checkpoint with the failure in it is not taken unless it is named.
    named = command.fresh or command.checkpoint is not None
    before_t = waiting.plan.before_t if waiting is not None else None if named else before_lost_t(builder)
    plan = RestartPlan(
        reason=f"{command.verb} by {command.by}",
        wanted=command.checkpoint,
        fresh=command.fresh,
        before_t=before_t,
        by=command.by,
    )
    if not (live or launching) and (builder.state.operator.ends is None or isinstance(machine, Stopping)):
        # A time that is too near is not meant.
        checkpoint_jobs.set_time(builder, after_s=checkpoint_jobs.stop_takes_s(builder.knowledge, builder.state))
    if command.without_remedies:
        remedies.drop(builder, f"asked for by {command.by}")
    for name in command.remedies:
        remedies.take_by_name(builder, name, command.by)
    if not _order_end(builder, "restart", plan, f"restarted by {command.by}"):
        # A person looked at it: earlier failures do not count any more.
        before = builder.state.policy.budget
        builder.change("policy", history=())
        if before.used or before.unsaved:
            builder.change("policy", budget=Budget(best=before.best, every=before.every, epochs=before.epochs))
            builder.fact(BudgetChanged(used=0, max=builder.settings.restart.max_restarts))
        # A stop may have failed: processes of the last attempt must be gone before the next one is launched.
        (restarts.clear_and_restart if builder.attempt.number else resume_choice.choose)(builder, plan)
    return YES


def _no_next_attempt(builder: StepBuilder, command: Command) -> Reply | None:
    """Why the next attempt cannot resume as asked, with the remedies asked for; None = it can."""
    knowledge, fresh = builder.knowledge, f"`{builder.typed(command.verb, '--fresh')}`"
    why = None if command.fresh else why_not_resumable(builder, command.checkpoint)
    if why is not None and command.checkpoint is not None:
        return refused(why)
    if why is not None and cannot_be_told(knowledge) and not run_states.is_live(builder.machine):
        return refused(f"{why}; go on with {ways(knowledge)}")
    if why is not None:
        return refused(f"{why}; {fresh} does that")
    unclear = None
    if not command.fresh and command.checkpoint is None:
        unclear = resume_choice.why_not_begun_anew(builder)
    if unclear is not None:
        return refused(f"{unclear}; {fresh} begins anew")
    known = sorted({row.name for row in knowledge.remedies})
    unknown = next((name for name in command.remedies if name not in known), None)
    if unknown is not None:
        return refused(f"there is no remedy {unknown!r}; known: {', '.join(known) or 'none'}")
    return None


def _act(builder: StepBuilder, command: Command) -> Reply:
    """Change what is done without a person. What is under way by itself is held; what waited is judged again."""
    machine = builder.machine
    if command.act is None:
        return refused('say which: "all", "ask" or "notify"')
    builder.change("operator", act=command.act)
    builder.fact(ActChanged(act=command.act, by=command.by, settings=builder.settings.restart.act))
    waiting, by = builder.state.operator.concluded, command.by
    if command.act == "all":
        if waiting is None:
            return YES
        if waiting.state == "stopped":
            carry_out(builder, by)
        elif isinstance(machine, Hung):
            withdraw(builder, f"{by} chose act = all: it is judged again")
        else:
            gate.close(builder, f"{by} chose act = all")
    elif isinstance(machine, Stopping) and machine.then == "restart" and gate.is_closed(builder, machine.plan):
        builder.move("command", replace(machine, then="hold", plan=replace(machine.plan, by=by)))
    elif isinstance(machine, run_states.Between) and gate.is_closed(builder, machine.plan):
        gate.withhold(builder, "restart", machine.plan, live=False)
    elif waiting is not None and waiting.action.asks != (command.act == "ask"):  # a question now, or not asked again
        gate.ask(builder, replace(waiting, action=replace(waiting.action, asks=command.act == "ask")))
    return YES


def _pause(builder: StepBuilder, command: Command) -> Reply:
    machine = builder.machine
    if isinstance(machine, Paused):
        return fulfilled("it is paused already")
    if not (isinstance(machine, Running | Hung | Suspended) or (isinstance(machine, Starting) and machine.launched)):
        ending = ", and is left to end" if isinstance(machine, Stopping) else _starts_it(builder)
        return refused(f"nothing is running that could be paused: {_present(builder)}{ending}")
    _close_hangs(builder, f"paused by {command.by}")
    builder.change("time", stopped=True)
    order = builder.decide(PauseAttempt, f"pause by {command.by}")
    builder.move("pause", Paused(order=order), f"paused by {command.by} (its GPU memory stays held)")
    return YES


def _starts_it(builder: StepBuilder) -> str:
    return "" if isinstance(builder.machine, Finished) else f"; `{builder.typed('resume')}` starts it"


def _unpause(builder: StepBuilder, command: Command) -> Reply:
    if not isinstance(builder.machine, Paused | Suspended):
        hint = "" if run_states.is_live(builder.machine) else _starts_it(builder)
        return refused(f"the run is not paused: {_present(builder)}{hint}")
    builder.decide(UnpauseAttempt, f"resume by {command.by}")
    builder.close_all("it was continued", SUSPENDED)
    builder.change("watch.pause", stopped="none", since_t=None)  # a stop from now on is another one
    awake(builder, f"resumed by {command.by}")
    return YES


def awake(builder: StepBuilder, reason: str) -> None:
    """The trainer runs again: time counts, and the deadline of its next step and what is seen of it start anew."""
    state, now = builder.state, builder.now
    builder.change("time", stopped=False)
    builder.change("watch.clock", last=now)
    builder.change("watch", liveness=liveness.after_gap(state.watch.liveness, now))
    follow_trainer(builder, reason)


def follow_trainer(builder: StepBuilder, reason: str) -> None:
    """Watch a trainer that exists: running if it has made a step or saved a checkpoint, else starting."""
    if builder.state.watch.clock.beats > 0 or builder.state.course.saves_unread:
        builder.move("training", Running(), reason)
    else:
        builder.move("started", Starting(launched=True), reason)


def _profile(builder: StepBuilder, command: Command) -> Reply:
    name, machine, state, known = command.profile, builder.machine, builder.state, builder.knowledge.profiles
    none = name == NO_PROFILE and NO_PROFILE not in known
    if name is None or (known and name not in known and not none):
        return refused(f"there is no profile {name!r}; known: {', '.join(known) or 'none'}")
    if isinstance(machine, Finished):
        return refused("the run is finished; give a profile to the next start")
    live, profile = run_states.is_live(machine), None if none else name
    goes_on = live and not isinstance(machine, Stopping)
    policy = state.policy
    if policy.profile == profile and policy.profile_pending in {None, name} and not policy.applied and goes_on:
        with_it = "without a profile" if none else f"with {name}"
        return fulfilled(f"it trains {with_it} already; `{builder.typed('restart')}` begins a new attempt like that")
    anew = why_not_resumable(builder) or (resume_choice.why_not_begun_anew(builder) if command.now else None)
    if anew is None and not command.now and cannot_be_told(builder.knowledge):
        anew = "a checkpoint cannot be passed to the command (write {resume} where its path belongs)"
    if goes_on and anew is not None:
        return refused(f"a switch needs a restart, and {anew}; `{builder.typed('restart', '--fresh')}` begins anew")
    remedies.chosen(builder, name, command.by)
    builder.change("policy", profile_pending=name, switch=live)
    remedies.drop(builder, f"{command.by} chose the profile {name}")
    when = "now" if live and command.now else "at the next checkpoint" if live else "at the next start"
    builder.fact(ProfileChanged(profile=profile, pending=True, why=f"asked for by {command.by}, {when}"))
    if command.now and isinstance(machine, Running | Hung | Starting | Suspended) and live:
        _close_hangs(builder, f"profile {name} by {command.by}")
        restarts.stop(builder, "restart", RestartPlan(reason=f"profile {name} by {command.by}", by=command.by))
    return YES


def switch_at_checkpoint(builder: StepBuilder) -> None:
    """A checkpoint is complete: restart with the profile that waits for one."""
    name = builder.state.policy.profile_pending
    if name is not None and isinstance(builder.machine, Running):
        climbs = name == builder.state.policy.ramp.climbing
        reason = f"profile {name} at a checkpoint, {'by the ramp' if climbs else 'as asked'}"
        restarts.stop(builder, "restart", RestartPlan(reason=reason, by="" if climbs else "a person"))


def _ack(builder: StepBuilder, command: Command) -> Reply:
    incidents, waiting = builder.state.journal.incidents, builder.state.operator.withheld
    if waiting is not None and waiting.action.by and command.incident is None:
        gate.close(builder, f"no, by {command.by}")
        return YES
    if command.incident is not None and builder.find_incident(command.incident) is None:
        listed = ", ".join(str(incident.id) for incident in incidents) or "none"
        return refused(f"there is no open incident {command.incident}; open: {listed}")
    if all(incident.acknowledged for incident in incidents):
        return fulfilled("no open incident waits to be acknowledged")
    for incident in incidents:
        if command.incident in {None, incident.id} and not incident.acknowledged:
            builder.update_incident(incident.id, acknowledged=True)
    if waiting is not None and command.incident in {None, waiting.action.incident}:
        # It stays as it is and is not asked again. A person can still order it.
        builder.change("operator.withheld", again_t=None)
        builder.fact(QuestionClosed(why=f"no, by {command.by}: it stays as it is"))
    return YES


def _snooze(builder: StepBuilder, command: Command) -> Reply:
    if not run_states.is_watched(builder.machine):
        return refused(f"nothing is running that could be waited for: {_present(builder)}")
    builder.change("attempt", patient_until=builder.now + WHILE_S)
    if isinstance(builder.machine, Hung):
        _close_hangs(builder, f"{command.by} asked to wait")
        follow_trainer(builder, f"{command.by} asked to wait")
    builder.note(f"no hang is declared for {WHILE_S / 60:.0f} min, as {command.by} asked")
    return YES


def _save(builder: StepBuilder, command: Command) -> Reply:
    if not isinstance(builder.machine, Running):
        return refused(f"only a training that runs can save: {_present(builder)}")
    if not can_ask(builder.state, builder.knowledge):
        how = "set save_signal or save_file under [run], or use trainbeat in the script"
        return refused(f"the trainer cannot be asked for a checkpoint: {how}")
    attempts.request(builder, f"save by {command.by}")
    return YES


def _ask(builder: StepBuilder, command: Command) -> Reply:
    """A program asks: a person gets the question, unless what is asked for could not be done now."""
    waiting, verb = builder.state.operator.withheld, command.asked
    if verb is None or has_wishes(command):
        return refused("a program can ask for a plain stop, restart, resume or save")
    if waiting is not None:
        return refused(f"a person has not answered yet: {waiting.action.question}")
    wish = replace(command, verb=verb, asked=None)
    reply = _VERBS[verb](StepBuilder(builder.knowledge, builder.state), wish)  # on a step that is thrown away
    if not reply.message:
        gate.ask_for(builder, verb, command.by, before_lost_t(builder))
    return reply


def _shutdown(builder: StepBuilder, command: Command) -> Reply:
    machine = builder.machine
    runs = run_states.is_live(machine) or (isinstance(machine, Starting) and not machine.launched)
    plan = RestartPlan(
        reason=f"shutdown with the trainer by {command.by}",
        deadline_t=None if command.within_s is None else builder.t + command.within_s,
        by=command.by,
    )
    if not (command.stop_trainer and runs and _order_end(builder, "end", plan)):
        rest = "a running trainer goes on" if runs else "nothing of the run is running"
        builder.decide(EndWatch, f"shutdown by {command.by}; {rest}", exit_code=0)
    return YES


def _close_hangs(builder: StepBuilder, ending: str) -> None:
    close_quiet(builder, ending)
    builder.close_where(ending, lambda incident: incident.kind == "hang")


_VERBS: dict[str, Callable[[StepBuilder, Command], Reply]] = {
    "stop": _end,
    "kill": _end,
    "restart": _next,
    "resume": _next,
    "pause": _pause,
    "unpause": _unpause,
    "profile": _profile,
    "ack": _ack,
    "snooze": _snooze,
    "act": _act,
    "save": _save,
    "ask": _ask,
    "shutdown": _shutdown,
}


def is_answer(state: JudgeState, command: Command) -> bool:
    """Whether ``restart`` or ``resume`` means what was withheld. A command with wishes of its own is an order."""
    return state.operator.withheld is not None and state.operator.withheld.then == "restart" and not has_wishes(command)


def has_wishes(command: Command) -> bool:
    """Whether it says how the next attempt begins."""
    return any((command.checkpoint, command.fresh, command.remedies, command.without_remedies))


def carry_out(builder: StepBuilder, by: str) -> None:
    """A person's answer to what was withheld (gate.py): what would have been done is done now."""
    waiting = builder.state.operator.withheld
    assert waiting is not None  # is_answer was asked
    gate.close(builder, f"ordered by {by}")
    plan = replace(waiting.plan, by=by, reason=f"{waiting.plan.reason}, ordered by {by}")
    if waiting.failed is not None:
        answer_failure(builder, waiting.failed, plan)
    elif waiting.state == "stopped":
        restarts.clear_and_restart(builder, plan)
    else:
        restarts.stop(builder, "restart", plan)


def withdraw(builder: StepBuilder, why: str) -> None:
    """The hang that a question was about is over, or is to be judged anew: the trainer is watched as before."""
    machine = builder.machine
    assert isinstance(machine, Hung)
    builder.close_incident(machine.incident, why)
    builder.change("watch.clock", last=builder.now)
    follow_trainer(builder, why)
