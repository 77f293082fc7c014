"""The state machine of a run: one table, ``TRANSITIONS``, from state and event to the state that follows.

``StepBuilder.move(event, machine, reason)`` is the only way to another state. It looks the pair up here; a pair without
a row is a bug in the judge and raises ``ImpossibleTransitionError``. The values of the states are in run_states.py.
The diagram in docs/run-states.md is generated from the table (docs/make_states.py).

A restart goes through stopping, cleaning, listing, verifying and backing off to starting. Each of them waits for the
outcome of one decision, so no stage is decided twice; there is one run state only, so two attempts never live at once.
"""

from typing import Literal, assert_never

from .run_states import (
    BackingOff,
    Cleaning,
    Copying,
    EndedEarly,
    Finished,
    GivenUp,
    Hung,
    Idle,
    Interrupted,
    Listing,
    Machine,
    Paused,
    Queued,
    Running,
    Starting,
    State,
    Stopped,
    Stopping,
    Suspended,
    Verifying,
    WaitingForGpu,
    WaitingForRoom,
    name_of,
)

NEVER = float("inf")
EXIT_WAIT_S = 2.0
"""How long the exit status may lag behind the end of the processes: the runner writes it with an fsync."""

Event = Literal[
    "started", "training", "launch", "launched", "step", "saved", "hang", "pause", "suspend", "queue", "command",
    "stop", "kill", "exit", "processes_gone", "clear_leftovers", "clear_gpu", "no_room", "no_gpu", "list",
    "copy_aside", "verify", "back_off", "hold", "lost", "leave", "finish", "end_early", "give_up",
]  # fmt: skip

EVENTS: dict[Event, str] = {
    "started": "a trainer process exists that has not made a step or saved a checkpoint",
    "training": "a trainer process exists that has made steps or saved a checkpoint",
    "launch": "the next attempt is launched",
    "launched": "the launch succeeded",
    "step": "the step number advanced",
    "saved": "a checkpoint was saved before a step was read",
    "hang": "a hang is declared",
    "pause": "an operator pauses the trainer",
    "suspend": "every computing process was stopped by a signal that is not ours",
    "queue": "the job that the attempt runs as waits in the queue of the scheduler",
    "command": "an operator changes what follows this state",
    "stop": "the trainer's processes are to be ended",
    "kill": "the gentle stop failed",
    "exit": "the main process exited",
    "processes_gone": "no process of the attempt is left",
    "clear_leftovers": "the trainer has ended; processes that it left behind are to be ended",
    "clear_gpu": "the GPU memory of the ended processes is to be released",
    "no_room": "a disk, processes or memory are used up, or another trainer writes where the next attempt would",
    "no_gpu": "no GPU of the run is usable",
    "list": "the output folder is to be listed before a resume point is chosen",
    "copy_aside": "what a start may write over is to be copied aside",
    "verify": "a resume point is chosen and is to be verified",
    "back_off": "the next attempt is to wait",
    "hold": "no restart until an operator asks for one",
    "lost": "the trainer ended while no supervisor was running",
    "leave": "the trainer was stopped because its machine or container ends; the next start goes on",
    "finish": "the training is done",
    "end_early": "the trainer exited with success before the end of the training",
    "give_up": "no restart helps, or none is allowed",
}

FROM_ANY_STATE: dict[Event, State] = {"started": "starting", "training": "running"}
"""A trainer process that exists is an observation; it is accepted whatever was expected."""
_LIVE: dict[Event, State] = {
    **FROM_ANY_STATE,
    "stop": "stopping",
    "clear_leftovers": "stopping",
    "hold": "stopped",
    "lost": "interrupted",
    "finish": "finished",
    "end_early": "ended_early",
    "give_up": "given_up",
}
"""While a trainer process exists."""
_NEXT_ATTEMPT: dict[Event, State] = {
    **FROM_ANY_STATE,
    "list": "listing",
    "launch": "starting",
    "give_up": "given_up",
}
"""While no trainer process exists and a next attempt may be prepared."""
_ENDED: dict[Event, State] = {**_NEXT_ATTEMPT, "clear_leftovers": "stopping"}
"""The same after an attempt: an operator or a new supervisor asks for the next one, and leftovers are ended first."""

