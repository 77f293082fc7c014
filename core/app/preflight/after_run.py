"""Checks of a run that is over: is everything saved, are the checkpoints valid, is there a backup."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ...checkpoints import verify
from ...model.attempt import AttemptStory
from ...model.checkpoint import Checkpoint, CheckpointListing
from ...model.progress import Progress
from ...model.run import LIVE_STATES, RunSpec, place_of
from ...model.story import RunStory, how_to_resume
from ...model.suggestion import typed
from ...model.text import size
from ...store.history import HistoryReader
from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ...views.quantity import plural
from ..plan.launch_plan import plan_launch
from ..plan.specs import definitions_of
from ..runs.known_runs import find_run_to_read
from ..runs.output_folder import list_run_checkpoints
from .check import Check, failed, passed, warned

DEEP = 3
"""Number of newest checkpoints that are read completely; of older ones only the structure is read."""
KEEP = 3
ACCUMULATION = "gradient_accumulation_steps"
"""Its name unless the preset has another."""
TRACEBACK = b"Traceback (most recent call last)"
TAIL_BYTES = 4096


class After(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended. ``losses``: mean loss of the stretches of the run, oldest first.

    ``accumulation``: batches whose gradients make one optimizer step, by the trainer's settings; None if not set.
    """

    spec: RunSpec
    story: RunStory
    listing: CheckpointListing
    losses: tuple[float, ...] = ()
    accumulation: int | None = None

    @property
    def folder(self) -> str:
        """Where the checkpoints are."""
        return self.spec.output_dir or self.spec.cwd


def checks_after(name: str | None, warn: Callable[[str], None]) -> list[Check]:
    """The checks of a run that is over, found by its name."""
    return after_checks(read_after(find_run_to_read(name, warn)))


def read_after(run: RunDirectory) -> After:
    """Read journal, history and checkpoint folder."""
    spec, story = run.load_spec(), load_story(run.journal)
    with HistoryReader(run.history) as history:
        series = history.series("progress.loss", 0.0, story.t + 1.0, 50)
    return After(
        spec=spec,
        story=story,
        listing=list_run_checkpoints(spec, definitions_of(spec).preset_of(spec)),
        losses=tuple(float(point[2]) for point in series),
        accumulation=accumulation_of(spec),
    )


def accumulation_of(spec: RunSpec) -> int | None:
    """The batches whose gradients make one step, by the trainer's config and command; None if it is not set."""
    try:
        plan = plan_launch(spec)
    except OSError:
        return None
    named = "" if plan.preset.length is None else plan.preset.length.accumulation
    found = plan.number(named or ACCUMULATION)  # a preset names none if its trainer prints a step for each batch
    return None if found is None else int(found)


NOT_TOLD = "whether it is whole cannot be told: it is of an unknown format"
HOW_TO_TELL = "load it with its trainer before you delete anything"


def after_checks(after: After) -> list[Check]:
    """All of these checks, in the order in which a person would look. Reads every byte of the newest checkpoints."""
    checks = [check_ended(after), check_log(after), check_loss(after)]
    complete, checkpoints_check = check_checkpoints(after)
    of_run = [c for c in complete if after.story.origin(c) != "earlier"]
    unknown = next(
        (c for c in after.listing.checkpoints if not c.understood and after.story.origin(c) != "earlier"), None
    )
    if unknown is not None and not of_run:
        final = warned("final model", f"{unknown.name} is the newest: {NOT_TOLD}", HOW_TO_TELL)
        return [*checks, checkpoints_check, final, check_kept(after, complete), check_record(after)]
    checks += [checkpoints_check, check_final(after, complete), check_kept(after, complete), check_backup(complete)]
    checks += [check_quality(complete), check_record(after)]
    return checks


def check_ended(after: After) -> Check:
    """The trainer finished by itself."""
    story = after.story
    if story.state in LIVE_STATES:
        return warned(
            "ended",
            f"it is {story.state}",
            f"these checks are for a run that is over; see: {typed('status', after.spec.id)}",
        )
    if story.state != "finished":
        why = f": {story.state_reason}" if story.state_reason else ""
        return warned("ended", f"{story.state}{why}", f"continue it with: {how_to_resume(story, (after.spec.id,))}")
    number = len(story.attempts)
    if story.state_why.kind == "unproven":
        return warned("ended", f"finished: {story.state_reason}", "read the end of its log")
    return passed("ended", f"finished, in {number} {'attempt' if number == 1 else 'attempts'}")


