"""Checks of a run that is over: is everything saved, are the checkpoints valid, is there a backup."""

import math
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...checkpoints.inspection import verify
from ...model.checkpoint import Checkpoint, Listing
from ...model.run import LIVE_STATES, RunSpec, place_of
from ...model.story import RunStory
from ...model.text import size, typed
from ...store.history_reader import HistoryReader
from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ...views.checkpoint_list import how_to_resume
from ...views.quantity import plural
from ..plan.specs import definitions_of
from ..runs.known_runs import find_run
from ..runs.output_folder import list_run_checkpoints
from .check import Check, failed, passed, warned

DEEP = 3
"""Number of newest checkpoints that are read completely; of older ones only the structure is read."""
KEEP = 3
TRACEBACK = b"Traceback (most recent call last)"
TAIL_BYTES = 4096
END_SHARE = 0.1
"""Share of an attempt's time before its end in which a checkpoint counts as one of the end."""


class After(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended. ``losses``: mean loss of the stretches of the run, oldest first."""

    spec: RunSpec
    story: RunStory
    listing: Listing
    losses: tuple[float, ...] = ()


def checks_after(name: str | None, warn: Callable[[str], None]) -> list[Check]:
    """All of these checks, in the order in which a person would look. Reads every byte of the newest checkpoints."""
    after = read_after(find_run(name, warn))
    story, there = after.story, after.listing.checkpoints
    complete, checkpoints = check_checkpoints(after)
    found = {
        "ended": check_ended(after),
        "log": check_log(after),
        "loss": check_loss(after),
        "checkpoints": checkpoints,
    }
    own = [c for c in there if story.origin(c) != "earlier"]
    of_run = any(story.origin(c) != "earlier" for c in complete)
    unknown = None if of_run else next((c for c in own if not c.understood), None)
    if unknown is None:
        found["final model"] = check_final(after, complete)
    else:
        untold = "whether it is whole cannot be told: it is of an unknown format"
        how = "load it with its trainer before you delete anything"
        found["final model"] = warned(f"{unknown.name} is the newest: {untold}", how)
    kept = f"{plural(len(there), 'checkpoint')}, {size(sum(c.size_bytes for c in there))}"
    prune = typed("checkpoints prune", _folder(after.spec), "--keep", str(KEEP))
    shows = f"{prune} shows what could be deleted; --apply deletes it"
    found["kept"] = passed(kept) if len(complete) <= KEEP else warned(kept, shows)
    if unknown is None and complete:
        newest, compare = complete[0], typed("checkpoints compare", complete[-1].path, complete[0].path)
        elsewhere = f"{typed('checkpoints backup', newest.path, 'FOLDER')} (on another disk)"
        found["backup"] = warned(f"whether {newest.name} has a copy elsewhere is unknown", elsewhere)
        several = f"test the newest ones; how far they differ: {compare}"  # only a person can judge it
        found["quality"] = passed("one checkpoint; test it" if len(complete) < 2 else several)
    lost = plural(sum(i.lost_steps or 0 for i in story.incidents), "step")
    told = f"{plural(len(story.incidents), 'incident')}, {lost} lost, profile {story.profile or 'none'}"
    whole = f"everything in one file: {typed('report', after.spec.id)}"
    found["record"] = passed(f"{story.t / 3600:.1f} h, {told}; {whole}")
    return [msgspec.structs.replace(check, name=name) for name, check in found.items()]


def _folder(spec: RunSpec) -> str:
    return spec.output_dir or spec.cwd


def read_after(run: RunDirectory) -> After:
    spec, story = run.load_spec(), load_story(run.journal)
    with HistoryReader(run.history) as history:
        series = history.series("progress.loss", 0.0, story.t + 1.0, 50)
    listing = list_run_checkpoints(spec, definitions_of(spec).preset_of(spec))
    return After(spec=spec, story=story, listing=listing, losses=tuple(float(point[2]) for point in series))


def check_ended(after: After) -> Check:
    story, run = after.story, after.spec.id
    if story.state in LIVE_STATES:
        return warned(f"it is {story.state}", f"these checks are for a run that is over; see: {typed('status', run)}")
    if story.state != "finished":
        why = f": {story.state_reason}" if story.state_reason else ""
        return warned(f"{story.state}{why}", f"continue it with: {how_to_resume(story, (run,))}")
    if story.state_why.kind == "unproven":
        return warned(f"finished: {story.state_reason}", "read the end of its log")
    return passed(f"finished, in {plural(len(story.attempts), 'attempt')}")


def check_log(after: After) -> Check:
    log = next((a.log for a in reversed(after.story.attempts) if a.log), None)
    if log is None:
        return warned("no attempt left a log", "was it started?")
    try:
        with Path(log).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read(TAIL_BYTES)
    except OSError as error:
        return failed(f"{log}: {error.strerror}", "was it deleted?")
    if size == 0:
        return warned(f"{log} is empty", f"does the trainer write elsewhere? See {place_of(after.spec, 'logs')}")
    if TRACEBACK in tail:
        return warned(f"{log} ends with a traceback", typed("diagnose", log))
    if not tail.endswith((b"\n", b"\r")):
        return warned(f"{log} ends in the middle of a line", "the end may have been abrupt, or the disk full")
    return passed(f"{log}, {size / 1e6:.1f} MB, complete")


def check_loss(after: After) -> Check:
    losses = after.losses
    if len(losses) < 2:
        return warned("unknown: the log shows too few values", "see the log")
    first, last = losses[0], losses[-1]
    if not math.isfinite(last):
        return failed(f"ended at {last}", "resume from a checkpoint before that, with half the learning rate")
    if last >= first:
        return warned(f"did not fall: {first:.4g} at first, {last:.4g} at the end", "lower the learning rate?")
    return passed(f"fell from {first:.4g} to {last:.4g}")


def check_checkpoints(after: After) -> tuple[list[Checkpoint], Check]:
    """Verify every checkpoint. Returns the complete ones, newest first."""
    folder = _folder(after.spec)
    if not after.listing.checkpoints:
        remedy = f"is {place_of(after.spec, 'output_dir')} where the trainer saves?"
        return [], failed(f"none in {folder}", remedy)
    verified = [verify(Path(c.path), deep=n < DEEP) for n, c in enumerate(after.listing.checkpoints)]
    complete = [c for c in verified if c.verdict == "complete"]
    damaged = [c for c in verified if c.verdict != "complete" and c.understood]
    unclear = [c for c in verified if not c.understood]
    if damaged:
        named = "; ".join(f"{c.name}: {c.verdict}" + (f" ({c.reason})" if c.reason else "") for c in damaged[:4])
        rest = "the others are complete" if complete else "none is complete"
        remedy = f"do not use them; {rest}: {typed('checkpoints list', folder)}"
        make = failed if verified[0] in damaged else warned
        return complete, make(f"{len(damaged)} of {len(verified)} are not complete: {named}", remedy)
    if unclear:
        named = "; ".join(f"{c.name}: {c.reason}" for c in unclear[:4])
        found = f"{len(unclear)} of {len(verified)} are not understood: {named}"
        return complete, warned(found, "keep them; only the trainer can tell whether they are whole")
    read = min(DEEP, len(verified))
    return complete, passed(f"all {len(verified)} are complete; every byte of the newest {read} was read")


def check_final(after: After, complete: list[Checkpoint]) -> Check:
    """The last step is in a checkpoint. Both are counted in the unit and from the beginning of the last attempt."""
    last = next((a for a in reversed(after.story.attempts) if a.last_step is not None), None)
    complete = [c for c in complete if after.story.origin(c) != "earlier"]
    if not complete:
        return failed("no complete checkpoint of this run", "resume, and let it save")
    reached = None if last is None else last.last_step
    newest = complete[0]
    if last is not None:  # a copy of an earlier best state may be the newest file
        of_last = [c for c in complete if c.step is not None and after.story.written_t(c) >= last.t]
        newest = max(of_last, key=lambda c: c.step or 0, default=newest)
    if newest.step is None or reached is None:
        return passed(f"{newest.name} is the newest complete one; its step is unknown")
    if newest.step >= reached:
        return passed(f"{newest.name}, step {newest.step}")
    # The log may count another unit: batches. What was written as the attempt ended holds its last step in any unit.
    late = False
    if newest.step > 0 and reached % newest.step == 0 and last is not None and last.ended_t is not None:
        late = after.story.written_t(newest) >= last.ended_t - END_SHARE * (last.ended_t - last.t)
    if newest.step >= reached // after.story.stride or late:
        return passed(f"{newest.name}, step {newest.step} ({reached} printed), written at the end")
    return warned(
        f"{newest.name} holds step {newest.step}, the run reached {reached}",
        "the last steps are not in any checkpoint: does the trainer save at its end?",
    )
