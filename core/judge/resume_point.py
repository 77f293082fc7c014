"""Which checkpoint to go on from: the newest complete one from before the trouble that has not turned out bad.

A person's own files from before this run are never resumed from by themselves: a stale directory is not this training.
"""

import msgspec

from ..model.checkpoint import Checkpoint, Kind, Verdict
from ..model.observation import CheckpointEvent

KEPT = 64
"""Checkpoints remembered; the newest count."""

GOOD: frozenset[str] = frozenset({"complete", "opaque"})
DAMAGED: frozenset[str] = frozenset({"torn", "corrupt", "nonfinite"})


class Known(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One checkpoint. ``t``: run time it was written, or seen where that is not known. ``position``: of the run then.

    ``epochs_done``: epochs of the run at that moment, over all attempts. ``own``: written by this run. ``bad``: why it
    must not be used. ``damage``: verdict and reason of one that stands still and is not whole; its writer may go on.
    """

    path: str
    t: float
    mtime: float | None = None
    size_bytes: float | None = None
    step: int | None = None
    epoch: int | None = None
    position: int | None = None
    epochs_done: int | None = None
    complete: bool = False
    own: bool = True
    bad: str | None = None
    damage: tuple[str, str] | None = None


class Shelf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All known checkpoints, oldest first by the time they became known."""

    known: tuple[Known, ...] = ()


def with_event(
    shelf: Shelf, event: CheckpointEvent, *, position: int | None, created_wall: float, epochs_before: int = 0
) -> Shelf:
    """Take a change of a checkpoint. ``position``: where the run is now.

    ``epochs_before``: what to add to the epoch that it tells. A file from before the run (``created_wall``; of an
    adopted training: its real start) is not its own.
    """
    others = tuple(k for k in shelf.known if k.path != event.path)
    if event.event == "removed":
        return Shelf(known=others)
    before = find(shelf, event.path)
    complete = event.event == "complete" and (event.verdict is None or event.verdict in GOOD)
    old = event.mtime is not None and event.mtime < created_wall
    epoch = event.epoch if event.epoch is not None else before.epoch if before is not None else None
    entry = Known(
        path=event.path,
        t=_written_t(event, created_wall),
        mtime=event.mtime,
        size_bytes=event.size_bytes,
        step=event.step if event.step is not None else before.step if before is not None else None,
        epoch=epoch,
        position=None if old else position,
        epochs_done=None if epoch is None else epoch if old else epoch + epochs_before,
        complete=complete,
        own=not old,
        bad=None if complete or event.event != "complete" else (event.reason or event.verdict),
        damage=(event.verdict, event.reason or event.verdict) if event.verdict in DAMAGED else None,
    )
    if before is not None and complete and before.complete and event.mtime is not None and before.mtime == event.mtime:
        # A rescan found it unchanged: when it was written, and what was found wrong with it, stays what it was.
        entry = msgspec.structs.replace(
            entry, t=before.t, position=before.position, epochs_done=before.epochs_done, bad=before.bad
        )
    return Shelf(known=(*others, entry)[-KEPT:])


def _written_t(event: CheckpointEvent, created_wall: float) -> float:
    """A file is seen a little after it was written; trouble that came in between is not in it."""
    if event.mtime is None or created_wall <= 0.0:
        return event.t
    return max(0.0, min(event.t, event.mtime - created_wall))


def find(shelf: Shelf, path: str | None) -> Known | None:
    """The entry of a path."""
    return next((k for k in shelf.known if k.path == path), None)


def mark_bad(shelf: Shelf, path: str, why: str) -> Shelf:
    """It failed its proof; it is skipped until it is written anew."""
    return Shelf(known=tuple(msgspec.structs.replace(k, bad=why) if k.path == path else k for k in shelf.known))


def newest_good(shelf: Shelf, *, before_t: float | None = None, keep: str | None = None) -> Known | None:
    """The resume point, or None. ``before_t``: completed before this run time. ``keep``: a foreign path that counts."""
    usable = [
        k
        for k in shelf.known
        if k.complete and k.bad is None and (k.own or k.path == keep) and (before_t is None or k.t < before_t)
    ]
    if not usable:
        return None
    return max(usable, key=_age_order)


def damaged_after(shelf: Shelf, good: Known | None) -> tuple[Known, ...]:
    """The run's own ones that are not whole and not told of yet, newer than ``good`` (None = all), oldest first."""
    since = (float("-inf"), 0.0, 0) if good is None else _age_order(good)
    found = [k for k in shelf.known if k.own and k.bad is None and k.damage is not None and _age_order(k) > since]
    return tuple(sorted(found, key=_age_order))


def _age_order(known: Known) -> tuple[float, float, int]:
    # Modification time orders; where it is unknown, the time it became complete does. Ties by step.
    return (known.mtime if known.mtime is not None else known.t, known.t, known.step if known.step is not None else -1)


def as_checkpoint(known: Known, created_wall: float, verdict: Verdict) -> Checkpoint:
    """For the journal."""
    name = base_name(known.path)
    kind: Kind = (
        "safetensors"
        if name.endswith(".safetensors")
        else "torch_file"
        if name.endswith((".pt", ".pth", ".ckpt", ".bin"))
        else "unknown"
    )
    return Checkpoint(
        path=known.path,
        name=name,
        kind=kind,
        step=known.step,
        epoch=known.epoch,
        size_bytes=int(known.size_bytes or 0),
        mtime=known.mtime if known.mtime is not None else created_wall + known.t,
        verdict=verdict,
        reason=known.bad,
    )


def base_name(path: str) -> str:
    """The last part of a path, for sentences."""
    return path.rstrip("/").rsplit("/", 1)[-1]
