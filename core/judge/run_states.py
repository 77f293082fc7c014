"""The states of a run, as values: each variant carries the data that only it needs.

They are part of the judge's snapshot in the journal: tags and field names are a file format.
"""

from typing import Literal

import msgspec

from ..model.run import RunState


class RestartPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next attempt is to be started; carried from the end of one attempt to the launch of the next.

    ``wanted``: a checkpoint that an operator named. ``fresh``: start from the beginning. ``before_t``: use only
    checkpoints written before this run time (the loss became NaN then). ``delay_s``: wait before the launch.
    ``ending``, ``advice``: why the run is given up and what to look at, for ``Stopping(then="give_up")``.
    ``need_bytes``: free disk space that the next attempt waits for. ``needs_gpu``: it waits for a usable GPU.
    ``no_room``: launches in a row that found no room, or another trainer.
    ``deadline_t``: run time at which the machine or its container is ended, for ``Stopping(then="end")``.
    ``path``, ``step``: the resume point chosen.
    ``by``: the person who ordered it, "" = the judge concluded it by itself (recovery/gate.py).
    ``verified``: the path that was verified last, and its modification time before that. ``newer``: how often a newer
    one came meanwhile. ``unread``: how often it could not be read.
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
    needs_gpu: bool = False
    no_room: int = 0
    deadline_t: float | None = None
    path: str | None = None
    step: int | None = None
    by: str = ""
    verified: tuple[str, float | None] | None = None
    newer: int = 0
    unread: int = 0


class Variant(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True):
    """Base of all states."""


class Idle(Variant, frozen=True, tag="idle"):
    """Nothing was launched yet."""


class Starting(Variant, frozen=True, tag="starting"):
    """A launch was decided, or a trainer process exists that has not made a step, nor saved a checkpoint.

    ``order``: id of the launch decision, None for a trainer that was found running. ``launched``: the process exists.
    ``stop_requested``: an operator asked for a stop during the launch; the trainer is ended as soon as it exists.
    ``told_resume``: whether the launch could pass the checkpoint to the trainer, None = not known. ``restores``: what
    the trainer restores from it ("state" or "weights"). ``named``: where the checkpoint is named (command line, derived
    config). ``plan``: what was to be started. ``end_plan``: the supervisor was told to end with the trainer meanwhile.
    ``restart_plan``: an operator asked for another attempt meanwhile; this one is ended as soon as it exists.
    """

    order: int | None = None
    launched: bool = False
    stop_requested: bool = msgspec.field(name="hold", default=False)
    told_resume: bool | None = None
    restores: str | None = None
    named: tuple[str, ...] = ()
    plan: RestartPlan | None = None
    end_plan: RestartPlan | None = None
    restart_plan: RestartPlan | None = None


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


Then = Literal["restart", "hold", "finish", "end", "end_by", "give_up"]
"""What follows a stop. ``hold``: wait for an operator; ``end``: end the supervisor, too; ``end_by``: at its time."""


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """The trainer was asked for a checkpoint at run time ``asked_t``; the stop waits for it until ``until_t``."""

    asked_t: float
    until_t: float


class Stopping(Variant, frozen=True, tag="stopping"):
    """The trainer's processes are being ended.

    ``by``: the operator who asked for it. ``exited``: the exit of the main process was seen. ``gone_t``: run time from
    which no process was left. ``kill``: the gentle stop failed. ``leftovers``: the trainer ended by itself and only
    the processes that it left behind are ended. ``saving``: nothing is ended yet, a checkpoint was asked for first;
    ``order`` is the request.
    """

    order: int
    then: Then
    plan: RestartPlan
    by: str = ""
    exited: bool = False
    gone_t: float | None = None
    kill: bool = False
    leftovers: bool = False
    saving: Saving | None = None


class Cleaning(Variant, frozen=True, tag="cleaning"):
    """The GPU memory of the ended processes is being released."""

    order: int
    plan: RestartPlan


class Listing(Variant, frozen=True, tag="listing"):
    """The output folder is being listed, so that the newest checkpoint is known.

    ``held``: it takes long, and ``why``. ``folders``: how many output folders were known when it was ordered.
    """

    order: int
    plan: RestartPlan
    held: bool = False
    why: str = ""
    folders: int = 0


class Copying(Variant, frozen=True, tag="copying"):
    """State that is not understood, or damaged, is being copied aside, before the run begins anew.

    ``damaged``: what nobody could resume from, which holds no run.
    """

    order: int
    plan: RestartPlan
    damaged: bool = False


class Verifying(Variant, frozen=True, tag="verifying"):
    """The resume point is being verified."""

    order: int
    plan: RestartPlan


class BackingOff(Variant, frozen=True, tag="backing_off"):
    """The next attempt starts at run time ``until_t``."""

    until_t: float
    plan: RestartPlan


class WaitingForRoom(Variant, frozen=True, tag="held"):
    """The next attempt waits until ``need_bytes`` and some inodes are free on the disk of the checkpoints.

    ``until_t``: run time at which it is launched in any case, because another disk or a quota is full, or because
    another trainer wrote there; None = never.
    """

    need_bytes: float
    plan: RestartPlan
    until_t: float | None = None


class WaitingForGpu(Variant, frozen=True, tag="held_gpu"):
    """The next attempt waits until a GPU of the run is usable again. ``gone``: none has answered since it was lost.

    A driver may answer for a GPU that works only after a reset; so it counts when it was gone and answers again.
    """

    plan: RestartPlan
    gone: bool = True


class Paused(Variant, frozen=True, tag="paused"):
    """An operator stopped the trainer with SIGSTOP."""

    order: int


class Suspended(Variant, frozen=True, tag="suspended"):
    """Every computing process was stopped by a signal that is not ours (state T), until somebody continues it."""


class Queued(Variant, frozen=True, tag="queued"):
    """The job that the attempt runs as waits in the queue of the scheduler. Time does not count."""


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
    Idle
    | Starting
    | Running
    | Hung
    | Stopping
    | Cleaning
    | Listing
    | Copying
    | Verifying
    | BackingOff
    | WaitingForRoom
    | WaitingForGpu
    | Paused
    | Suspended
    | Queued
    | Stopped
    | Interrupted
    | Finished
    | EndedEarly
    | GivenUp
)

State = Literal[
    "idle", "starting", "running", "hung", "paused", "suspended", "queued", "stopping", "cleaning", "listing",
    "copying", "verifying", "backing_off", "held", "held_gpu", "stopped", "interrupted", "finished",
    "ended_early", "given_up",
]  # fmt: skip
"""The tags of the variants."""

WORDS: dict[State, RunState] = {
    "idle": "idle",
    "starting": "starting",
    "running": "running",
    "hung": "hung",
    "paused": "paused",
    "suspended": "suspended",
    "queued": "queued",
    "stopping": "stopping",
    "cleaning": "cleaning",
    "listing": "cleaning",
    "copying": "cleaning",
    "verifying": "cleaning",
    "backing_off": "backing_off",
    "held": "backing_off",
    "held_gpu": "backing_off",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "finished": "finished",
    "ended_early": "ended_early",
    "given_up": "given_up",
}
"""State → the state that the journal records and people see."""


def name_of(machine: Machine) -> State:
    """The state's name: the tag of its variant."""
    state: State = machine.__struct_config__.tag  # type: ignore[assignment]
    return state
