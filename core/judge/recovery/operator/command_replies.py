"""Whether an operator command makes sense in the present state, and the reply that the operator gets.

The same text goes back over the control socket and into the journal. A command that is refused, or fulfilled already,
changes nothing.
"""

from collections.abc import Callable

import msgspec

from ....model.observation import Command
from ....model.shipped.profile import NO_PROFILE
from ... import run_machine, run_states
from ...knowledge import Knowledge
from ...run_states import Hung, Paused, Running, Starting, Stopping, Suspended
from ...state import JudgeState
from ..resume_point import unclear_states
from ..resume_point.resume_choice import why_not_resumable
from ..resume_point.untold import cannot_be_told, ways
from ..save_first import can_ask
from . import question


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


def reply(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    """The reply to ``command`` in this state. Changes nothing."""
    return _VERBS[command.verb](state, knowledge, command)


def _present(state: JudgeState) -> str:
    """The state in words: ``it is backing off``."""
    word = run_states.WORDS[run_states.name_of(state.machine)].replace("_", " ")
    number = state.attempt.number
    return f"it is {word} (attempt {number})" if run_machine.is_live(state.machine) else f"it is {word}"


def _end(state: JudgeState, _knowledge: Knowledge, _command: Command) -> CommandReply:
    name = run_states.name_of(state.machine)
    if name in {"stopped", "finished", "ended_early", "given_up"} and state.withheld is None:
        return fulfilled(f"nothing is running: {_present(state)} already")
    return YES


def _restart(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    if (over := _is_over(state, knowledge, command)) is not None:
        return over
    return _next_attempt(state, knowledge, command)


def _resume(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    machine = state.machine
    if (over := _is_over(state, knowledge, command)) is not None:
        return over
    if question.ends_pause(state, command):
        return YES
    if question.is_answer(state, command):
        return _next_attempt(state, knowledge, command)
    if isinstance(machine, Paused | Suspended):
        how = f"`{knowledge.typed('resume')}` lets it go on, `{knowledge.typed('restart')}` begins a new attempt"
        return refused(f"{_present(state)}, and its process lives; {how}")
    if isinstance(machine, Starting) or (run_machine.is_live(machine) and not isinstance(machine, Stopping)):
        how = f"`{knowledge.typed('restart')}` begins a new attempt"
        return refused(f"the run is going already: {_present(state)}; {how}")
    return _next_attempt(state, knowledge, command)


def _is_over(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply | None:
    """An answer to a question that does not wait any more must not end or start anything."""
    if command.incident is None or question.answers(state, command.incident):
        return None
    live = run_machine.is_live(state.machine) and not isinstance(state.machine, Stopping)
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
    if cannot_be_told(knowledge) and not run_machine.is_live(state.machine):
        return refused(f"{why}; go on with {ways(knowledge)}")
    return refused(f"{why}; `{knowledge.typed(command.verb, '--fresh')}` does that")


def _remedies(knowledge: Knowledge, command: Command) -> CommandReply:
    known = {row.name for row in knowledge.remedies}
    unknown = [name for name in command.remedies if name not in known]
    if unknown:
        return refused(f"there is no remedy {unknown[0]!r}; known: {', '.join(sorted(known)) or 'none'}")
    return YES


def _pause(state: JudgeState, knowledge: Knowledge, _command: Command) -> CommandReply:
    machine = state.machine
    if isinstance(machine, Paused):
        return fulfilled("it is paused already")
    if isinstance(machine, Running | Hung | Suspended) or (isinstance(machine, Starting) and machine.launched):
        return YES
    ending = ", and is left to end" if isinstance(machine, Stopping) else f"; `{knowledge.typed('resume')}` starts it"
    finished = run_states.name_of(machine) == "finished"
    return refused(f"nothing is running that could be paused: {_present(state)}{'' if finished else ending}")


def _unpause(state: JudgeState, knowledge: Knowledge, _command: Command) -> CommandReply:
    if isinstance(state.machine, Paused | Suspended):
        return YES
    hint = "" if run_machine.is_live(state.machine) else f"; `{knowledge.typed('resume')}` starts it"
    finished = run_states.name_of(state.machine) == "finished"
    return refused(f"the run is not paused: {_present(state)}{'' if finished else hint}")


def _profile(state: JudgeState, knowledge: Knowledge, command: Command) -> CommandReply:
    known = knowledge.profiles
    none = command.profile == NO_PROFILE and NO_PROFILE not in known
    if command.profile is None or (known and command.profile not in known and not none):
        return refused(f"there is no profile {command.profile!r}; known: {', '.join(known) or 'none'}")
    if run_states.name_of(state.machine) == "finished":
        return refused("the run is finished; give a profile to the next start")
    live = run_machine.is_live(state.machine) and not isinstance(state.machine, Stopping)
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


def _ack(state: JudgeState, _knowledge: Knowledge, command: Command) -> CommandReply:
    open_ = {incident.id: incident for incident in state.incidents}
    if command.incident is not None and command.incident not in open_:
        listed = ", ".join(map(str, open_)) or "none"
        return refused(f"there is no open incident {command.incident}; open: {listed}")
    if all(incident.acknowledged for incident in open_.values()):
        return fulfilled("no open incident waits to be acknowledged")
    return YES


def _snooze(state: JudgeState, _knowledge: Knowledge, _command: Command) -> CommandReply:
    if run_machine.is_watched(state.machine):
        return YES
    return refused(f"nothing is running that could be waited for: {_present(state)}")


def _act(_state: JudgeState, _knowledge: Knowledge, command: Command) -> CommandReply:
    return YES if command.act is not None else refused('say which: "all", "ask" or "notify"')


def _shutdown(_state: JudgeState, _knowledge: Knowledge, _command: Command) -> CommandReply:
    return YES


def _save(state: JudgeState, knowledge: Knowledge, _command: Command) -> CommandReply:
    if not isinstance(state.machine, Running):
        return refused(f"only a training that runs can save: {_present(state)}")
    if not can_ask(state, knowledge):
        return refused(
            "the trainer cannot be asked for a checkpoint: set save_signal or save_file under [run], or use "
            "trainwatch.heartbeat in the script"
        )
    return YES


_VERBS: dict[str, Callable[[JudgeState, Knowledge, Command], CommandReply]] = {
    "stop": _end,
    "kill": _end,
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
