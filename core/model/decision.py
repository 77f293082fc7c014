"""What the judge chose to do.

Each is written to the journal (fsync) before it is performed; ``id`` ties its outcome to it. Times (``*_t``) are run
seconds. A decision never sleeps: "not before T" is a state of the judge that a later Tick makes due.
"""

from typing import Literal

import msgspec

from .checkpoints.checkpoint import Checkpoint
from .launch.change import Change


class DecisionBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="decision", omit_defaults=True):
    """Common part. ``reason`` is a sentence for people."""

    id: int
    reason: str
    incident: int | None = None


class NotifyPeople(DecisionBase, frozen=True, kw_only=True, tag="notify"):
    """Send a notice to the user."""

    event: Literal["incident", "recovery", "give_up", "finish", "warning", "restart"]
    title: str
    body: str = ""


class CaptureStacks(DecisionBase, frozen=True, kw_only=True, tag="capture_stacks"):
    """Look at a process before it is ended, or at what a crash left: stacks, /proc, logs, GPUs, launch papers.

    Into the incident's folder. Outcome data: ``folder``, ``files``, ``frames``, ``native``, ``moved``, ``notes``.
    """

    attempt: int


class StopAttempt(DecisionBase, frozen=True, kw_only=True, tag="stop_attempt"):
    """End the trainer's whole tree. Outcome comes when nothing of it is left (or the ladder ran out)."""

    attempt: int
    mode: Literal["gentle", "kill"] = "gentle"


class EndLeftovers(DecisionBase, frozen=True, kw_only=True, tag="end_leftovers"):
    """End what an attempt that ended by itself may have left behind (loader workers …). Outcome as of a stop."""

    attempt: int
    mode: Literal["gentle", "kill"] = "gentle"


class ClearGpu(DecisionBase, frozen=True, kw_only=True, tag="clear_gpu"):
    """Wait until the GPU memory of our ended processes is released."""

    attempt: int


class VerifyCheckpoint(DecisionBase, frozen=True, kw_only=True, tag="verify_checkpoint"):
    """Prove a resume point. Outcome data: ``verdict``, ``reason``, ``step``, ``epoch``."""

    path: str
    deep: bool = True


class StartAttempt(DecisionBase, frozen=True, kw_only=True, tag="start_attempt"):
    """Launch. ``resume_from`` None = from the beginning; ``changes`` beyond the profile (remedies), with their why.

    ``steps_done``, ``epochs_done``: what the whole run had done at the resume point, for trainers that begin their
    count anew and have to be told how much is left. Outcome data: ``start``, ``order``, ``directory``, ``resume``
    ("state", "weights", "none"), ``told_resume``, ``resume_named`` (where it is: "derived config", "command line").
    """

    attempt: int
    resume_from: str | None = None
    resume_step: int | None = None
    profile: str | None = None
    changes: tuple[Change, ...] = ()
    steps_done: int | None = None
    epochs_done: int | None = None


class PauseAttempt(DecisionBase, frozen=True, kw_only=True, tag="pause_attempt"):
    """SIGSTOP the tree (VRAM stays held)."""

    attempt: int


class UnpauseAttempt(DecisionBase, frozen=True, kw_only=True, tag="unpause_attempt"):
    """SIGCONT the tree."""

    attempt: int


class PlanRetention(DecisionBase, frozen=True, kw_only=True, tag="plan_retention"):
    """See which checkpoints may go when ``keep`` sound ones stay. Outcome data: ``delete``, a list of checkpoints."""

    keep: int
    deep: bool = True


class DeleteCheckpoint(DecisionBase, frozen=True, kw_only=True, tag="delete_checkpoint"):
    """Delete one checkpoint, if it is still as it was seen."""

    checkpoint: Checkpoint


class GiveUp(DecisionBase, frozen=True, kw_only=True, tag="give_up"):
    """Stop trying; a person is needed."""


class EndWatch(DecisionBase, frozen=True, kw_only=True, tag="end_watch"):
    """The supervisor has nothing left to do and ends; ``exit_code`` is what ``--headless`` returns."""

    exit_code: int


Decision = (
    NotifyPeople
    | CaptureStacks
    | StopAttempt
    | EndLeftovers
    | ClearGpu
    | VerifyCheckpoint
    | StartAttempt
    | PauseAttempt
    | UnpauseAttempt
    | PlanRetention
    | DeleteCheckpoint
    | GiveUp
    | EndWatch
)
