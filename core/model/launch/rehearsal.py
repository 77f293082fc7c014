"""A rehearsal: the run's own training to its first checkpoint, killed and resumed in a scratch folder."""

from typing import Literal

import msgspec

Verdict = Literal["safe", "unsafe", "unknown"]
Will = Literal["yes", "self", "no", "unknown"]
Apart = Literal["overlay", "redirect"]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something went on after the resume. ``holds`` None: it cannot be told. ``why``: for the user."""

    holds: bool | None = None
    why: str = ""


class StepProof(Proof, frozen=True, kw_only=True):
    """Steps as the log prints them, over all epochs.

    ``first``: of the first attempt; ``checkpoint``: held by the checkpoint, or printed when it came; ``killed_at``: the
    last one before the kill; ``first_after``: the first one after the resume. None = not known.
    """

    first: int | None = None
    checkpoint: int | None = None
    killed_at: int | None = None
    first_after: int | None = None


class LossProof(Proof, frozen=True, kw_only=True):
    """Printed losses: at the start, before the kill, and after the resume (medians). None = none was printed."""

    start: float | None = None
    before: float | None = None
    after: float | None = None


class FaultOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """What follows a fault tonight. ``after_s``: from the fault to the first action; None = at once or not known.

    ``survives``: the training goes on without a person; None = it cannot be told.
    """

    fault: str
    then: str
    survives: bool | None = None
    after_s: float | None = None


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rehearsal.

    ``wall``: when it began, epoch seconds. ``apart``: how the user's files were kept untouched; ``touched``: files of
    the working folder that changed meanwhile. ``resume``: whether a crash is resumed, ``how`` and ``source`` as in
    ``status``. ``advice``: what to change, a sentence each. ``config``: the trainwatch.toml that was rehearsed.
    ``saved_in``: where the trainer saved, as tonight.
    """

    run: str
    command: tuple[str, ...]
    wall: float
    took_s: float = 0.0
    verdict: Verdict = "unknown"
    reason: str = ""
    apart: Apart = "overlay"
    preset: str = "generic"
    saved_in: str | None = None
    checkpoint: str | None = None
    checkpoint_after_s: float | None = None
    will: Will = "unknown"
    how: str = ""
    source: str = "none"
    steps: StepProof = StepProof()
    loss: LossProof = LossProof()
    faults: tuple[FaultOutlook, ...] = ()
    advice: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    config: str = ""

    @property
    def safe(self) -> bool:
        """Whether tonight is safe, as far as a rehearsal shows it."""
        return self.verdict == "safe"
