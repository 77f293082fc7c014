"""Checkpoints and sample images in a run's output folders, by the names that its preset gives them."""

from collections.abc import Callable
from pathlib import Path

from ...checkpoints import list_checkpoints, state_in
from ...model.checkpoint import Checkpoint, CheckpointListing, Origin, Sample, age_order, newest_resumable
from ...model.other_files import says_state
from ...model.output_place import is_below
from ...model.preset import Preset
from ...model.run import RunSpec
from ...sense.files.checkpoint_values import find_samples


def list_run_checkpoints(spec: RunSpec, preset: Preset) -> CheckpointListing:
    """Newest first, of all folders that the run saves to; none if there is no folder (yet). Raises OSError."""
    there = _folders(spec)
    found = [list_checkpoints(folder, preset.checkpoint_globs, layout=preset.layout) for folder in there]
    if len(found) == 1:
        return found[0] if not spec.outputs else _without_folders(found[0].checkpoints, spec)
    return _without_folders(tuple(checkpoint for listing in found for checkpoint in listing.checkpoints), spec)


def newest_to_name(spec: RunSpec, preset: Preset) -> str | None:
    """The path of what "the newest" means: the resume point, else the newest state that only its trainer can judge.

    Raises OSError.
    """
    point = list_run_checkpoints(spec, preset).resume_point
    if point is not None:
        return point
    found = [
        c
        for folder in _folders(spec)
        for c in state_in(folder, preset.checkpoint_globs, layout=preset.layout)
        if not c.understood and not c.unfinished and not any(is_below(each, c.path) for each in spec.output_folders)
    ]
    newest = max(
        found,
        key=lambda c: (says_state(c.name), age_order(c.name, c.mtime, c.step, c.epoch)),
        default=None,
    )
    return None if newest is None else newest.path


def _without_folders(found: tuple[Checkpoint, ...], spec: RunSpec) -> CheckpointListing:
    """One listing of several folders. A folder that holds another one of them is no checkpoint."""
    kept = [c for c in found if not any(is_below(folder, c.path) for folder in spec.output_folders)]
    ordered = sorted(kept, key=lambda c: age_order(c.name, c.mtime, c.step, c.epoch), reverse=True)
    resume = newest_resumable(ordered)
    return CheckpointListing(checkpoints=tuple(ordered), resume_point=None if resume is None else resume.path)


def list_run_state(spec: RunSpec, preset: Preset, origin: Callable[[Checkpoint], Origin]) -> tuple[Checkpoint, ...]:
    """What may be the state of a training, in any format, and of this run by ``origin``. Raises OSError."""
    found = [c for folder in _folders(spec) for c in state_in(folder, preset.checkpoint_globs, layout=preset.layout)]
    return tuple(
        checkpoint
        for checkpoint in found
        if not any(is_below(folder, checkpoint.path) for folder in spec.output_folders)
        and origin(checkpoint) != "earlier"
    )


def _folders(spec: RunSpec) -> list[Path]:
    return [Path(folder) for folder in spec.output_folders if Path(folder).is_dir()]


def find_run_samples(spec: RunSpec, preset: Preset) -> tuple[Sample, ...]:
    """Newest first; none if there is no folder (yet). Raises OSError."""
    for folder in spec.output_folders:
        if found := find_samples(Path(folder), preset.sample_globs):
            return found
    return ()
