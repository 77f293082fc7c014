"""The states of a run, as values: each variant carries the data that only it needs.

They are part of the judge's snapshot in the journal: tags and field names are a file format.
"""

from typing import Literal, cast, get_args

import msgspec

from ..model.progress import HoldKind
from ..model.run import RunState
from .scales import LAG_S


class RestartPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next attempt is to be started; carried from the end of one attempt to the launch of the next.

    ``wanted``: a checkpoint that an operator named. ``fresh``: start from the beginning. ``before_t``: use only
    checkpoints written before this run time (the loss became NaN then). ``delay_s``: wait before the launch.
    ``ending``, ``advice``: why the run is given up and what to look at, for ``Stopping(then="give_up")``.
    ``need_bytes``: free disk space that the next attempt waits for. ``needs_gpu``: it waits for a usable GPU.
    ``waited``: what kept back the launches in a row before this one, of ``attempts.PASSING``, oldest first.
    ``deadline_t``: run time at which the machine or its container is ended, for ``Stopping(then="end")``.
    ``path``, ``step``: the resume point chosen.
    ``by``: the person who ordered it, "" = the judge concluded it by itself (recovery/gate.py).
    ``not_loaded``: the attempt before ended before its first step, of a checkpoint.
    ``verified``: the path that was verified last, and its modification time before that. ``newer``: how often a newer
    one came meanwhile. ``read``: what a trainer that chooses may take instead and was read last.
    """

    reason: str
    incident: int | None = None
    wanted: str | None = None
    fresh: bool = False
    before_t: float | None = None
    not_loaded: bool = False
    delay_s: float = 0.0
    ending: str = ""
    advice: tuple[str, ...] = ()
    need_bytes: float | None = None
    needs_gpu: bool = False
    waited: tuple[HoldKind, ...] = ()
    deadline_t: float | None = None
    path: str | None = None
    step: int | None = None
    by: str = ""
    verified: tuple[str, float | None] | None = None
    newer: int = 0
    read: str | None = None


class Variant(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True):
    """Base of all states."""


class Idle(Variant, frozen=True, tag="idle"):
    """Nothing was launched yet."""


Then = Literal["restart", "hold", "finish", "end", "end_by", "give_up"]
"""What follows a stop. ``hold``: wait for an operator; ``end``: end the supervisor, too; ``end_by``: at its time."""


class Starting(Variant, frozen=True, tag="starting"):
    """A launch was decided, or a trainer process exists that has not made a step, nor saved a checkpoint.

    ``order``: id of the launch decision, None for a trainer that was found running. ``launched``: the process exists.
    ``told_resume``: whether the launch could pass the checkpoint to the trainer, None = not known. ``restores``: what
    the trainer restores from it ("state" or "weights"). ``named``: where the checkpoint is named (command line, derived
    config). ``plan``: what was to be started. ``then``, ``next``: an operator asked for a stop during the launch, and
    for what follows it; the trainer is ended as soon as it exists. The newest such command counts.
    """

    order: int | None = None
    launched: bool = False
    told_resume: bool | None = None
    restores: str | None = None
    named: tuple[str, ...] = ()
    plan: RestartPlan | None = None
    then: Then | None = None
    next: RestartPlan | None = None


class Running(Variant, frozen=True, tag="running"):
    """The trainer runs: it loads, trains, evaluates or saves, and no hang was declared."""


class Hung(Variant, frozen=True, tag="hung"):
    """A hang was declared; its evidence is being captured, until run time ``until_t`` at the latest.

    ``judged``: what follows was withheld (recovery/gate.py): the trainer stays as it is. ``blocked``: a process is
    blocked in the kernel; the stop waits until it is free.
    """

    incident: int
    capture: int
    until_t: float
    judged: bool = False
    blocked: bool = False


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """The trainer was asked for a checkpoint at run time ``asked_t``; the stop waits for it until ``until_t``."""

    asked_t: float
    until_t: float


class Stopping(Variant, frozen=True, tag="stopping"):
    """The trainer's processes are being ended.

    ``exited``: the exit of the main process was seen. ``gone_t``: run time from which no process was left. ``kill``:
    the gentle stop failed. ``leftovers``: the trainer ended by itself and only the processes that it left are ended.
    ``saving``: nothing is ended yet, a checkpoint was asked for first; ``order`` is the request.
    """

    order: int
    then: Then
    plan: RestartPlan
    exited: bool = False
    gone_t: float | None = None
    kill: bool = False
    leftovers: bool = False
    saving: Saving | None = None


Stage = Literal["clear_gpu", "list", "copy_aside", "verify"]
"""What is done before the next launch, in this order; ``copy_aside``: of what that start may write over."""


class Preparing(Variant, frozen=True, tag="preparing"):
    """The next attempt is prepared: GPU memory released, output folders listed, the resume point copied and verified.

    ``order``: the decision of this stage. ``why``: the list takes long, so that the launch is held; "" = it does not.
    ``folders``: how many output folders were known when it was ordered.
    """

    stage: Stage
    order: int
    plan: RestartPlan
    why: str = ""
    folders: int = 0


class BackingOff(Variant, frozen=True, tag="backing_off"):
    """The next attempt waits: until run time ``until_t``, until there is room on the disk, or for a GPU of the run.

    ``need_bytes``: so many, and some inodes, have to be free on the disk of the checkpoints; with ``until_t`` it is
    launched then in any case, because another disk or a quota is full, or another trainer wrote there. ``gpu_gone``:
    whether none has answered since it was lost: a driver may answer for a GPU that works only after a reset, so it
    counts when it was gone and answers again. None = it does not wait for that.
    """

    plan: RestartPlan
    until_t: float | None = None
    need_bytes: float | None = None
    gpu_gone: bool | None = None


class Paused(Variant, frozen=True, tag="paused"):
    """An operator stopped the trainer with SIGSTOP."""

    order: int


class Suspended(Variant, frozen=True, tag="suspended"):
    """Every computing process was stopped by a signal that is not ours (state T), until somebody continues it."""


class Queued(Variant, frozen=True, tag="queued"):
    """The job of the attempt waits in the queue of the scheduler, or Slurm suspended it. Time does not count."""


class Stopped(Variant, frozen=True, tag="stopped"):
    """No trainer, and no restart until an operator asks for one."""


class Interrupted(Variant, frozen=True, tag="interrupted"):
    """The trainer ended while no supervisor was running."""


class Finished(Variant, frozen=True, tag="finished"):
    """The training is done."""


class EndedEarly(Variant, frozen=True, tag="ended_early"):
    """The trainer exited with success before the end of the training, and nothing shows why: a person is needed."""


class GivenUp(Variant, frozen=True, tag="given_up"):
    """No restart helps, or none is allowed: a person is needed."""


Machine = (
    Idle | Starting | Running | Hung | Stopping | Preparing | BackingOff | Paused | Suspended | Queued | Stopped
    | Interrupted | Finished | EndedEarly | GivenUp
)  # fmt: skip

Between = Preparing | BackingOff
"""Between two attempts: it goes on by itself."""
Over = Finished | EndedEarly | GivenUp
Trains = Running | Hung | Paused | Suspended | Queued
"""A trainer exists that is neither started nor ended."""

State = Literal[
    "idle", "starting", "running", "hung", "paused", "suspended", "queued", "stopping", "preparing", "backing_off",
    "stopped", "interrupted", "finished", "ended_early", "given_up",
]  # fmt: skip
"""The tags of the variants."""

WORDS: dict[State, RunState] = {
    state: "cleaning" if state == "preparing" else cast(RunState, state) for state in get_args(State)
}
"""State → the state that the journal records and people see."""


def name_of(machine: Machine) -> State:
    state: State = machine.__struct_config__.tag  # type: ignore[assignment]
    return state


# The state machine of a run: each event leads to one state (``EVENTS``) and is possible in some (``TRANSITIONS``).
#
# ``StepBuilder.move(event, machine, reason)`` is the only way to another state, and looks the pair up here. Each stage
# of a restart waits for the outcome of one decision, so none is decided twice; there is one run state only, so two
# attempts never live at once. The diagram in docs/run-states.md is generated from the table (docs/make_pages.py).


Event = Literal[
    "started", "training", "launch", "launched", "step", "saved", "hang", "pause", "suspend", "queue", "command",
    "stop", "kill", "exit", "processes_gone", "clear_leftovers", "clear_gpu", "no_room", "no_gpu", "list",
    "copy_aside", "verify", "back_off", "hold", "lost", "leave", "finish", "end_early", "give_up",
]  # fmt: skip

EVENTS: dict[Event, tuple[State | None, str]] = {
    "started": ("starting", "a trainer process exists that has not made a step or saved a checkpoint"),
    "training": ("running", "a trainer process exists that has made steps or saved a checkpoint"),
    "launch": ("starting", "the next attempt is launched"),
    "launched": ("starting", "the launch succeeded"),
    "step": ("running", "the step number advanced"),
    "saved": ("running", "a checkpoint was saved before a step was read"),
    "hang": ("hung", "a hang is declared"),
    "pause": ("paused", "an operator pauses the trainer"),
    "suspend": ("suspended", "every computing process was stopped by a signal that is not ours"),
    "queue": ("queued", "the job that the attempt runs as waits in the queue of the scheduler"),
    "command": (None, "an operator changes what follows this state"),
    "stop": ("stopping", "the trainer's processes are to be ended"),
    "kill": ("stopping", "the gentle stop failed"),
    "exit": ("stopping", "the main process exited"),
    "processes_gone": ("stopping", "no process of the attempt is left"),
    "clear_leftovers": ("stopping", "the trainer has ended; processes that it left behind are to be ended"),
    "clear_gpu": ("preparing", "the GPU memory of the ended processes is to be released"),
    "no_room": ("backing_off", "no room is left, another trainer writes there, or the resume point cannot be read"),
    "no_gpu": ("backing_off", "no GPU of the run is usable"),
    "list": ("preparing", "the output folder is to be listed before a resume point is chosen"),
    "copy_aside": ("preparing", "what a start may write over is to be copied aside"),
    "verify": ("preparing", "a resume point is chosen and is to be verified"),
    "back_off": ("backing_off", "the next attempt is to wait"),
    "hold": ("stopped", "no restart until an operator asks for one"),
    "lost": ("interrupted", "the trainer ended while no supervisor was running"),
    "leave": ("interrupted", "the trainer was stopped because its machine or container ends; the next start goes on"),
    "finish": ("finished", "the training is done"),
    "end_early": ("ended_early", "the trainer exited with success before the end of the training"),
    "give_up": ("given_up", "no restart helps, or none is allowed"),
}
"""Event → the state that it leads to, None = it stays, and its meaning."""

FROM_ANY_STATE: tuple[Event, ...] = ("started", "training")
"""A trainer process that exists is an observation; it is accepted whatever was expected."""
_LIVE: tuple[Event, ...] = (
    *FROM_ANY_STATE, "stop", "clear_leftovers", "hold", "lost", "finish", "end_early", "give_up",
)  # fmt: skip
"""While a trainer process exists."""
_NEXT_ATTEMPT: tuple[Event, ...] = (*FROM_ANY_STATE, "list", "launch", "give_up")
"""While no trainer process exists and a next attempt may be prepared."""
_ENDED: tuple[Event, ...] = (*_NEXT_ATTEMPT, "clear_leftovers")
"""The same after an attempt: an operator or a new supervisor asks for the next one, and leftovers are ended first."""
_MAY: dict[State, tuple[Event, ...]] = {
    "idle": (*_NEXT_ATTEMPT, "hold"),
    "starting": (
        *_LIVE, *_NEXT_ATTEMPT, "launched", "command", "step", "saved", "hang", "pause", "suspend", "queue", "back_off",
        "no_room", "leave",
    ),
    "running": (*_LIVE, "hang", "pause", "suspend", "queue"),
    "hung": (*_LIVE, "step", "pause"),
    "paused": _LIVE,
    "suspended": (*_LIVE, "step", "pause"),
    "queued": _LIVE,
    "stopping": (
        *FROM_ANY_STATE, "stop", "kill", "command", "clear_leftovers", "exit", "processes_gone", "clear_gpu", "hold",
        "leave", "finish", "give_up",
    ),
    "preparing": (*_ENDED, "copy_aside", "verify", "back_off", "no_room", "no_gpu", "hold"),
    "backing_off": (*_ENDED, "hold"),
    "stopped": _ENDED,
    "interrupted": (*_ENDED, "hold"),
    **dict.fromkeys(("finished", "ended_early", "given_up"), _ENDED),
}  # fmt: skip
TRANSITIONS: dict[State, dict[Event, State]] = {
    state: {event: EVENTS[event][0] or state for event in events} for state, events in _MAY.items()
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


def wake_t(machine: Machine) -> float | None:
    """Run time at which the state is due although nothing is observed; None for most states."""
    match machine:
        case Hung(judged=False) | BackingOff():
            return machine.until_t
        case Stopping(saving=Saving(until_t=until_t)):
            return until_t
        case Stopping(gone_t=gone_t) if gone_t is not None:
            # The exit status may lag behind the end of the processes.
            return gone_t + LAG_S
        case _:
            return None


def is_live(machine: Machine) -> bool:
    match machine:
        case Starting():
            return machine.launched
        case Stopping():
            return machine.gone_t is None and not machine.exited
        case _:
            return isinstance(machine, Trains)


def is_watched(machine: Machine) -> bool:
    """Whether progress and signs of life of a trainer are judged."""
    return isinstance(machine, Running | Hung | Suspended) or (isinstance(machine, Starting) and machine.launched)