TRANSITIONS: dict[State, dict[Event, State]] = {
    "idle": {**_NEXT_ATTEMPT, "hold": "stopped"},
    "starting": {
        **_LIVE,
        **_NEXT_ATTEMPT,
        "launched": "starting",
        "command": "starting",
        "step": "running",
        "saved": "running",
        "hang": "hung",
        "pause": "paused",
        "suspend": "suspended",
        "queue": "queued",
        "back_off": "backing_off",
        "no_room": "held",
    },
    "running": {**_LIVE, "hang": "hung", "pause": "paused", "suspend": "suspended", "queue": "queued"},
    "hung": {**_LIVE, "step": "running", "pause": "paused"},
    "paused": _LIVE,
    "suspended": {**_LIVE, "step": "running", "pause": "paused"},
    "queued": _LIVE,
    "stopping": {
        **FROM_ANY_STATE,
        "stop": "stopping",
        "kill": "stopping",
        "command": "stopping",
        "clear_leftovers": "stopping",
        "exit": "stopping",
        "processes_gone": "stopping",
        "clear_gpu": "cleaning",
        "hold": "stopped",
        "leave": "interrupted",
        "finish": "finished",
        "give_up": "given_up",
    },
    "cleaning": {**_ENDED, "back_off": "backing_off", "no_room": "held", "no_gpu": "held_gpu", "hold": "stopped"},
    "listing": {**_ENDED, "copy_aside": "copying", "verify": "verifying", "back_off": "backing_off", "hold": "stopped"},
    "copying": {**_ENDED, "back_off": "backing_off", "no_room": "held", "hold": "stopped"},
    "verifying": {**_ENDED, "back_off": "backing_off", "hold": "stopped"},
    "backing_off": {**_ENDED, "hold": "stopped"},
    "held": {**_ENDED, "hold": "stopped"},
    "held_gpu": {**_ENDED, "hold": "stopped"},
    "stopped": _ENDED,
    "interrupted": {**_ENDED, "hold": "stopped"},
    "finished": _ENDED,
    "ended_early": _ENDED,
    "given_up": _ENDED,
}


class ImpossibleTransitionError(AssertionError):
    """A bug in the judge: an event without a row in its state, or a next state that is not the one of the row."""


def check_transition(before: Machine, event: Event, after: Machine) -> tuple[State, State]:
    """Look the pair up; raise ``ImpossibleTransitionError`` if it has no row, or the row does not lead to ``after``.

    Returns the names of both states.
    """
    state, follows = name_of(before), name_of(after)
    expected = TRANSITIONS[state].get(event)
    if follows != expected:
        raise ImpossibleTransitionError(f"{state}, {event}: leads to {expected or 'nothing'}, not to {follows}")
    return state, follows


def wake_t(machine: Machine) -> float:
    """Run time at which the state is due although nothing is observed; NEVER for most states."""
    match machine:
        case Hung():
            return NEVER if machine.judged else machine.until_t
        case Stopping():
            if machine.saving is not None:
                return machine.saving.until_t
            return NEVER if machine.gone_t is None else machine.gone_t + EXIT_WAIT_S
        case BackingOff():
            return machine.until_t
        case WaitingForRoom():
            return NEVER if machine.until_t is None else machine.until_t
        case (
            Idle()
            | Starting()
            | Running()
            | Cleaning()
            | Listing()
            | Copying()
            | Verifying()
            | WaitingForGpu()
            | Paused()
            | Suspended()
            | Queued()
            | Stopped()
            | Interrupted()
            | Finished()
            | EndedEarly()
            | GivenUp()
        ):
            return NEVER
        case _:
            assert_never(machine)


def is_live(machine: Machine) -> bool:
    """Whether a trainer process is assumed to exist."""
    match machine:
        case Starting():
            return machine.launched
        case Running() | Hung() | Paused() | Suspended() | Queued():
            return True
        case Stopping():
            return machine.gone_t is None and not machine.exited
        case _:
            return False


def is_watched(machine: Machine) -> bool:
    """Whether progress and signs of life of a trainer are judged."""
    match machine:
        case Starting():
            return machine.launched
        case Running() | Hung() | Suspended():
            return True
        case _:
            return False
