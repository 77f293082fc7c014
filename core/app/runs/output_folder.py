"""Checkpoints and sample images in a run's output folder, by the names that its preset gives them."""

from pathlib import Path

from ...checkpoints import list_checkpoints, state_in
from ...model.checkpoints.checkpoint import Checkpoint, CheckpointListing
from ...model.checkpoints.sample import Sample
from ...model.preset import Preset
from ...model.run import RunSpec
from ...sense.files.sample_images import find_samples


def list_run_checkpoints(spec: RunSpec, preset: Preset) -> CheckpointListing:
    """Newest first; none if there is no folder (yet). Raises OSError."""
    if spec.output_dir is None or not Path(spec.output_dir).is_dir():
        return CheckpointListing(checkpoints=(), resume_point=None)
    return list_checkpoints(Path(spec.output_dir), preset.checkpoint_globs, layout=preset.layout)


def list_run_state(spec: RunSpec, preset: Preset, since_wall: float) -> tuple[Checkpoint, ...]:
    """Whatever was written after that time and may be the state of a training, of any make. Raises OSError."""
    if spec.output_dir is None or not Path(spec.output_dir).is_dir():
        return ()
    found = state_in(Path(spec.output_dir), preset.checkpoint_globs, layout=preset.layout)
    return tuple(checkpoint for checkpoint in found if checkpoint.mtime >= since_wall)


def find_run_samples(spec: RunSpec, preset: Preset) -> tuple[Sample, ...]:
    """Newest first; none if there is no folder (yet). Raises OSError."""
    return () if spec.output_dir is None else find_samples(Path(spec.output_dir), preset.sample_globs)
