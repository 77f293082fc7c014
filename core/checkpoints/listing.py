"""The checkpoints of one output directory, and what else in it may be the state of a training."""

from collections.abc import Sequence
from pathlib import Path

from ..model.checkpoints.checkpoint import Checkpoint, CheckpointListing, age_order, newest_resumable
from ..model.checkpoints.checkpoint_names import is_part, is_temporary
from ..model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ..model.checkpoints.other_files import is_other_file, is_other_folder
from ..model.text.path_globs import matches
from .formats.state_file import STATE_FILES
from .inspection import inspect, inspect_any
from .layouts.recognition import is_checkpoint_directory
from .unknown_state import is_named_state


def list_checkpoints(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> CheckpointListing:
    """Checkpoints directly in ``directory``, newest first, with quick verdicts.

    ``globs``: only names that match one of them (``checkpoint_globs`` of a preset); empty = all known names, and what
    is a checkpoint of an unknown make by its own name or first bytes (verdict ``opaque``). ``layout``: as for
    ``inspect``. Left out: links out of the directory, unfinished names (``*.tmp``, ``tmp-checkpoint-500``), parts of
    other checkpoints and everything that is not a checkpoint. Raises FileNotFoundError, NotADirectoryError,
    PermissionError for the directory itself.
    """
    found: list[Checkpoint] = []
    for path in _entries(directory, globs):
        if globs:
            checkpoint = inspect_any(path, layout=layout, named=True)
        else:
            checkpoint = inspect(path, layout=layout) if _may_be_checkpoint(path) else None
            if checkpoint is None and _may_be_unknown(path):
                other = _readable(path, layout)
                checkpoint = other if other is not None and _is_told(other) else None
        if checkpoint is not None:
            found.append(checkpoint)
    found.sort(key=_age_order, reverse=True)
    resume = newest_resumable(found)
    return CheckpointListing(checkpoints=tuple(found), resume_point=None if resume is None else resume.path)


def not_understood(
    directory: Path, globs: Sequence[str] = (), *, layout: str | None = None, since_wall: float | None = None
) -> tuple[Checkpoint, ...]:
    """What in an output directory may be the state of a training but is not understood, newest first.

    Opaque checkpoints, folders that are torn by rules that their trainer may not follow, and files and folders of an
    unknown make, whatever their names. ``since_wall``: only what was written after that time (seconds since the epoch).
    Raises as ``state_in``.
    """
    return tuple(
        checkpoint
        for checkpoint in state_in(directory, globs, layout=layout)
        if not checkpoint.understood and (since_wall is None or checkpoint.mtime >= since_wall)
    )


def state_in(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> tuple[Checkpoint, ...]:
    """All checkpoints in an output directory, and all that may be state of an unknown make, newest first.

    Raises as ``list_checkpoints``, and OSError for an entry that cannot be read.
    """
    found = [
        checkpoint
        for path in _entries(directory, globs)
        if (globs or _may_be_checkpoint(path) or _may_be_unknown(path))
        and (checkpoint := inspect_any(path, layout=layout, named=bool(globs))) is not None
    ]
    return tuple(sorted(found, key=_age_order, reverse=True))


def parts_in(directory: Path) -> tuple[Path, ...]:
    """Files that lie beside loose weights and belong to them: optimizer, scheduler, random states, state files."""
    names = [path for path in _entries(directory, ()) if is_part(path.name) or path.name in STATE_FILES]
    return tuple(path for path in names if path.is_file())


def _entries(directory: Path, globs: Sequence[str]) -> list[Path]:
    real = directory.resolve(strict=True)
    return [
        path
        for path in sorted(directory.iterdir())
        if not is_temporary(path.name) and matches(path.name, globs) and _is_inside(path, real)
    ]


def _is_told(found: Checkpoint) -> bool:
    """Whether it is a checkpoint by its bytes or its name alone, without knowing who wrote it."""
    return not found.unknown_make or is_named_state(found)


def _readable(path: Path, layout: str | None) -> Checkpoint | None:
    try:
        return inspect_any(path, layout=layout)
    except OSError:
        return None


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


def _may_be_unknown(path: Path) -> bool:
    return not (is_other_folder(path.name) if path.is_dir() else is_other_file(path.name))
