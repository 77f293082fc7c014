"""Progress of a training run, from its output."""

from typing import Literal, get_args

import msgspec

Phase = Literal["load", "preprocess", "compile", "train", "eval", "sample", "save", "finish", "unknown"]
"""What the trainer is doing. Only ``train`` moves the step clock."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the judge expects of the next step. Times in run seconds, None = not known or not planned.

    ``usual_s``: the usual distance of lines that show a step; ``pause_s``: the longest harmless silence so far.
    ``hang_t``: when a silence is declared a hang if nothing moves; ``patient_t``: until then none is declared.
    """

    usual_s: float | None = None
    pause_s: float = 0.0
    hang_t: float | None = None
    patient_t: float | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The state after the newest line. Field names are the contract of ``trainwatch progress --json``.

    ``step`` counts as the trainer prints it (within the epoch if its bar is per epoch), ``epoch`` likewise
    (0-based stays 0-based). ``run_step``, ``run_total_steps`` and ``eta_s`` are of the whole run, in the unit of the
    counter; None if they cannot be told. ``loss`` is None if the trainer printed NaN or nothing. Units: seconds.
    """

    phase: Phase = "unknown"
    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None
    lr: float | None = None
    sec_per_step: float | None = None
    eta_s: float | None = None
    run_step: int | None = None
    run_total_steps: int | None = None
    of_part: bool = False
    """Step and total are of a part of the run, as an epoch, of which it is not known where in the run it lies."""
    total_by: str | None = None
    """By what the total is known if the log does not show it (``--epochs 50``), for people. None: by the log."""

    @property
    def any_step(self) -> int | None:
        """The step of the whole run; as printed in a journal of an older version. None: unknown, or of a part of it."""
        return self.run_step if self.run_step is not None or self.of_part else self.step


# What a state of the run follows from, as a value. The sentence beside it is for people; nothing is decided by it.

HoldKind = Literal[
    "disk_full", "no_inodes", "no_room", "read_only", "no_resources", "program_gone", "other_trainer", "gpu_lost",
    "gpu_memory", "not_listed", "not_understood", "unclear_output", "not_copied", "refused_checkpoint",
    "checkpoints_fine", "signal", "act",
]  # fmt: skip
"""What the next attempt waits for, and the run cannot do by itself. ``no_room``: a disk or a quota that is not watched;
``act``: ``restart.act`` leaves it to a person; ``signal``: nobody knows who ended it; ``checkpoints_fine``: an older
checkpoint ends in the same way."""
WhyKind = Literal["", "person", "ordered", "unproven", HoldKind]
"""``person``: stopped with trainwatch. ``ordered``: ended on purpose in another way, or at its end time. ``unproven``:
finished, and nothing showed that it was the end. Empty: the state tells it all, or the journal does not tell."""


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """``incident``: it is about this one. ``need_bytes``, ``free_bytes``: of a full disk, when it began.

    ``until_t``: run time at which a held attempt is launched again by itself; None: when what it waits for is there.
    """

    kind: WhyKind = ""
    incident: int | None = None
    need_bytes: float | None = None
    free_bytes: float | None = None
    until_t: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the next attempt waits."""
        return self.kind in get_args(HoldKind)

    @property
    def waits_for_room(self) -> bool:
        """Whether it ends by itself when the disk has room, also under a supervisor that takes the run over."""
        return self.kind in {"disk_full", "no_inodes"}


PLAIN = Why()


# Levels of the machine's readings.

Level = Literal["safe", "warning", "danger", "underused", "unknown"]
GPU_IS_GONE = ("lost", "needs a reset")
"""How the trouble of a GPU begins that no program can use until it is reset."""
SLOWED_BY_FAULT = frozenset({"hardware slowdown", "thermal (hardware)", "power brake"})
"""Reasons for which the hardware itself slows down: its cooling or power supply, no setting and no power limit."""
VRAM_STABLE_PCT = 95.0
"""VRAM warns from here with the profile ``stable``."""


class HealthReading(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with its level. ``metric`` names it (``gpu0.temp``, ``ram_used`` …); value None = unknown."""

    metric: str
    value: float | None
    unit: str
    level: Level
