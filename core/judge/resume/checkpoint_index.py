"""The known checkpoints of a run: looking one up, changing it, and how many are remembered."""

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, Literal

import msgspec

from ...model.checkpoint import AgeOrder, Checkpoint, Form, Kind, Origin, Verdict, age_order, kind_of, origin_of
from ...model.checkpoint_files import kind_of_name
from ...model.checkpoint_suffixes import has_checkpoint_suffix
from ...model.fact import CheckpointKnown
from ...model.observation import CheckpointEvent, CheckpointSeen
from ...model.text import LazyPattern
from ..scales import AT_MOST, HALF_MINUTE_S, KEPT, LAG_S, MINUTE_S

replace = msgspec.structs.replace

# One checkpoint as the judge knows it: what its file is, when it was written, and whether it can be used.

GOOD: frozenset[str] = frozenset({"complete", "opaque"})


class KnownCheckpoint(CheckpointSeen, frozen=True, kw_only=True, omit_defaults=True):
    """One checkpoint. ``t``: run time at which it was written, or seen if that is unknown.

    ``nonfinite``: tensors with NaN or Inf, None = not read; ``nan``: NaN is among them; ``values``: a sentence about
    them. ``position``: of the run at that time, at least; ``spread``: so much more it may be, if neither its files nor
    the log tell it better. ``changed``: time of its last change (seconds since the epoch) if its
    modification time cannot be right.
    ``epochs_done``: epochs of the run by then, over all attempts. ``own``: written by this run; ``unsure``: it
    cannot be told whether it was.
    ``bad``: why it must not be used. ``damage``: verdict and reason of one that is damaged now but may still be written
    to. ``reported``: an incident tells that it is damaged. ``left``: why it belongs to a branch that the run left.
    ``aside``: why no restart uses it, as it was reported. ``rewriting``: it was complete and is being written to.
    ``fresh``: it was being written when the trainer was at its step. ``written``: when it was written, in seconds since
    the epoch, if its modification time cannot be right.

    ``unclear``: verdict and reason of one that is not understood (``Checkpoint.understood``). ``is_state``: such a one
    that counts as state of this training. ``still_s``: how long it had not changed when it was inspected.
    ``before_t``, ``size_before``: when it was written before, not only made longer, and its bytes then.
    ``was_so_before``: its trainer went on after an earlier save at this path that was not understood or unfinished.
    ``resumed``: its ``unclear`` when a resume from this path took effect.
    ``log_epoch``: the epoch at which a log without steps was when it came.
    ``of_epoch``: the step in it is counted within its epoch (resume_check.py), so ``step`` is None.
    ``refused``: its trainer's own load would not take it (``CheckpointEvent.refused``).
    ``kept``: the folder with a copy of it as it is now; "" = not named, None = there is none.
    ``doubted``: a trainer did not start with it; it is passed over if there is another one.
    ``early``: written before the first step, and nothing says that it is a save (resume_point.early).
    """

    t: float
    changed: float | None = None
    size_bytes: float | None = None
    position: int | None = None
    spread: int = 0
    log_epoch: float | None = None
    epochs_done: int | None = None
    complete: bool = False
    own: bool = True
    unsure: bool = False
    bad: str | None = None
    damage: tuple[Verdict, str] | None = None
    reported: bool = False
    left: str | None = None
    aside: str | None = None
    nonfinite: tuple[str, ...] | None = None
    nan: bool = False
    values: str | None = None
    rewriting: bool = False
    fresh: bool = False
    written: float | None = None
    unclear: tuple[Verdict, str] | None = None
    is_state: bool = False
    still_s: float | None = None
    before_t: float | None = None
    size_before: float | None = None
    was_so_before: bool = False
    resumed: tuple[Verdict, str] | None = None
    kept: str | None = None
    of_epoch: bool = False
    refused: bool = False
    doubted: bool = False
    early: bool = False

    @property
    def shape(self) -> Form:
        """Whether its path names a file or a directory."""
        return self.form if self.form is not None else "file" if has_checkpoint_suffix(self.path) else "directory"

    @property
    def latest(self) -> int | None:
        """The furthest position that it may hold."""
        return None if self.position is None else self.position + self.spread


def is_verified(known: KnownCheckpoint, keep: str | None = None) -> bool:
    """Return whether it is complete, not bad, and of the run's branch. ``keep``: a path from elsewhere that counts."""
    good = known.complete and known.bad is None and known.left is None and not known.early
    return good and (known.own or known.path == keep)