def check_log(after: After) -> Check:
    """The last log is there and is not cut off."""
    log = next((a.log for a in reversed(after.story.attempts) if a.log), None)
    if log is None:
        return warned("log", "no attempt left a log", "was it started?")
    try:
        with Path(log).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read(TAIL_BYTES)
    except OSError as error:
        return failed("log", f"{log}: {error.strerror}", "was it deleted?")
    if size == 0:
        return warned("log", f"{log} is empty", f"does the trainer write elsewhere? See {place_of(after.spec, 'logs')}")
    if TRACEBACK in tail:
        return warned("log", f"{log} ends with a traceback", typed("diagnose", log))
    if not tail.endswith((b"\n", b"\r")):
        return warned("log", f"{log} ends in the middle of a line", "the end may have been abrupt, or the disk full")
    return passed("log", f"{log}, {size / 1e6:.1f} MB, complete")


def check_loss(after: After) -> Check:
    """The loss fell, and is finite."""
    losses = after.losses
    if len(losses) < 2:
        return warned("loss", "unknown: the log shows too few values", "see the log")
    first, last = losses[0], losses[-1]
    if not math.isfinite(last):
        return failed("loss", f"ended at {last}", "resume from a checkpoint before that, with half the learning rate")
    if last >= first:
        return warned("loss", f"did not fall: {first:.4g} at first, {last:.4g} at the end", "lower the learning rate?")
    return passed("loss", f"fell from {first:.4g} to {last:.4g}")


def check_checkpoints(after: After) -> tuple[list[Checkpoint], Check]:
    """Verify every checkpoint. Returns the complete ones, newest first."""
    listing = after.listing
    if not listing.checkpoints:
        return [], failed(
            "checkpoints",
            f"none in {after.folder}",
            f"is {place_of(after.spec, 'output_dir')} where the trainer saves?",
        )
    verified = [verify(Path(c.path), deep=n < DEEP) for n, c in enumerate(listing.checkpoints)]
    complete = [c for c in verified if c.verdict == "complete"]
    damaged = [c for c in verified if c.verdict != "complete" and c.understood]
    if damaged:
        named = "; ".join(f"{c.name}: {c.verdict}" + (f" ({c.reason})" if c.reason else "") for c in damaged[:4])
        make = failed if verified[0] in damaged else warned
        rest = "the others are complete" if complete else "none is complete"
        remedy = f"do not use them; {rest}: {typed('checkpoints list', str(after.folder))}"
        return complete, make("checkpoints", f"{len(damaged)} of {len(verified)} are not complete: {named}", remedy)
    unclear = [c for c in verified if not c.understood]
    if unclear:
        named = "; ".join(f"{c.name}: {c.reason}" for c in unclear[:4])
        found = f"{len(unclear)} of {len(verified)} are not understood: {named}"
        return complete, warned("checkpoints", found, "keep them; only the trainer can tell whether they are whole")
    read = min(DEEP, len(verified))
    return complete, passed(
        "checkpoints", f"all {len(verified)} are complete; every byte of the newest {read} was read"
    )


