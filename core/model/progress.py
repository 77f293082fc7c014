"""Progress of a training run, from its output."""

from typing import Literal

import msgspec

Phase = Literal["load", "preprocess", "compile", "train", "eval", "sample", "save", "finish", "unknown"]
"""What the trainer is doing. Only ``train`` moves the step clock."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The state after the newest line. Field names are the contract of ``trainwatch progress --json``.

    ``step`` counts as the trainer prints it (within the epoch if its bar is per epoch), ``epoch`` likewise
    (0-based stays 0-based). ``loss`` is None if the trainer printed NaN or nothing. Units: seconds.
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
