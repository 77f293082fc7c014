"""One checkpoint as the judge knows it: what its file is, when it was written, and whether it can be used."""

import msgspec

from ...model.checkpoints.checkpoint import AgeOrder, Checkpoint, Form, Holds, Kind, Verdict, age_order, kind_of
from ...model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ...model.checkpoints.origin import Origin, origin_of
from ...model.fact import CheckpointKnown

GOOD: frozenset[str] = frozenset({"complete", "opaque"})
DAMAGED: frozenset[str] = frozenset({"torn", "corrupt", "nonfinite"})


class KnownCheckpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One checkpoint. ``t``: run time at which it was written, or seen if that is unknown.

    ``disk_bytes``: what it takes on the disk, None = unknown.
    ``nonfinite``: tensors with NaN or Inf, None = not read; ``nan``: NaN is among them; ``values``: a sentence about
    them. ``position``: of the run at that time. ``changed``: time of its last change (seconds since the epoch) if its
    modification time cannot be right.
    ``epochs_done``: epochs of the run by then, over all attempts. ``own``: written by this run; ``unsure``: it
    cannot be told whether it was.
    ``bad``: why it must not be used. ``damage``: verdict and reason of one that is damaged now but may still be written
    to. ``reported``: an incident tells that it is damaged. ``left``: why it belongs to a branch that the run left.
    ``aside``: why no restart uses it, as it was reported. ``rewriting``: it was complete and is being written to.
    ``fresh``: it was being written when the trainer was at its step. ``written``: when it was written, in seconds since
    the epoch, if its modification time cannot be right.

    ``unclear``: verdict and reason of one that is not understood (``Checkpoint.understood``); ``unknown_make``: it is
    not known to be a checkpoint at all; ``unfinished``: what is written last is missing. ``is_state``: such a one that
    counts as state of this training (unclear_state.py). ``still_s``: how long it had not changed when it was inspected.
    ``before_t``, ``size_before``: when it was written before, not only made longer, and its bytes then.
    ``was_so_before``: its trainer went on after an earlier save at this path that was not understood or unfinished.
    ``log_epoch``: the epoch at which a log without steps was when it came.
    ``of_epoch``: the step in it is counted within its epoch (epoch_step.py), so ``step`` is None.
    ``refused``: its trainer's own load would not take it (``CheckpointEvent.refused``).
    ``kept``: the folder with a copy of it as it is now; "" = not named, None = there is none.
    """

    path: str
    t: float
    mtime: float | None = None
    changed: float | None = None
    size_bytes: float | None = None
    disk_bytes: float | None = None
    step: int | None = None
    epoch: int | None = None
    position: int | None = None
    log_epoch: float | None = None
    epochs_done: int | None = None
    complete: bool = False
    own: bool = True
    unsure: bool = False
    bad: str | None = None
    damage: tuple[str, str] | None = None
    reported: bool = False
    form: Form | None = None
    holds: Holds | None = None
    left: str | None = None
    aside: str | None = None
    nonfinite: tuple[str, ...] | None = None
    nan: bool = False
    values: str | None = None
    rewriting: bool = False
    fresh: bool = False
    written: float | None = None
    unclear: tuple[str, str] | None = None
    unknown_make: bool = False
    unfinished: bool = False
    is_state: bool = False
    still_s: float | None = None
    before_t: float | None = None
    size_before: float | None = None
    was_so_before: bool = False
    kept: str | None = None
    of_epoch: bool = False
    refused: bool = False

    @property
    def shape(self) -> Form:
        """Whether its path names a file or a directory."""
        return self.form if self.form is not None else "file" if has_checkpoint_suffix(self.path) else "directory"


def is_verified(known: KnownCheckpoint, keep: str | None = None) -> bool:
    """Return whether it is complete, not bad, and of the run's branch. ``keep``: a path from elsewhere that counts."""
    return known.complete and known.bad is None and known.left is None and (known.own or known.path == keep)


def age_of(known: KnownCheckpoint) -> AgeOrder:
    """Return its ``age_order``; without a modification time, by the time at which it became complete."""
    return age_order(base_name(known.path), time_of(known), known.step, known.epoch)


def time_of(known: KnownCheckpoint) -> float:
    """Return when it was written."""
    return known.written if known.written is not None else known.t if known.mtime is None else known.mtime


def as_checkpoint(known: KnownCheckpoint, created_wall: float, verdict: Verdict) -> Checkpoint:
    """Return it as the journal records it."""
    name = base_name(known.path)
    kind: Kind = "unknown" if known.unknown_make else "directory" if known.form == "directory" else kind_of(name)
    return Checkpoint(
        path=known.path,
        name=name,
        kind=kind,
        step=known.step,
        epoch=known.epoch,
        size_bytes=int(known.size_bytes or 0),
        mtime=known.mtime if known.mtime is not None else created_wall + known.t,
        verdict=verdict,
        reason=known.bad if known.unclear is None else known.unclear[1],
        holds=known.holds,
        understood=known.unclear is None,
    )


def as_fact(known: KnownCheckpoint, created_wall: float, verdict: Verdict, *, removed: bool = False) -> CheckpointKnown:
    """Return the journal's record of it."""
    checkpoint = as_checkpoint(known, created_wall, verdict)
    origin: Origin = "run" if known.own else "unknown" if known.unsure else "earlier"
    told = origin_of(created_wall, mtime=checkpoint.mtime)
    if removed or (told == origin and known.changed is None):
        return CheckpointKnown(checkpoint=checkpoint, removed=removed)
    return CheckpointKnown(checkpoint=checkpoint, origin=origin, written_t=known.t if known.own else None)


def base_name(path: str) -> str:
    """Return the last part of a path, for sentences."""
    return path.rstrip("/").rsplit("/", 1)[-1]
