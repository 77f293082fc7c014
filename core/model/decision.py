"""Decisions of the judge.

Each is written to the journal (fsync) before it is performed; its outcome has its ``id``. Times (``*_t``) are run
seconds. A decision is always due at once: "not before T" is a state of the judge, and a later Tick ends it.
"""

from typing import Literal

import msgspec

from .checkpoint import Checkpoint
from .fact import Fact, Outcome
from .preset import Change
from .settings import NoticeEvent


class DecisionBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="decision", omit_defaults=True):
    """Common part. ``reason``: a sentence for the user."""

    id: int
    reason: str
    incident: int | None = None


class OfAttempt(DecisionBase, frozen=True, kw_only=True):
    attempt: int


class NotifyPeople(DecisionBase, frozen=True, kw_only=True, tag="notify"):
    event: NoticeEvent
    title: str
    body: str = ""


class CaptureStacks(OfAttempt, frozen=True, kw_only=True, tag="capture_stacks"):
    """Collect evidence before a process is ended or after a crash: stacks, /proc, logs, GPUs, launch record.

    Written to the incident's folder. Outcome data: ``folder``, ``files``, ``frames``, ``native``, ``moved``, ``notes``.
    """


class LookForLoop(OfAttempt, frozen=True, kw_only=True, tag="look_for_loop"):
    """Look several times where the busy threads of an attempt are. Nothing is ended, no evidence is written.

    Outcome data: ``loops`` ({pid: place of a loop that changes nothing}), ``waits`` ({pid: place of a call that waits
    for a GPU}), ``polls`` (a loop asks for something), ``elsewhere`` (a sentence: what is busy in neither; empty if
    nothing is), ``moving`` (a busy thread moves through its program), ``unread`` (no stack could be read).
    """

    gpu: bool = False
    """The GPUs are at rest: look for waits, too, which stops each process that is in one call for about a second."""


class RequestSave(OfAttempt, frozen=True, kw_only=True, tag="request_save"):
    """Ask the trainer for a checkpoint (``run.save_signal``, ``run.save_file``). Not ok: it could not be asked."""

    stop: bool = False
    """The attempt is ended after the save: a trainer that uses ``trainbeat`` makes no further step."""


class StopAttempt(OfAttempt, frozen=True, kw_only=True, tag="stop_attempt"):
    """End the trainer's process tree. The outcome comes when no process is left, or after the last signal failed."""

    mode: Literal["gentle", "kill"] = "gentle"
    within_s: float | None = None
    """Shortens the graces of the signals: the machine is ended then."""


class EndLeftovers(OfAttempt, frozen=True, kw_only=True, tag="end_leftovers"):
    """End processes that are left of an attempt that ended by itself (loader workers …). Outcome as of a stop."""

    mode: Literal["gentle", "kill"] = "gentle"


class ClearGpu(OfAttempt, frozen=True, kw_only=True, tag="clear_gpu"):
    """Wait until the GPU memory of the ended processes is released."""


class ListCheckpoints(DecisionBase, frozen=True, kw_only=True, tag="list_checkpoints"):
    """List the whole output folder before a resume point is chosen.

    Every change is in the inbox before the outcome. Not ok: the list is not complete after ``limit_s``; the detail says
    why. ``expected``: the run has checkpoints there, so a missing folder is waited for.
    """

    limit_s: float
    expected: bool = False


class VerifyCheckpoint(DecisionBase, frozen=True, kw_only=True, tag="verify_checkpoint"):
    """Verify a resume point. Outcome data: ``verdict``, ``reason``, ``step``, ``epoch``."""

    path: str
    deep: bool = True


class CopyAside(DecisionBase, frozen=True, kw_only=True, tag="copy_aside"):
    """Copy state that a start may write over to a folder of its own, before that start.

    ``link``: the start may delete them, so that hard links will do for all but the first. Outcome data: ``folder``,
    ``places`` (original → copy), ``size_bytes``; ``no_room``: a disk is too full; ``gone``: a path that is not there.
    """

    paths: tuple[str, ...]
    link: bool = False


