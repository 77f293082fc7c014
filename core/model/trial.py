"""A trial: a few minutes of the run's own training with one profile, measured on this machine."""

from typing import Any, Literal

import msgspec


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

EntryState = Literal["queued", "starting", "started", "over"]


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run to be started. ``key``: its own for ever; ``id``: what people type.

    ``command`` empty: the run of the trainwatch.toml of ``cwd``. ``options``: those of ``trainwatch run``.
    ``wants``: how many GPUs; ``need_bytes``: memory on each, None = not known: a GPU for itself alone. ``need_why``:
    how that is known. ``beside``: it may share a GPU with processes that the queue did not start.

    ``on``: the GPUs that it has. ``run``: id of the run, None = not made yet. ``begun``: how often a start was begun
    since it last worked. ``boot``: the boot in which it was started. ``why``: why it waits, or how it ended.
    """

    id: int
    key: str
    name: str
    cwd: str
    added_wall: float
    command: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    checkpoint: str | None = None
    fresh: bool = False
    wants: int = 1
    need_bytes: float | None = None
    need_why: str = ""
    beside: bool = False
    state: EntryState = "queued"
    on: tuple[int, ...] = ()
    run: str | None = None
    begun: int = 0
    boot: str = ""
    started_wall: float | None = None
    over_wall: float | None = None
    ending: str = ""
    why: str = ""

    @property
    def holds(self) -> bool:
        return self.state in {"starting", "started"}


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """All entries, in the order in which they are to be started; those that are over stay for a while."""

    version: int = QUEUE_VERSION
    next_id: int = 1
    entries: tuple[QueueEntry, ...] = ()

    def find(self, number: int) -> QueueEntry | None:
        return next((entry for entry in self.entries if entry.id == number), None)

    def replaced(self, entry: QueueEntry) -> "Queue":
        entries = tuple(entry if known.id == entry.id else known for known in self.entries)
        return msgspec.structs.replace(self, entries=entries)

    @property
    def waiting(self) -> tuple[QueueEntry, ...]:
        return tuple(entry for entry in self.entries if entry.state == "queued")
