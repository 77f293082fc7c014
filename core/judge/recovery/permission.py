"""Whether a command makes sense in the present state, and if not, what would: the answer that a person gets.

The same words go back over the control socket and into the journal. A command that is refused, or that is fulfilled
already, changes nothing.
"""

from collections.abc import Callable

import msgspec

from ...model.observation import Command
from ...model.profile import NO_PROFILE
from .. import run_machine, run_states
from ..run_states import Hung, Paused, Running, Starting, Stopping
from ..step_builder import Draft
from . import not_resumable


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: it is as was asked for, or will be. ``acts``: something is done for it. ``message``: a sentence."""

    ok: bool = True
    acts: bool = True
    message: str = ""


YES = Answer()


def refused(message: str) -> Answer:
    """It makes no sense now."""
    return Answer(ok=False, acts=False, message=message)


def fulfilled(message: str) -> Answer:
    """It is so already."""
    return Answer(acts=False, message=message)


def answer(draft: Draft, command: Command) -> Answer:
    """For the state of ``draft``, which is left as it is."""
    return _VERBS[command.verb](draft, command)


def _is(draft: Draft) -> str:
    """The state in words: ``it is backing off``."""
    word = run_states.WORDS[run_states.name_of(draft.state.machine)].replace("_", " ")
    number = draft.state.attempt.number
    return f"it is {word} (attempt {number})" if run_machine.is_live(draft.state.machine) else f"it is {word}"


def _end(draft: Draft, _command: Command) -> Answer:
    name = run_states.name_of(draft.state.machine)
    if name in {"stopped", "finished", "given_up"}:
        return fulfilled(f"nothing is running: {_is(draft)} already")
    return YES


def _restart(draft: Draft, command: Command) -> Answer:
    machine = draft.state.machine
    if isinstance(machine, Starting) and not machine.launched:
        return refused("a launch is already under way; wait for it, or stop it")
    return _another(draft, command)


def _resume(draft: Draft, command: Command) -> Answer:
    machine = draft.state.machine
    if isinstance(machine, Paused):
        return refused("it is paused, and its process lives; `trainwatch unpause` lets it go on")
    if isinstance(machine, Starting) or (run_machine.is_live(machine) and not isinstance(machine, Stopping)):
        return refused(f"the run is going already: {_is(draft)}; `trainwatch restart` begins a new attempt")
    return _another(draft, command)


def _another(draft: Draft, command: Command) -> Answer:
    """Whether a new attempt could do what is meant."""
    why = None if command.fresh else not_resumable.objection(draft, command.checkpoint)
    if why is None:
        return _remedies(draft, command)
    hint = f"; `trainwatch {command.verb} --fresh` does that" if command.checkpoint is None else ""
    return refused(f"{why}{hint}")


def _remedies(draft: Draft, command: Command) -> Answer:
    known = {row.name for row in draft.knowledge.remedies}
    unknown = [name for name in command.remedies if name not in known]
    if unknown:
        return refused(f"there is no remedy {unknown[0]!r}; known: {', '.join(sorted(known)) or 'none'}")
    return YES


def _pause(draft: Draft, _command: Command) -> Answer:
    machine = draft.state.machine
    if isinstance(machine, Paused):
        return fulfilled("it is paused already")
    if isinstance(machine, Running | Hung) or (isinstance(machine, Starting) and machine.launched):
        return YES
    ending = ", and is left to end" if isinstance(machine, Stopping) else "; `trainwatch resume` starts it"
    finished = run_states.name_of(machine) == "finished"
    return refused(f"nothing is running that could be paused: {_is(draft)}{'' if finished else ending}")


def _unpause(draft: Draft, _command: Command) -> Answer:
    state = draft.state
    if isinstance(state.machine, Paused) or (state.timeline.stopped and run_machine.is_watched(state.machine)):
        return YES
    hint = "" if run_machine.is_live(state.machine) else "; `trainwatch resume` starts it"
    finished = run_states.name_of(state.machine) == "finished"
    return refused(f"the run is not paused: {_is(draft)}{'' if finished else hint}")


def _profile(draft: Draft, command: Command) -> Answer:
    known, state = draft.knowledge.profiles, draft.state
    none = command.profile == NO_PROFILE and NO_PROFILE not in known
    if command.profile is None or (known and command.profile not in known and not none):
        return refused(f"there is no profile {command.profile!r}; known: {', '.join(known) or 'none'}")
    if run_states.name_of(state.machine) == "finished":
        return refused("the run is finished; give a profile to the next start")
    live = run_machine.is_live(state.machine) and not isinstance(state.machine, Stopping)
    wanted = None if none else command.profile
    if state.profile == wanted and state.profile_pending in {None, command.profile} and not state.applied and live:
        with_it = "without a profile" if none else f"with {command.profile}"
        return fulfilled(f"it trains {with_it} already; `trainwatch restart` begins a new attempt like that")
    anew = not_resumable.objection(draft)
    if anew is None and not command.now and not_resumable.is_waited_for(draft):
        anew = "the command has no way to be told of a checkpoint (write {resume} where its path belongs)"
    if live and anew is not None:
        return refused(f"a switch needs a restart, and {anew}; `trainwatch restart --fresh` begins anew")
    return YES


def _ack(draft: Draft, command: Command) -> Answer:
    open_ = {incident.id: incident for incident in draft.state.incidents}
    if command.incident is not None and command.incident not in open_:
        listed = ", ".join(map(str, open_)) or "none"
        return refused(f"there is no open incident {command.incident}; open: {listed}")
    if all(incident.acknowledged for incident in open_.values()):
        return fulfilled("no open incident waits to be acknowledged")
    return YES


def _wait(draft: Draft, _command: Command) -> Answer:
    if run_machine.is_watched(draft.state.machine):
        return YES
    return refused(f"nothing is running that could be waited for: {_is(draft)}")


def _shutdown(_draft: Draft, _command: Command) -> Answer:
    return YES


_VERBS: dict[str, Callable[[Draft, Command], Answer]] = {
    "stop": _end,
    "kill": _end,
    "restart": _restart,
    "resume": _resume,
    "pause": _pause,
    "unpause": _unpause,
    "profile": _profile,
    "ack": _ack,
    "wait": _wait,
    "shutdown": _shutdown,
}