class StartAttempt(OfAttempt, frozen=True, kw_only=True, tag="start_attempt"):
    """Launch. ``resume_from`` None = from the beginning; ``changes``: settings beyond the profile (remedies).

    ``steps_done`` (at least), ``epochs_done``: what the whole run had done at the resume point, for trainers whose
    count starts again and that must be given the rest. Outcome data: ``start``, ``order``, ``directory``, ``resume``
    ("state", "weights", "none"), ``told_resume``, ``resume_named`` (place: "derived config", "command line").
    """

    resume_from: str | None = None
    resume_step: int | None = None
    profile: str | None = None
    changes: tuple[Change, ...] = ()
    steps_done: int | None = None
    epochs_done: int | None = None
    begun_steps: int | None = None
    """How many of them the checkpoint had that a person named for the first attempt; ``begun_epochs`` likewise."""
    begun_epochs: int | None = None
    exclude: tuple[str, ...] = ()
    """Nodes that its job is not to use: a GPU of theirs failed."""


class PauseAttempt(OfAttempt, frozen=True, kw_only=True, tag="pause_attempt"):
    """Stop the process tree with SIGSTOP. Its GPU memory stays allocated."""


class UnpauseAttempt(OfAttempt, frozen=True, kw_only=True, tag="unpause_attempt"):
    """Continue the process tree with SIGCONT."""


class PlanRetention(DecisionBase, frozen=True, kw_only=True, tag="plan_retention"):
    """List the checkpoints that may be deleted if ``keep`` verified ones stay. Outcome data: ``delete``."""

    keep: int
    deep: bool = True


class DeleteCheckpoint(DecisionBase, frozen=True, kw_only=True, tag="delete_checkpoint"):
    checkpoint: Checkpoint


class EvaluateCheckpoint(DecisionBase, frozen=True, kw_only=True, tag="evaluate_checkpoint"):
    """Run the user's evaluation of a checkpoint beside the training, with the lowest priority.

    ``gpu``: index of the GPU that it may use, None = the CPU alone. ``memory_bytes``: RAM above which it is ended,
    ``timeout_s``: likewise. Outcome data: fields of ``Evaluation``; ``interrupted``.
    """

    path: str
    mtime: float
    step: int | None = None
    gpu: int | None = None
    memory_bytes: float
    timeout_s: float


class EndEvaluation(DecisionBase, frozen=True, kw_only=True, tag="end_evaluation"):
    """End the evaluation that the decision ``of`` began: the training needs the room. Its own outcome says so."""

    of: int


class GiveUp(DecisionBase, frozen=True, kw_only=True, tag="give_up"):
    """Make no further attempt until the user acts."""


class BackUpCheckpoint(DecisionBase, frozen=True, kw_only=True, tag="back_up"):
    """Verify a checkpoint and copy it (``[backup]``)."""

    path: str
    mtime: float


EndEvent = Literal["finish", "give_up", "end_by"]


class RunAtEnd(DecisionBase, frozen=True, kw_only=True, tag="at_end"):
    """Run the user's command for the end (``[end]``) that came at ``end_t``. Outcome data: ``output``, ``code``."""

    event: EndEvent
    command: tuple[str, ...]
    end_t: float = 0.0


class EndWatch(DecisionBase, frozen=True, kw_only=True, tag="end_watch"):
    """The supervisor has nothing left to do and ends; ``exit_code`` is what ``--headless`` returns."""

    exit_code: int


Decision = (
    NotifyPeople | CaptureStacks | LookForLoop | RequestSave | StopAttempt | EndLeftovers | ClearGpu
    | ListCheckpoints | CopyAside | VerifyCheckpoint | StartAttempt | PauseAttempt | UnpauseAttempt | PlanRetention
    | DeleteCheckpoint | EvaluateCheckpoint | EndEvaluation | GiveUp | RunAtEnd | BackUpCheckpoint | EndWatch
)  # fmt: skip


# One line of the journal: an envelope around a fact, a decision or an outcome.

JOURNAL_VERSION = 1


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``seq`` counts from 1 without gaps; ``t`` run seconds; ``wall`` epoch seconds. Exactly one body is set."""

    v: int = JOURNAL_VERSION
    seq: int
    t: float
    wall: float
    fact: Fact | None = None
    decision: Decision | None = None
    outcome: Outcome | None = None


Entry = Fact | Decision
"""What one step of the judge returns: facts to write, and decisions to write and then perform, in this order."""