def check_final(after: After, complete: list[Checkpoint]) -> Check:
    """The last step is in a checkpoint. Both are counted in the unit and from the beginning of the last attempt."""
    last = next((a for a in reversed(after.story.attempts) if a.last_step is not None), None)
    complete = [c for c in complete if after.story.origin(c) != "earlier"]
    if not complete:
        return failed("final model", "no complete checkpoint of this run", "resume, and let it save")
    reached = None if last is None else last.last_step
    newest = complete[0]
    if last is not None:  # a copy of an earlier best state may be the newest file
        of_last = [c for c in complete if c.step is not None and after.story.written_t(c) >= last.t]
        newest = max(of_last, key=lambda c: c.step or 0, default=newest)
    if newest.step is None or reached is None:
        return passed("final model", f"{newest.name} is the newest complete one; its step is unknown")
    if newest.step >= reached:
        return passed("final model", f"{newest.name}, step {newest.step}")
    strides = _strides(after, newest.step, reached, at_end=last is not None and _is_of_the_end(after, newest, last))
    per_step = next((n for n in strides if newest.step >= _fewest_steps(reached, n, after.story.progress)), None)
    if per_step is not None:
        found = f"{newest.name}, step {newest.step} ({reached} printed, {per_step} for each step)"
        return passed("final model", found)
    return warned(
        "final model", f"{newest.name} holds step {newest.step}, the run reached {reached}",
        "the last steps are not in any checkpoint: does the trainer save at its end?",
    )  # fmt: skip


def _fewest_steps(printed: int, per_step: int, progress: Progress) -> int:
    """Optimizer steps of so many printed batches; fewer if each epoch drops the batches that make no whole step."""
    whole = printed // per_step
    total, epochs = progress.run_total_steps, progress.total_epochs
    if not total or not epochs:
        return whole
    in_epoch = total // epochs
    return min(whole, printed // in_epoch * (in_epoch // per_step)) if in_epoch else whole


END_SHARE = 0.1
"""Share of an attempt's time before its end in which a checkpoint counts as one of the end."""


def _is_of_the_end(after: After, found: Checkpoint, last: AttemptStory) -> bool:
    """Whether it was written as the attempt ended: then it holds the last step, in whatever unit it is counted."""
    return last.ended_t is not None and after.story.written_t(found) >= last.ended_t - END_SHARE * (
        last.ended_t - last.t
    )


def _strides(after: After, stored: int, reached: int, *, at_end: bool) -> Iterator[int]:
    """How many printed counts may make one stored step, surest first.

    As two checkpoints of the run showed it; as the trainer's settings have it. Neither of them may be known: then any
    whole number may be it for the only checkpoint, and for one of the run's end.
    """
    if after.story.stride > 1:
        yield after.story.stride
    if after.accumulation is not None and after.accumulation > 0:
        yield after.accumulation
    only = len({c.step for c in after.listing.checkpoints}) == 1
    if stored > 0 and (only or at_end) and reached % stored == 0:
        yield reached // stored


def check_kept(after: After, complete: list[Checkpoint]) -> Check:
    """Three checkpoints are enough for most runs."""
    taken = size(sum(c.size_bytes for c in after.listing.checkpoints))
    found = f"{plural(len(after.listing.checkpoints), 'checkpoint')}, {taken}"
    if len(complete) <= KEEP:
        return passed("kept", found)
    command = typed("checkpoints prune", str(after.folder), "--keep", str(KEEP))
    return warned("kept", found, f"{command} shows what could be deleted; --apply deletes it")


def check_backup(complete: list[Checkpoint]) -> Check:
    """The newest complete checkpoint has a copy elsewhere."""
    if not complete:
        return failed("backup", "there is no complete checkpoint to back up", "see above")
    remedy = f"{typed('checkpoints backup', complete[0].path, 'FOLDER')} (on another disk)"
    return warned("backup", f"whether {complete[0].name} has a copy elsewhere is unknown", remedy)


def check_quality(complete: list[Checkpoint]) -> Check:
    """Reminders for what only a person can judge."""
    if not complete:
        return failed("quality", "there is no complete checkpoint", "see above")
    if len(complete) < 2:
        return passed("quality", "one checkpoint; test it")
    first, last = complete[-1].path, complete[0].path
    command = typed("checkpoints compare", first, last)
    return passed("quality", f"test the newest ones; how far they differ: {command}")


def check_record(after: After) -> Check:
    """Duration and settings, for the next run."""
    story = after.story
    hours = story.t / 3600
    lost = sum(i.lost_steps or 0 for i in story.incidents)
    told = f"{plural(len(story.incidents), 'incident')}, {plural(lost, 'step')} lost"
    found = f"{hours:.1f} h, {told}, profile {story.profile or 'none'}"
    return passed("record", f"{found}; everything in one file: {typed('report', after.spec.id)}")
