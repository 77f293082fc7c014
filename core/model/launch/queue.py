"""Runs that wait for a GPU (``trainwatch queue``)."""

from typing import Any, Literal

import msgspec

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
        """Whether it has GPUs, or is about to."""
        return self.state in {"starting", "started"}


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """All entries, in the order in which they are to be started; those that are over stay for a while."""

    version: int = QUEUE_VERSION
    next_id: int = 1
    entries: tuple[QueueEntry, ...] = ()

    def find(self, number: int) -> QueueEntry | None:
        return next((entry for entry in self.entries if entry.id == number), None)

    def replaced(self, entry: QueueEntry) -> "Queue":
        """The queue with this entry in place of the one of its id."""
        entries = tuple(entry if known.id == entry.id else known for known in self.entries)
        return msgspec.structs.replace(self, entries=entries)

    @property
    def waiting(self) -> tuple[QueueEntry, ...]:
        """The entries that are not started yet, in their order."""
        return tuple(entry for entry in self.entries if entry.state == "queued")