def age_of(known: KnownCheckpoint) -> AgeOrder:
    """Return its ``age_order``; without a modification time, by the time at which it became complete."""
    return age_order(base_name(known.path), time_of(known), known.step, known.epoch)


def by_age(found: Iterable[KnownCheckpoint]) -> tuple[KnownCheckpoint, ...]:
    return tuple(sorted(found, key=age_of))


def newest_of(found: Iterable[KnownCheckpoint]) -> KnownCheckpoint | None:
    return max(found, key=age_of, default=None)


def time_of(known: KnownCheckpoint) -> float:
    return known.written if known.written is not None else known.t if known.mtime is None else known.mtime


def as_fact(known: KnownCheckpoint, created_wall: float, verdict: Verdict, *, removed: bool = False) -> CheckpointKnown:
    name = base_name(known.path)
    kind: Kind = "unknown" if known.unknown_make else "directory" if known.form == "directory" else kind_of(name)
    checkpoint = Checkpoint(
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
    origin: Origin = "run" if known.own else "unknown" if known.unsure else "earlier"
    told = origin_of(created_wall, mtime=checkpoint.mtime)
    if removed or (told == origin and known.changed is None):
        return CheckpointKnown(checkpoint=checkpoint, removed=removed)
    return CheckpointKnown(checkpoint=checkpoint, origin=origin, written_t=known.t if known.own else None)


def base_name(path: str) -> str:
    """Return the last part of a path, for sentences."""
    return path.rstrip("/").rsplit("/", 1)[-1]


class Doubt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What trainers said of checkpoints that are complete (checkpoint_index.py).

    ``open``: a trainer did not start with one, and no resume took effect since. ``said``: the last line of the trainer.
    ``cleared``: another one ended with the same line, so none is to blame.
    """

    open: bool = False
    said: str = ""
    cleared: bool = False


class CheckpointIndex(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All known checkpoints, oldest first by the time they became known.

    ``went_back``: modification time (-inf: from the beginning) of the older one that the run went back to, run time of
    that launch, and why what was written in between does not count. ``doubt``: see checkpoint_index.py.
    ``looked_t``: run time at which the supervisor before this one still watched, None = there was none.
    ``looked_from``: run time of the first thing that this one saw.
    """

    known: tuple[KnownCheckpoint, ...] = ()
    went_back: tuple[float, float, str] | None = None
    doubt: Doubt = Doubt()
    looked_t: float | None = None
    looked_from: float | None = None


def with_entry(index: CheckpointIndex, entry: KnownCheckpoint) -> CheckpointIndex:
    """Return the index with this entry as the one that became known last, in place of an earlier one of its path."""
    known = (*without(index, entry.path).known, entry)
    if len(known) > AT_MOST + 4 * KEPT:  # to sort at each event would be slow
        # those go first that no launch can choose, then weights alone, then the oldest
        known = tuple(sorted(known, key=lambda k: (is_verified(k), k.holds != "weights", age_of(k)))[-AT_MOST:])
    return replace(index, known=known)


def without(index: CheckpointIndex, path: str | None) -> CheckpointIndex:
    """Return the index without this path: it does not exist any more."""
    return replace(index, known=tuple(k for k in index.known if k.path != path))


def find(index: CheckpointIndex, path: str | None) -> KnownCheckpoint | None:
    return next((k for k in index.known if k.path == path), None)


def changed(index: CheckpointIndex, paths: Container[str | None], **fields: Any) -> CheckpointIndex:
    """Return the index with other fields in the entries of these paths."""
    known = tuple(replace(k, **fields) if k.path in paths else k for k in index.known)
    return replace(index, known=known)


# What the sensor's report of a checkpoint changes in the index.
#
# Which are of this run is told by checkpoint.py of the model. One of which that cannot be told is never resumed from or
# deleted, and nothing begins anew over it.
#
# The modification time tells which one is newer, whatever the order of discovery. If it cannot be right, the time of
# the last change tells it, which nobody can set. Known false alarm: the clock of the machine is set back. One that
# appeared when the trainer was at its step is the run's own and no older than the others; so is one of a higher step
# that nobody saw while there was a supervisor, and whose time says that it was there.


def with_event(
    index: CheckpointIndex,
    event: CheckpointEvent,
    *,
    position: int | None,
    created_wall: float,
    spread: int = 0,
    epochs_before: int = 0,
    log_epoch: float | None = None,
    fresh: bool = False,
    of_epoch: bool = False,
) -> CheckpointIndex:
    """Add a change of a checkpoint. ``position``, ``spread``: as it gets them. ``fresh``: the trainer is at its step.

    ``of_epoch``: the step that it holds is counted within its epoch, so that its step of the run is not known.
    ``epochs_before``: what to add to its epoch. A file from before ``created_wall`` (of an adopted training: its real
    start) is not the run's own.
    """
    before = find(index, event.path)
    written_before = before is not None and (before.complete or before.rewriting)
    if index.looked_t is not None and index.looked_from is None:
        index = replace(index, looked_from=event.t)
    t, writing = written_t(event, created_wall), event.verdict == "writing"
    if before is not None and written_before and writing:
        # What is known of it holds until it is complete again, with another modification time or with the same one.
        again = replace(before, complete=False, rewriting=True, damage=None, t=t, fresh=fresh, kept=None)
        return with_entry(index, again)
    complete = event.event == "complete" and (event.verdict is None or event.verdict in GOOD)
    if not writing:
        fresh = before is not None and not before.complete and before.fresh
    set_back = before is None and _was_set_back(index, event, created_wall, position)
    origin = "run" if (fresh or set_back) and event.whose in {None, "run"} else origin_of_event(event, created_wall)
    old, odd_time = origin != "run", has_wrong_time(event, created_wall)
    understood = event.verdict in {None, "writing"} or (event.understood and event.verdict != "opaque")
    epoch = event.epoch if event.epoch is not None or before is None else before.epoch
    verdict = event.verdict or "complete"
    found = verdict, event.reason or verdict
    still_s = None if event.mtime is None or created_wall <= 0.0 else event.t - (event.mtime - created_wall)
    changed_t = event.changed if event.changed is not None and event.changed >= created_wall else None
    step = event.step if event.step is not None or before is None or of_epoch else before.step
    seen = {name: getattr(event, name) for name in CheckpointSeen.__struct_fields__}
    entry = KnownCheckpoint(
        **{**seen, "step": step, "epoch": epoch},
        t=t,
        changed=event.changed if odd_time else None,
        size_bytes=event.size_bytes,
        of_epoch=of_epoch,
        position=None if old else position,
        spread=0 if old else spread,
        log_epoch=None if old else log_epoch,
        epochs_done=None if epoch is None else epoch if old else epoch + epochs_before,
        complete=complete,
        own=not old,
        unsure=origin == "unknown",
        bad=None if complete or event.event != "complete" else (event.reason or event.verdict),
        damage=None if event.verdict in {None, "writing", *GOOD} else found,
        left=None if old or set_back else _seen_late(index, event, created_wall),
        unclear=None if understood else found,
        still_s=None if odd_time and not old else still_s,
        fresh=fresh and not complete,
        refused=event.refused is not None,
        written=changed_t if odd_time and not old else None,
    )
    unchanged = False
    if before is not None:
        same = is_same_save(before, event, created_wall)
        entry, unchanged = _with_history(entry, before, same=same), same
        if entry.mtime is None and before.mtime is None:  # no time tells it
            unchanged = entry.step is not None and (before.step, before.size_bytes) == (entry.step, entry.size_bytes)
    if before is not None and complete and written_before and unchanged:
        # Found again, unchanged: when it was written and what is wrong with it stays as it was.
        kept = {name: getattr(before, name) for name in _OF_A_SAVE}
        own = before.own or entry.own
        entry = replace(entry, **kept, own=own, unsure=entry.unsure and not before.own)
    elif (fresh or set_back or _is_set_later(event, created_wall)) and complete:
        entry = _no_older_than_earlier_steps(index, entry)
    return with_entry(index, entry)


_OF_A_SAVE = (
    "t", "position", "spread", "epochs_done", "bad", "left", "aside", "nonfinite", "nan", "values", "damage",
    "reported", "written", "doubted", "early",
)  # fmt: skip
"""What is known of a save, and stays when it is found again unchanged."""


def may_be_of_before(index: CheckpointIndex, t: float) -> bool:
    """Return whether what becomes known at this run time may have been there before this supervisor."""
    # A new supervisor lists the folder at once; what appears later is not from before it.
    return index.looked_t is not None and (index.looked_from is None or t - index.looked_from <= HALF_MINUTE_S)


def origin_of_event(event: CheckpointEvent, created_wall: float) -> Origin:
    return origin_of(
        created_wall, mtime=event.mtime, changed=event.changed, born=event.born, made=event.made, whose=event.whose
    )


def has_wrong_time(event: CheckpointEvent, created_wall: float) -> bool:
    """Return whether its modification time cannot be that of a save of this run."""
    return event.mtime is not None and event.mtime < created_wall


def _was_set_back(index: CheckpointIndex, event: CheckpointEvent, created_wall: float, position: int | None) -> bool:
    """Return whether it was written while no supervisor watched, by a clock that was set back.

    Its time says that the last supervisor should have seen it, and it goes on from the checkpoints that this one saw:
    the same kind of name and a higher step, and none that the run has not reached: that one was copied in.
    """
    if index.looked_t is None or event.mtime is None or event.step is None or not may_be_of_before(index, event.t):
        return False
    # What was written before the last record of a supervisor was seen by it.
    if event.mtime - created_wall >= index.looked_t - MINUTE_S:
        return False
    if position is not None and event.step > position:
        return False
    kind = kind_of_name(base_name(event.path))
    alike = [k.step for k in index.known if k.own and k.complete and kind_of_name(base_name(k.path)) == kind]
    return bool(alike) and all(step is not None and step < event.step for step in alike)


def _no_older_than_earlier_steps(index: CheckpointIndex, entry: KnownCheckpoint) -> KnownCheckpoint:
    """Return it with a time that is not before those of lower steps: the clock was set back, not the training."""
    others = [k for k in index.known if k.own and k.complete and k.path != entry.path]
    newest = newest_of(others)
    if newest is None or entry.step is None or entry.mtime is None:
        return entry
    time, steps = time_of(newest), [k.step for k in others if k.step is not None]
    if (entry.written or entry.mtime) >= time or len(steps) < len(others) or entry.step <= max(steps):
        return entry
    return replace(entry, written=time, t=max(entry.t, newest.t))


def _with_history(entry: KnownCheckpoint, before: KnownCheckpoint, *, same: bool) -> KnownCheckpoint:
    """Keep what was seen of an entry that is not understood before it was written again, unless it is the same."""
    again = not same and (entry.size_bytes or 0.0) <= (before.size_bytes or 0.0)
    entry = replace(
        entry,
        resumed=before.resumed,
        before_t=before.t if again else before.before_t,
        kept=before.kept if same and entry.size_bytes == before.size_bytes else None,
        size_before=before.size_before if same or before.unclear is None else before.size_bytes,
        was_so_before=before.was_so_before
        or (not same and before.is_state)
        or (again and before.unclear is not None and before.unfinished),
    )
    if entry.unclear is None or not same:
        return entry
    return replace(
        entry,
        is_state=before.is_state and before.unclear is not None,
        bad=before.bad or entry.bad,
        left=before.left or entry.left,
    )


def is_same_save(before: KnownCheckpoint, event: CheckpointEvent, created_wall: float) -> bool:
    """Return whether the event tells of the save that is known already: a rescan reports unchanged ones again.

    One of another size is another save, also with the modification time of the former one.
    """
    sizes = {before.size_bytes, event.size_bytes} - {None}
    if (before.complete or before.rewriting) and event.event == "complete" and len(sizes) > 1:
        return False
    changed = event.changed if has_wrong_time(event, created_wall) else None
    return before.mtime == event.mtime and (None in {before.changed, changed} or before.changed == changed)


def _seen_late(index: CheckpointIndex, event: CheckpointEvent, created_wall: float) -> str | None:
    """Return why a checkpoint does not count that was written before the run went back, and is seen only now."""
    if index.went_back is None or event.mtime is None or created_wall <= 0.0:
        return None
    older, launch_t, why = index.went_back
    t = written_t(event, created_wall)
    written = created_wall + t if has_wrong_time(event, created_wall) else event.mtime
    return why if written > older and t < launch_t else None


def written_t(event: CheckpointEvent, created_wall: float) -> float:
    """Return the run time at which it was written; a failure after that is not in it.

    By its modification time, if that is after the last look that did not see it; else by the time of its last change,
    or when it was seen, so that it never counts as older than it is.
    """
    if event.mtime is None or created_wall <= 0.0:
        return event.t
    t = event.mtime - created_wall
    if not _is_set_later(event, created_wall) and (t >= 0.0 or origin_of_event(event, created_wall) != "run"):
        return max(0.0, min(event.t, t))
    earliest = (0.0 if event.absent_t is None else event.absent_t) - LAG_S
    changed_t = None if event.changed is None else event.changed - created_wall
    return event.t if changed_t is None or changed_t < earliest else max(0.0, min(event.t, changed_t))


def _is_set_later(event: CheckpointEvent, created_wall: float) -> bool:
    """Return whether its modification time is before a look that did not see it."""
    if event.mtime is None or event.absent_t is None:
        return False
    return event.mtime - created_wall < event.absent_t - LAG_S


# Whether NaN and Inf in a checkpoint are damage: they are if an earlier checkpoint of the run was finite there.
#
# Masks and the observers of quantisation hold Inf on purpose, and hold it in every checkpoint. Without an earlier
# checkpoint to compare with, NaN counts as damage and Inf alone does not. Known false alarm: a buffer that is first
# used in the middle of the training.


class Values(msgspec.Struct, frozen=True):
    """What the values of a checkpoint mean. ``compared``: an earlier one of the run was read.

    ``new``: names of tensors that are not finite and were, or must be.
    """

    new: tuple[str, ...] = ()
    compared: bool = False


def with_values(
    index: CheckpointIndex, path: str, nonfinite: Sequence[str], nan: Sequence[str], reason: str | None
) -> CheckpointIndex:
    """Return the index with the values of a checkpoint that was read; all that this decides is decided anew."""
    index = changed(index, (path,), nonfinite=tuple(nonfinite), nan=bool(nan), values=reason)
    for known in index.known:
        if known.own and known.nonfinite is not None:
            index = _judged(index, known)
    return index


def values_of(index: CheckpointIndex, known: KnownCheckpoint) -> Values:
    """Return what the values of a checkpoint that was read mean."""
    names = known.nonfinite or ()
    earlier = [k for k in index.known if k.own and k.nonfinite is not None and age_of(k) < age_of(known)]
    if not earlier:
        return Values(names if known.nan else ())
    always = set.intersection(*(set(k.nonfinite or ()) for k in earlier))
    return Values(tuple(name for name in names if name not in always), compared=True)


def _judged(index: CheckpointIndex, known: KnownCheckpoint) -> CheckpointIndex:
    marked = known.damage is not None and known.damage[0] == "nonfinite"
    if values_of(index, known).new:
        why = known.values or "holds NaN or Inf"
        return index if marked else changed(index, (known.path,), bad=known.bad or why, damage=("nonfinite", why))
    if marked and known.damage is not None and known.bad == known.damage[1]:
        return changed(index, (known.path,), bad=None, damage=None)
    return index


# A complete checkpoint that the trainer does not start with: passed over, and kept.
#
# Its structure and all its bytes were verified before the launch, so the trainer's end stands against ours. The first
# end may have any cause; the second one before a step with the same checkpoint, or the first that says that it cannot
# be read, goes to the one before. If that one ends with the same last line, neither is to blame (``weights_only`` of
# torch 2.6, a damaged data file, a library of another version): nothing is passed over any more, the run goes back to
# the newest and is held, until a resume has worked. An attempt that made a step has read its checkpoint: whatever
# fails later is something else, and so is a failure whose message names another file, or whose class lies elsewhere
# (memory, GPU, disk, network, port, driver, imports).
#
# Source: a save without one of the keys that the loader wants. It was tried three times and the run given up, while
# the one before it was whole.

DOUBTED = "the trainer could not read it; it is complete and is kept"
"""Why it is passed over, for people."""

Unread = Literal["", "passed_over", "cleared"]


def passed_over(index: CheckpointIndex, path: str, said: str) -> CheckpointIndex:
    return replace(changed(index, (path,), doubted=True), doubt=Doubt(open=True, said=said))


def names_another_file(message: str, path: str) -> bool:
    """Whether the message names files by their paths, and none of them is the checkpoint or in it."""
    named = [found.group() for found in _PATH.finditer(message)]
    return bool(named) and not any(base_name(path) in place.split("/") for place in named)


_PATH = LazyPattern(r"(?<![\w/])(?:~|\.{0,2})/[\w./+@=-]+|[\w.+@=-]+(?:/[\w.+@=-]+)*/[\w.+@=-]+\.\w+", re.ASCII)
"""A path with its folder; of a relative one, only with a suffix ("read/write" is none)."""
