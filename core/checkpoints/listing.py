"""The checkpoints of one output directory, and what else in it may be the state of a training."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..model.checkpoints.checkpoint import Checkpoint, CheckpointListing, age_order, newest_resumable
from ..model.checkpoints.checkpoint_names import is_part, is_temporary
from ..model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ..model.checkpoints.other_files import (
    is_companion,
    is_other_file,
    is_other_folder,
    is_text,
    kind_of_name,
    says_state,
)
from ..model.text.path_globs import matches
from .formats.state_file import STATE_FILES
from .inspection import inspect, inspect_any
from .layouts.recognition import is_checkpoint_directory
from .unknown_state import is_named_state

ALIKE_AT_MOST = 64
"""Most entries of an unknown make that are examined of those whose names differ in their numbers only."""


def list_checkpoints(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> CheckpointListing:
    """Checkpoints directly in ``directory``, newest first, with quick verdicts.

    ``globs``: only names that match one of them (``checkpoint_globs`` of a preset); empty = all known names, and what
    is a checkpoint of an unknown make by its name, first bytes or series (``opaque``). ``layout``: as for
    ``inspect``. Left out: links out of the directory, unfinished names (``*.tmp``, ``tmp-checkpoint-500``), parts of
    other checkpoints and everything that is not a checkpoint. Raises FileNotFoundError, NotADirectoryError,
    PermissionError for the directory itself.
    """
    entries = _entries(directory, globs)
    if globs:
        every = [inspect_any(path, layout=layout, named=True) for path in entries]
    else:
        every = [inspect(path, layout=layout) for path in entries if _may_be_checkpoint(path)]
        unknown = [path for path in entries if not _may_be_checkpoint(path) and _may_be_unknown(path)]
        every += _told(_look_at(unknown, partial(_readable, layout=layout)), alone=not any(every))
    found = sorted((checkpoint for checkpoint in every if checkpoint is not None), key=_age_order, reverse=True)
    resume = newest_resumable(found)
    return CheckpointListing(checkpoints=tuple(found), resume_point=None if resume is None else resume.path)


def not_understood(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> tuple[Checkpoint, ...]:
    """What in an output directory may be the state of a training but is not understood, newest first.

    Opaque checkpoints, folders that are torn by rules that their trainer may not follow, and files and folders of an
    unknown make, whatever their names. Raises as ``state_in``.
    """
    return tuple(checkpoint for checkpoint in state_in(directory, globs, layout=layout) if not checkpoint.understood)


def state_in(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> tuple[Checkpoint, ...]:
    """All checkpoints in an output directory, and all that may be state of an unknown make, newest first.

    Raises as ``list_checkpoints``, and OSError for an entry that cannot be read.
    """
    entries = _entries(directory, globs)
    look = partial(inspect_any, layout=layout, named=bool(globs))
    plain = [path for path in entries if globs or _may_be_checkpoint(path)]
    unknown = [] if globs else [path for path in entries if not _may_be_checkpoint(path) and _may_be_unknown(path)]
    found = [checkpoint for path in plain if (checkpoint := look(path)) is not None]
    return tuple(sorted([*found, *_look_at(unknown, look)], key=_age_order, reverse=True))


def _look_at(paths: list[Path], look: Callable[[Path], Checkpoint | None]) -> list[Checkpoint]:
    """Examine entries of other names. Of many that differ in their numbers only, the newest, if no make is known.

    A folder of ten thousand arrays is data or samples; the newest of them tell as much as all.
    """
    kinds: dict[str, list[Path]] = {}
    for path in paths:
        kinds.setdefault(kind_of_name(path.name), []).append(path)
    found: list[Checkpoint] = []
    for alike in kinds.values():
        newest = sorted(alike, key=_mtime, reverse=True) if len(alike) > ALIKE_AT_MOST else alike
        seen = [look(path) for path in newest[:ALIKE_AT_MOST]]
        if any(one is not None and not one.unknown_make for one in seen):
            seen += [look(path) for path in newest[ALIKE_AT_MOST:]]
        found += [one for one in seen if one is not None]
    return found


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


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


def _told(found: list[Checkpoint], *, alone: bool) -> list[Checkpoint]:
    """Those that are checkpoints by their bytes or names alone, without knowing who wrote them.

    Where there is nothing else (``alone``), files whose names speak of a state and series of saves; else series of
    text.
    """
    kinds = Counter(kind_of_name(one.name) for one in found)
    repeated = [one for one in found if kinds[kind_of_name(one.name)] > 1]
    named = [one for one in found if not Path(one.path).is_dir() and says_state(one.name)]
    saves = [one for one in found if one in repeated or one in named if not is_companion(one.name)]
    told = [one for one in found if not one.unknown_make or is_named_state(one)]
    if told or not alone:
        return told
    return [one for one in saves if not is_text(one.name)] or [one for one in repeated if is_text(one.name)]


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
