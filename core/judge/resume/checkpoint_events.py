"""What the sensor's report of a checkpoint changes in the index.

Which are of this run is told by origin.py of the model. One of which that cannot be told is never resumed from or
deleted, and nothing begins anew over it.

The modification time tells which one is newer, whatever the order of discovery. If it cannot be right, the time of the
last change tells it, which nobody can set. Known false alarm: the clock of the machine is set back. One that appeared
when the trainer was at its step is the run's own and no older than the others; so is one of a higher step that nobody
saw while there was a supervisor, and whose time says that it was there.
"""

import msgspec

from ...model.checkpoints.origin import Origin, origin_of
from ...model.checkpoints.other_files import kind_of_name
from ...model.observation import CheckpointEvent
from .checkpoint_index import CheckpointIndex, find, with_entry
from .known_checkpoint import DAMAGED, GOOD, KnownCheckpoint, age_of, base_name, time_of

FIRST_LOOK_S = 30.0
"""A new supervisor lists the folder at once; what appears later is not from before it."""
CLOCK_SLACK_S = 2.0
"""Clocks of file systems lag so much; FAT keeps every second second."""
LOOK_SLACK_S = 60.0
"""A checkpoint that was written so long before the last record of a supervisor was seen by it."""


def with_event(
    index: CheckpointIndex,
    event: CheckpointEvent,
    *,
    position: int | None,
    created_wall: float,
    epochs_before: int = 0,
    log_epoch: float | None = None,
    fresh: bool = False,
    of_epoch: bool = False,
) -> CheckpointIndex:
    """Add a change of a checkpoint. ``position``: of the run now. ``fresh``: the trainer is at its step.

    ``of_epoch``: the step that it holds is counted within its epoch, so that its step of the run is not known.
    ``epochs_before``: what to add to its epoch. A file from before ``created_wall`` (of an adopted training: its real
    start) is not the run's own.
    """
    before = find(index, event.path)
    if index.looked_t is not None and index.looked_from is None:
        index = msgspec.structs.replace(index, looked_from=event.t)
    if before is not None and (before.complete or before.rewriting) and event.verdict == "writing":
        # What is known of it holds until it is complete again, with another modification time or with the same one.
        again = msgspec.structs.replace(
            before,
            complete=False,
            rewriting=True,
            damage=None,
            t=_written_t(event, created_wall),
            fresh=fresh,
            kept=None,
        )
        return with_entry(index, again)
    complete = event.event == "complete" and (event.verdict is None or event.verdict in GOOD)
    if event.verdict != "writing":
        fresh = before is not None and not before.complete and before.fresh
    set_back = before is None and _was_set_back(index, event, created_wall, position)
    origin = "run" if (fresh or set_back) and event.whose is None else origin_of_event(event, created_wall)
    old = origin != "run"
    wrong_time = has_wrong_time(event, created_wall) and not old
    epoch = event.epoch if event.epoch is not None else before.epoch if before is not None else None
    entry = KnownCheckpoint(
        path=event.path,
        t=_written_t(event, created_wall),
        mtime=event.mtime,
        changed=event.changed if has_wrong_time(event, created_wall) else None,
        size_bytes=event.size_bytes,
        disk_bytes=event.disk_bytes,
        step=event.step if event.step is not None or before is None or of_epoch else before.step,
        of_epoch=of_epoch,
        epoch=epoch,
        position=None if old else position,
        log_epoch=None if old else log_epoch,
        epochs_done=None if epoch is None else epoch if old else epoch + epochs_before,
        complete=complete,
        own=not old,
        unsure=origin == "unknown",
        bad=None if complete or event.event != "complete" else (event.reason or event.verdict),
        damage=(event.verdict, event.reason or event.verdict) if event.verdict in DAMAGED else None,
        form="file" if event.form == "file" else "directory" if event.form == "directory" else None,
        holds="state" if event.holds == "state" else "weights" if event.holds == "weights" else None,
        left=None if old or set_back else _seen_late(index, event, created_wall),
        unclear=_unclear(event),
        unknown_make=event.unknown_make,
        unfinished=event.unfinished,
        still_s=None
        if event.mtime is None or created_wall <= 0.0 or wrong_time
        else event.t - (event.mtime - created_wall),
        fresh=fresh and not complete,
        refused=event.refused is not None,
        written=event.changed if wrong_time and event.changed is not None and event.changed >= created_wall else None,
    )
    if before is not None:
        entry = _with_history(entry, before)
    if before is not None and complete and (before.complete or before.rewriting) and _is_unchanged(before, entry):
        # Found again, unchanged: when it was written and what is wrong with it stays as it was.
        entry = msgspec.structs.replace(
            entry,
            t=before.t,
            position=before.position,
            epochs_done=before.epochs_done,
            bad=before.bad,
            left=before.left,
            aside=before.aside,
            nonfinite=before.nonfinite,
            nan=before.nan,
            values=before.values,
            damage=before.damage,
            reported=before.reported,
            written=before.written,
            own=before.own or entry.own,
            unsure=entry.unsure and not before.own,
        )
    elif (fresh or set_back or _is_set_later(event, created_wall)) and complete:
        entry = _no_older_than_earlier_steps(index, entry)
    return with_entry(index, entry)


