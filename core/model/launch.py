"""Values of a launch: the launch page, rehearsals, trials, the queue."""

from typing import Literal

import msgspec

from .preset import Change, Will
from .run import RunSpec, RunState

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


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rehearsal.

    ``wall``: when it began, epoch seconds. ``apart``: how the user's files were kept untouched; ``touched``: files of
    the working folder that changed meanwhile. ``resume``: whether a crash is resumed, ``how`` and ``source`` as in
    ``status``. ``advice``: what to change, a sentence each. ``saved_in``: where the trainer saved, as
    tonight. ``hang_after_s``: from the last sign of life to the end of a hung attempt; None: not within hours.
    ``setting``: the variables of the environment that it depends on, with digests of their values.
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
    hang_after_s: float | None = None
    advice: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    setting: dict[str, str] = {}

    @property
    def safe(self) -> bool:
        return self.verdict == "safe"


# A trial: a few minutes of the run's own training with one profile, measured on this machine.


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one profile on this machine. Bytes, seconds, per cent; None = unknown.

    ``wall``: when it began, epoch seconds. ``ran_s``: of training, from the first step. ``vram_peak_bytes``: of the
    fullest GPU, others' memory included. ``ram_peak_bytes``: the trainer's processes. ``failure``: class of what
    ended it. ``exit``: how it ended, for the user. ``stable``: the five conditions together; None = too short to judge.
    """

    profile: str
    wall: float
    ran_s: float = 0.0
    steps: int = 0
    s_per_step: float | None = None
    vram_peak_bytes: float | None = None
    vram_total_bytes: float | None = None
    ram_peak_bytes: float | None = None
    gpu_util_pct: float | None = None
    started: bool = False
    no_error: bool = True
    memory_stable: bool | None = None
    loss_falling: bool | None = None
    eval_rising: bool | None = None
    failure: str | None = None
    reason: str = ""
    exit: str = ""
    log: str | None = None
    simulated_gpu: bool = False

    @property
    def stable(self) -> bool | None:
        """Started, no error, memory constant, loss falling, evaluation not getting worse; unknown ones are left out."""
        looks = (self.memory_stable, self.loss_falling, self.eval_rising)
        if not self.started or not self.no_error or False in looks:
            return False
        return True if self.memory_stable and self.loss_falling else None

    @property
    def doubts(self) -> tuple[str, ...]:
        if not self.started:
            return (self.reason or "no step was made",)
        if not self.no_error:
            return (self.reason or self.failure or "it failed",)
        looks: tuple[tuple[bool | None, str, str], ...] = (
            (self.memory_stable, "memory grows", "too short to judge memory"),
            (self.loss_falling, "the loss does not fall", "too short to judge the loss"),
            (self.eval_rising, "the evaluation gets worse", ""),
        )
        texts = [bad if found is False else unknown for found, bad, unknown in looks if not found]
        return tuple(text for text in texts if text)


# Runs that wait for a GPU (``trainwatch queue``).

QUEUE_VERSION = 1
LABEL = "queue"
"""Label of a run that the queue started: the key of its entry."""


def queued(spec: RunSpec, told: str) -> RunSpec:
    """The run as the queue starts it. ``told``: the key of its entry and its GPUs, as ``3f2a:0,1``."""
    key, _, gpus = told.partition(":")
    labels = {**spec.labels, LABEL: key}
    return msgspec.structs.replace(spec, gpus=tuple(int(gpu) for gpu in gpus.split(",") if gpu), labels=labels)


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run to be started. ``key``: its own for ever; ``id``: what people type. ``environ``: it was added with.

    ``words``: options and command of ``trainwatch run``; without a command: the run of the trainwatch.toml of ``cwd``.
    ``wants``: how many GPUs; ``need_bytes``: memory on each, None = not known: a GPU for itself alone. ``need_why``:
    how that is known. ``beside``: it may share a GPU with processes that the queue did not start.

    ``on``: the GPUs that it has. ``run``: id of the run, None = not made yet. ``boot``: the boot in which it was
    started. ``why``: why it waits, or how it ended.
    """

    id: int
    key: str
    name: str
    cwd: str
    added_wall: float
    environ: dict[str, str] = {}
    words: tuple[str, ...] = ()
    wants: int = 1
    need_bytes: float | None = None
    need_why: str = ""
    beside: bool = False
    state: Literal["queued", "started", "over"] = "queued"
    on: tuple[int, ...] = ()
    run: str | None = None
    boot: str = ""
    ending: str = ""
    why: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        return self.words[self.words.index("--") + 1 :] if "--" in self.words else ()


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """All entries, in the order in which they are to be started; those that are over stay for a while."""

    version: int = QUEUE_VERSION
    next_id: int = 1
    entries: tuple[QueueEntry, ...] = ()

    def replaced(self, before: QueueEntry, after: QueueEntry | None) -> "Queue":
        """With ``after`` in the place of ``before`` (None: without it), if that is still as it was."""
        entries = (after if known == before else known for known in self.entries)
        return msgspec.structs.replace(self, entries=tuple(entry for entry in entries if entry is not None))

    @property
    def waiting(self) -> tuple[QueueEntry, ...]:
        return tuple(entry for entry in self.entries if entry.state == "queued")

    @property
    def is_live(self) -> bool:
        """Whether anything waits or runs."""
        return any(entry.state != "over" for entry in self.entries)
