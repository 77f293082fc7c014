"""The checkpoints of one output directory."""

from collections.abc import Sequence
from pathlib import Path

from ..model.checkpoints.checkpoint import Checkpoint, CheckpointListing, age_order, newest_complete
from ..model.checkpoints.checkpoint_names import is_part, is_temporary
from ..model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ..model.text.path_globs import matches
from .inspection import inspect
from .layouts.recognition import is_checkpoint_directory


def list_checkpoints(directory: Path, globs: Sequence[str] = ()) -> CheckpointListing:
    """Checkpoints directly in ``directory``, newest first, with quick verdicts.

    ``globs``: only names that match one of them (``checkpoint_globs`` of a preset); empty = all known names.
    Left out: links out of the directory, unfinished names (``*.tmp``, ``tmp-checkpoint-500``), parts of other
    checkpoints and everything that is not a checkpoint. Raises FileNotFoundError, NotADirectoryError, PermissionError
    for the directory itself.
    """
    real = directory.resolve(strict=True)
    found: list[Checkpoint] = []
    for path in sorted(directory.iterdir()):
        name = path.name
        if is_temporary(name) or not matches(name, globs) or not _is_inside(path, real):
            continue
        if not globs and not _may_be_checkpoint(path):
            continue
        checkpoint = inspect(path)
        if checkpoint is not None:
            found.append(checkpoint)
    found.sort(key=_age_order, reverse=True)
    resume = newest_complete(found)
    return CheckpointListing(checkpoints=tuple(found), resume_point=None if resume is None else resume.path)


def _age_order(checkpoint: Checkpoint) -> tuple[object, ...]:
    """As ``age_order``; a link before its target."""
    order = age_order(checkpoint.name, checkpoint.mtime, checkpoint.step, checkpoint.epoch)
    return (*order, not Path(checkpoint.path).is_symlink(), checkpoint.name)


def _is_inside(path: Path, real: Path) -> bool:
    if not path.is_symlink():
        return True
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return False
    return target != real and target.is_relative_to(real)


def _may_be_checkpoint(path: Path) -> bool:
    """Cheap test by names, before anything is opened: an output directory may hold a hundred thousand images."""
    name = path.name
    if path.is_dir():
        return is_checkpoint_directory(path)
    return has_checkpoint_suffix(name) and not is_part(name)