def may_be_of_before(index: CheckpointIndex, t: float) -> bool:
    """Return whether what becomes known at this run time may have been there before this supervisor."""
    return index.looked_t is not None and (index.looked_from is None or t - index.looked_from <= FIRST_LOOK_S)


def origin_of_event(event: CheckpointEvent, created_wall: float) -> Origin:
    """Return whether this run wrote what the event tells of."""
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
    if event.mtime - created_wall >= index.looked_t - LOOK_SLACK_S:
        return False
    if position is not None and event.step > position:
        return False
    kind = kind_of_name(base_name(event.path))
    alike = [k.step for k in index.known if k.own and k.complete and kind_of_name(base_name(k.path)) == kind]
    return bool(alike) and all(step is not None and step < event.step for step in alike)


def _no_older_than_earlier_steps(index: CheckpointIndex, entry: KnownCheckpoint) -> KnownCheckpoint:
    """Return it with a time that is not before those of lower steps: the clock was set back, not the training."""
    others = [k for k in index.known if k.own and k.complete and k.path != entry.path]
    newest = max(others, key=age_of, default=None)
    if newest is None or entry.step is None or entry.mtime is None:
        return entry
    time, steps = time_of(newest), [k.step for k in others if k.step is not None]
    if (entry.written or entry.mtime) >= time or len(steps) < len(others) or entry.step <= max(steps):
        return entry
    return msgspec.structs.replace(entry, written=time, t=max(entry.t, newest.t))


def _unclear(event: CheckpointEvent) -> tuple[str, str] | None:
    if event.verdict in {None, "writing"} or (event.understood and event.verdict != "opaque"):
        return None
    return str(event.verdict), event.reason or str(event.verdict)


def _with_history(entry: KnownCheckpoint, before: KnownCheckpoint) -> KnownCheckpoint:
    """Keep what was seen of an entry that is not understood before it was written again."""
    same = _is_of_one_time(entry, before)
    again = not same and (entry.size_bytes or 0.0) <= (before.size_bytes or 0.0)
    entry = msgspec.structs.replace(
        entry,
        before_t=before.t if again else before.before_t,
        kept=before.kept if same and entry.size_bytes == before.size_bytes else None,
        size_before=before.size_before if same or before.unclear is None else before.size_bytes,
        was_so_before=before.was_so_before or (not same and before.is_state) or (again and _lacks_its_end(before)),
    )
    if entry.unclear is None or not same:
        return entry
    kept = before.is_state and before.unclear is not None
    return msgspec.structs.replace(
        entry,
        is_state=kept,
        bad=before.bad or entry.bad,
        left=before.left or entry.left,
    )


def _lacks_its_end(known: KnownCheckpoint) -> bool:
    return known.unclear is not None and known.unfinished


def _is_unchanged(before: KnownCheckpoint, now: KnownCheckpoint) -> bool:
    if now.mtime is not None or before.mtime is not None:
        return _is_of_one_time(before, now)
    return now.step is not None and (before.step, before.size_bytes) == (now.step, now.size_bytes)


def _is_of_one_time(one: KnownCheckpoint, other: KnownCheckpoint) -> bool:
    return one.mtime == other.mtime and (None in {one.changed, other.changed} or one.changed == other.changed)


def is_same_save(before: KnownCheckpoint, event: CheckpointEvent, created_wall: float) -> bool:
    """Return whether the event tells of the save that is known already: a rescan reports unchanged ones again."""
    if before.mtime != event.mtime:
        return False
    told = before.changed is not None and event.changed is not None and has_wrong_time(event, created_wall)
    return not told or before.changed == event.changed


def _seen_late(index: CheckpointIndex, event: CheckpointEvent, created_wall: float) -> str | None:
    """Return why a checkpoint does not count that was written before the run went back, and is seen only now."""
    if index.went_back is None or event.mtime is None or created_wall <= 0.0:
        return None
    older, launch_t, why = index.went_back
    t = _written_t(event, created_wall)
    written = created_wall + t if has_wrong_time(event, created_wall) else event.mtime
    return why if written > older and t < launch_t else None


def _written_t(event: CheckpointEvent, created_wall: float) -> float:
    """Return the run time at which it was written; a failure after that is not in it.

    By its modification time, if that is after the last look that did not see it; else by the time of its last change,
    or when it was seen, so that it never counts as older than it is.
    """
    if event.mtime is None or created_wall <= 0.0:
        return event.t
    t = event.mtime - created_wall
    if not _is_set_later(event, created_wall) and (t >= 0.0 or origin_of_event(event, created_wall) != "run"):
        return max(0.0, min(event.t, t))
    earliest = (0.0 if event.absent_t is None else event.absent_t) - CLOCK_SLACK_S
    changed_t = None if event.changed is None else event.changed - created_wall
    return event.t if changed_t is None or changed_t < earliest else max(0.0, min(event.t, changed_t))


def _is_set_later(event: CheckpointEvent, created_wall: float) -> bool:
    """Return whether its modification time is before a look that did not see it."""
    if event.mtime is None or event.absent_t is None:
        return False
    return event.mtime - created_wall < event.absent_t - CLOCK_SLACK_S
