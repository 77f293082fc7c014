"""The checkpoints of one output directory, and what else in it may be the state of a training."""

import math
import os
from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..file_walk import leaves
from ..model.checkpoint import Checkpoint, Listing, MemberOverview, Overview, TensorOverview, age_order
from ..model.checkpoint_files import (
    is_checkpoint_directory_name,
    is_companion,
    is_counted_directory_name,
    is_other_file,
    is_other_folder,
    is_part,
    is_temporary,
    is_text,
    kind_of_name,
    says_state,
)
from ..model.checkpoint_suffixes import has_checkpoint_suffix
from ..model.text import matches
from ..processes import status_of
from .formats.byte_range import Damage
from .formats.tensor_file import STATE_FILES, read_json
from .formats.tensors import Mapping, shown
from .inspection import Subject, conclude, inspect_any, subject_of_any
from .layouts.directory import is_checkpoint_directory
from .layouts.layout_reading import Finding, optimizer_in, weights_in
from .unknown_state import is_named_state, is_orbax

ALIKE_AT_MOST = 64
"""Most entries of an unknown make that are examined of those whose names differ in their numbers only."""


def list_checkpoints(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> Listing:
    """Checkpoints directly in ``directory``, newest first, with quick verdicts.

    ``globs``: only names that match one of them (``checkpoint_globs`` of a preset); empty = all known names, and what
    is a checkpoint of an unknown make by its name, first bytes or series (``opaque``). ``layout``: as for
    ``inspect``. Left out: links out of the directory, unfinished names (``*.tmp``, ``tmp-checkpoint-500``), parts of
    other checkpoints and everything that is not a checkpoint. Raises FileNotFoundError, NotADirectoryError,
    PermissionError for the directory itself.
    """
    plain, unknown = _examined(directory, globs, layout, tolerant=True)
    every = plain if globs else [one for one in plain if not one.unknown_make]
    listed = sorted([*every, *_told(unknown, alone=not every)], key=_age_order, reverse=True)
    shown = {one.path for one in listed}
    others = sorted((one for one in (*plain, *unknown) if one.path not in shown), key=_age_order, reverse=True)
    return Listing.of(listed, (), *(one for one in others if not one.understood))


def state_in(directory: Path, globs: Sequence[str] = (), *, layout: str | None = None) -> tuple[Checkpoint, ...]:
    """All checkpoints in an output directory, and all that may be state of an unknown make, newest first.

    Raises as ``list_checkpoints``, and OSError for an entry that cannot be read.
    """
    plain, unknown = _examined(directory, globs, layout, tolerant=False)
    return tuple(sorted((*plain, *unknown), key=_age_order, reverse=True))


def _examined(
    directory: Path, globs: Sequence[str], layout: str | None, *, tolerant: bool
) -> tuple[list[Checkpoint], list[Checkpoint]]:
    """Those of known names, and those of others. ``tolerant``: one of another name that cannot be read is left out."""

    def look(path: Path, *, strict: bool = not tolerant) -> Checkpoint | None:
        with suppress(*() if strict else (OSError,)):
            return inspect_any(path, layout=layout, named=bool(globs))
        return None

    plain: list[Path] = []
    others: list[Path] = []
    for path, is_directory in _entries(directory, globs):
        # by names alone, nothing is opened: the folder may hold a hundred thousand images
        if is_directory:
            known, is_other = is_checkpoint_directory(path), is_other_folder
        else:
            known, is_other = has_checkpoint_suffix(path.name) and not is_part(path.name), is_other_file
        if globs or known:
            plain.append(path)
        elif not is_other(path.name):
            others.append(path)
    return [one for path in plain if (one := look(path, strict=True)) is not None], _look_at(others, look)


def _look_at(paths: list[Path], look: Callable[[Path], Checkpoint | None]) -> list[Checkpoint]:
    """Examine entries of other names. Of many that differ in their numbers only, the newest, if no make is known.

    A folder of ten thousand arrays is data or samples; the newest of them tell as much as all.
    """
    kinds: dict[str, list[Path]] = {}
    for path in paths:
        kinds.setdefault(kind_of_name(path.name), []).append(path)
    found: list[Checkpoint] = []
    for alike in kinds.values():
        if len(alike) > ALIKE_AT_MOST:
            written = {path: 0.0 if (status := status_of(path)) is None else status.st_mtime for path in alike}
            alike.sort(key=written.__getitem__, reverse=True)
        seen = [look(path) for path in alike[:ALIKE_AT_MOST]]
        if any(one is not None and not one.unknown_make for one in seen):
            seen += [look(path) for path in alike[ALIKE_AT_MOST:]]
        found += [one for one in seen if one is not None]
    return found


def parts_in(directory: Path) -> tuple[Path, ...]:
    """Files that lie beside loose weights and belong to them: optimizer, scheduler, random states, state files."""
    found = (path for path, is_directory in _entries(directory, ()) if not is_directory)
    return tuple(path for path in found if (is_part(path.name) or path.name in STATE_FILES) and path.is_file())


def _entries(directory: Path, globs: Sequence[str]) -> list[tuple[Path, bool]]:
    """(path, whether it is a directory) by name, without unfinished names and links that leave the directory."""
    real = directory.resolve(strict=True)
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    return [
        (directory / entry.name, entry.is_dir())
        for entry in found
        if not is_temporary(entry.name)
        and matches(entry.name, globs)
        and not (entry.is_symlink() and leaves(directory / entry.name, real))
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
    unknown = [one for one in found if one.unknown_make or (one.kind == "unknown" and one.unfinished)]
    told = [one for one in found if one not in unknown or is_named_state(Path(one.path))]
    if told or not alone:
        return told
    return [one for one in saves if not is_text(one.name)] or [one for one in repeated if is_text(one.name)]


def _age_order(checkpoint: Checkpoint) -> tuple[object, ...]:
    """As ``age_order``; a link before its target."""
    order = age_order(checkpoint.name, checkpoint.mtime, checkpoint.step, checkpoint.epoch)
    return (*order, not Path(checkpoint.path).is_symlink(), checkpoint.name)


# What a checkpoint holds, in numbers and names, found without torch and without running code.

COMPILED_PREFIX = "_orig_mod."
"""What ``torch.compile`` puts before each key; a model that is not compiled refuses such a file."""
_MAX_STATE_VALUES = 40
UNKNOWN = "whether it is whole, and what it holds, cannot be told here: only the program that wrote it can read it"


def show(path: Path) -> Overview | None:
    """Describe a checkpoint, or None if the path is not a checkpoint. Raises FileNotFoundError."""
    subject = subject_of_any(path)
    if subject is None:
        return None
    finding = subject.examine(None)
    checkpoint = conclude(subject, finding)
    tensors = _weights(subject, finding)
    dtypes: dict[str, int] = {}
    for tensor in tensors:
        dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + math.prod(tensor.shape)
    held, files = finding.held, subject.members.files
    tops = [key for each in held.values() if isinstance(each.tree, Mapping) for key in each.tree.texts]
    names = [tensor.name for tensor in tensors]
    return Overview(
        checkpoint=checkpoint,
        layout=finding.layout,
        members=tuple(
            MemberOverview(
                name=name,
                size_bytes=files[name].size_bytes,
                tensors=len(held[name].tensors) if name in held else None,
                elements=sum(tensor.count for tensor in held[name].tensors) if name in held else None,
            )
            for name in sorted(files)
        ),
        tensors=tensors,
        parameters=sum(dtypes.values()),
        dtypes=dtypes,
        has_optimizer=optimizer_in(subject.members, finding.files),
        has_ema=any("ema" in name.lower() for name in [*files, *tops]),
        compiled=any(COMPILED_PREFIX in name for name in names),
        state=_state(subject, finding),
        metadata={key: value for each in held.values() for key, value in each.metadata.items()},
        unknown="" if checkpoint.understood else UNKNOWN,
    )


def _weights(subject: Subject, finding: Finding) -> tuple[TensorOverview, ...]:
    files = set(weights_in(subject.members)) if len(subject.members.files) > 1 else set(finding.files)
    return tuple(
        TensorOverview(name=shown(tensor.name, 200), dtype=tensor.element.name, shape=tensor.shape)
        for name, contents in sorted(finding.held.items())
        if name in files
        for tensor in contents.tensors
    )


def _state(subject: Subject, finding: Finding) -> dict[str, Any]:
    for name in STATE_FILES:
        if name in subject.members.files:
            try:
                values = read_json(subject.members.files[name].path, "a state file")
            except (Damage, FileNotFoundError):
                continue
            return {key: value for key, value in list(values.items())[:_MAX_STATE_VALUES] if _is_plain(value)}
    for contents in finding.held.values():
        pairs = contents.tree.pairs if isinstance(contents.tree, Mapping) else []
        plain = {key: value for key, value in pairs if isinstance(key, str) and _is_plain(value)}
        if plain:
            return dict(list(plain.items())[:_MAX_STATE_VALUES])
    return {}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and (not isinstance(value, int) or value.bit_length() < 63)


# Which checkpoint a file that was written belongs to: itself, or the folder that holds it as a member.

UNFINISHED_ORBAX = "orbax-checkpoint-tmp"
"""In the name of a folder that Orbax is writing."""
LEVELS = 4
"""``checkpoint-500/unet/model.safetensors`` lies two levels below the folder that holds the checkpoint."""


def state_of(path: Path, stops: Container[Path] = ()) -> Checkpoint | None:
    """The checkpoint that this file is, or is a part of, with its quick verdict; None if it is none.

    All that may be the state of a training, whatever its make and name. ``stops``: folders that are no checkpoints
    themselves (the working folder, output folders). Raises OSError.
    """
    folder = None
    for name in (above.name for above in path.parents[:LEVELS]):  # ``checkpoint-500.tmp``, ``tmp-checkpoint-500``
        named = is_checkpoint_directory_name(name.removesuffix(".tmp").removeprefix("tmp-"))
        if UNFINISHED_ORBAX in name or (is_temporary(name) and named):
            return None  # it is given its name when it is complete
    for above in path.parents[:LEVELS]:
        if above in stops:
            break
        if _is_one(above) or is_orbax(above):
            folder = above
    if folder is not None:
        return inspect_any(folder)
    return None if is_part(path.name) or is_temporary(path.name) else inspect_any(path)


def _is_one(folder: Path) -> bool:
    """Whether a folder is one checkpoint; one without a word for it in its name is an output folder with an export."""
    if is_temporary(folder.name):
        return False
    named = is_checkpoint_directory_name(folder.name) or is_counted_directory_name(folder.name)
    if named and not folder.name.isdecimal():  # a number alone may be that of a run
        return True
    return says_state(folder.name) and is_checkpoint_directory(folder)
