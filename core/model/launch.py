"""Values of a launch: the launch page, rehearsals, trials, the queue."""

from typing import Literal

import msgspec

from .change import Change
from .run import RunState

# Values of the launch screen: what can be started, its preview and its checks.


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to start: a run of ``trainwatch.toml`` by its name, or else a command as it was typed.

    ``profile`` None: the one that the file names, if any.
    """

    run: str | None = None
    command: str = ""
    profile: str | None = None


class LaunchOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One run of ``trainwatch.toml``. ``run_id``: it was launched before and can be opened.

    Not ``of_file``: a live run of a command that was started in this folder; it can only be opened.
    """

    name: str
    command: str
    profile: str | None = None
    run_id: str | None = None
    state: RunState = "idle"
    of_file: bool = True


class LaunchPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a start would launch. ``changes``: all that differs from the user's own config, flags and environment.

    ``preset_why``: how it was found. ``profiles``: (name, title) to choose from: the ladder, or the default first.
    ``resume``: how it is resumed after a crash, in words; ``resumes``: whether it is. ``unused``: a sentence about the
    folder's trainwatch.toml, if it is not used for a command; else empty.
    """

    name: str
    preset: str
    preset_why: str
    command: tuple[str, ...]
    cwd: str
    config: str | None = None
    output_dir: str | None = None
    profile: str | None = None
    profiles: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    resume: str = ""
    resumes: bool = True
    unused: str = ""


class LaunchCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check before the start. ``result`` None: still running; ``place``: its place in the list."""

    place: int
    name: str
    result: Literal["pass", "warn", "fail"] | None = None
    found: str = ""
    remedy: str = ""


# A rehearsal: the run's own training to its first checkpoint, killed and resumed in a scratch folder.

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
