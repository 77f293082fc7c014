"""What the run is doing, as one value: each variant carries its own data, and one table says what may follow what."""

from typing import Literal, assert_never

import msgspec

from ..model.run import RunState

NEVER = float("inf")


class RestartPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next attempt is to be started; carried from the end of one attempt to the launch of the next.

    ``wanted``: a checkpoint the operator named. ``fresh``: from the beginning. ``tried``: resume points that turned
    out bad in this round. ``before_t``: only checkpoints completed before this run time (a NaN came then).
    ``ending``, ``advice``: the reason to give up with and what to look at, where that is what follows.
    ``need_bytes``: room on the disk that the next attempt has to wait for.
    """

    reason: str
    incident: int | None = None
    wanted: str | None = None
    fresh: bool = False
    before_t: float | None = None
    delay_s: float = 0.0
    ending: str = ""
    advice: tuple[str, ...] = ()
    need_bytes: float | None = None
    path: str | None = None
    step: int | None = None


class Variant(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", omit_defaults=True):
    """Common part of the states."""


class Idle(Variant, frozen=True, tag="idle"):
    """Nothing was ever launched."""


class Starting(Variant, frozen=True, tag="starting"):
    """A launch was decided, or the trainer exists and has not made a step. ``order``: the decision; None = adopted.

    ``hold``: a person said stop while the launch was under way; it is ended as soon as it is there. ``told_resume``,
    ``restores`` ("state", "weights"), ``named``: how the launch said what to resume from, as its outcome told.
    ``plan``: what was to be started.
    """

    order: int | None = None
    launched: bool = False
    hold: bool = False
    told_resume: bool | None = None
    restores: str | None = None
    named: tuple[str, ...] = ()
    plan: RestartPlan | None = None


class Running(Variant, frozen=True, tag="running"):
    """Training advances."""


class Hung(Variant, frozen=True, tag="hung"):
    """A hang was declared; the evidence is being taken until ``until_t`` at the latest."""

    incident: int
    capture: int
    until_t: float


Then = Literal["restart", "hold", "finish", "end", "give_up"]


class Stopping(Variant, frozen=True, tag="stopping"):
    """The trainer's tree is being ended. ``exited``: its exit was seen; ``gone_t``: when nothing of it was left.

    ``leftovers``: it had ended by itself, only what it left behind is ended.
    """

    order: int
    then: Then
    plan: RestartPlan
    by: str = ""
    exited: bool = False
    gone_t: float | None = None
    kill: bool = False
    leftovers: bool = False


class Cleaning(Variant, frozen=True, tag="cleaning"):
    """The GPU memory of the ended processes is being released."""

    order: int
    plan: RestartPlan


class Verifying(Variant, frozen=True, tag="verifying"):
    """A resume point is being proven."""

    order: int
    plan: RestartPlan


class BackingOff(Variant, frozen=True, tag="backing_off"):
    """The next attempt starts at ``until_t``."""

    until_t: float
    plan: RestartPlan


class Held(Variant, frozen=True, tag="held"):
    """The next attempt waits for room on the disk: ``need_bytes`` free."""

    need_bytes: float
    plan: RestartPlan


class Paused(Variant, frozen=True, tag="paused"):
    """The trainer is stopped by SIGSTOP, on request."""

    order: int


class Stopped(Variant, frozen=True, tag="stopped"):
    """Held by a person."""


class Interrupted(Variant, frozen=True, tag="interrupted"):
    """The trainer ended while nobody watched."""


class Finished(Variant, frozen=True, tag="finished"):
    """Done."""


class GivenUp(Variant, frozen=True, tag="given_up"):
    """A person is needed."""


Machine = (
    Idle
    | Starting
    | Running
    | Hung
    | Stopping
    | Cleaning
    | Verifying
    | BackingOff
    | Held
    | Paused
    | Stopped
    | Interrupted
    | Finished
    | GivenUp
)

_OVER = frozenset({"stopped", "finished", "given_up"})
_ENDING = frozenset({"stopping", "cleaning", "verifying", "backing_off", "held", "starting"})

TRANSITIONS: dict[str, frozenset[str]] = {
    # From each state, those that may follow. A state may always be followed by itself with other data.
    "idle": frozenset({"starting", "running", "verifying", "backing_off", "stopped", "given_up"}),
    "starting": frozenset({"running", "hung", "paused", "interrupted"}) | _ENDING | _OVER,
    "running": frozenset({"hung", "paused", "starting", "interrupted"}) | _ENDING | _OVER,
    "hung": frozenset({"running", "paused"}) | _ENDING | _OVER,
    "paused": frozenset({"running", "starting"}) | _ENDING | _OVER,
    "stopping": frozenset({"running"}) | _ENDING | _OVER,
    "cleaning": frozenset({"running"}) | _ENDING | _OVER,
    "verifying": _ENDING | _OVER,
    "backing_off": _ENDING | _OVER,
    "held": _ENDING | _OVER,
    "stopped": _ENDING | {"running"},
    "interrupted": _ENDING | _OVER,
    # Once over, only a person (or a trainer that is found running) brings it back.
    "finished": _ENDING | {"stopped"},
    "given_up": _ENDING | {"stopped"},
}

WORDS: dict[str, RunState] = {
    "idle": "idle",
    "starting": "starting",
    "running": "running",
    "hung": "hung",
    "stopping": "stopping",
    "cleaning": "cleaning",
    "verifying": "cleaning",
    "backing_off": "backing_off",
    "held": "backing_off",
    "paused": "paused",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "finished": "finished",
    "given_up": "given_up",
}
"""State → the word people see."""


def name_of(machine: Machine) -> str:
    """The state's key in the tables above."""
    return str(machine.__struct_config__.tag)


def may_follow(before: Machine, after: Machine) -> bool:
    """Whether the table allows it."""
    return type(before) is type(after) or name_of(after) in TRANSITIONS[name_of(before)]


def wake_t(machine: Machine) -> float:
    """Run time at which the state wants to be looked at although nothing happened; NEVER for most."""
    match machine:
        case Hung():
            return machine.until_t
        case Stopping():
            return NEVER if machine.gone_t is None else machine.gone_t + EXIT_WAIT_S
        case BackingOff():
            return machine.until_t
        case (
            Idle()
            | Starting()
            | Running()
            | Cleaning()
            | Verifying()
            | Held()
            | Paused()
            | Stopped()
            | Interrupted()
            | Finished()
            | GivenUp()
        ):
            return NEVER
        case _:
            assert_never(machine)


EXIT_WAIT_S = 2.0
"""How long the exit status may lag behind the end of the tree: the runner writes it with an fsync."""


def is_live(machine: Machine) -> bool:
    """Whether a trainer is believed to exist."""
    match machine:
        case Starting():
            return machine.launched
        case Running() | Hung() | Paused():
            return True
        case Stopping():
            return machine.gone_t is None and not machine.exited
        case _:
            return False


def is_watched(machine: Machine) -> bool:
    """Whether its progress and signs of life are being judged."""
    match machine:
        case Starting():
            return machine.launched
        case Running() | Hung():
            return True
        case _:
            return False
