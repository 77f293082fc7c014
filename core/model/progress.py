"""Progress of a training run, from its output."""

from typing import Literal

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
