"""What a checkpoint holds, in numbers and names, found without torch and without running code."""

from pathlib import Path
from typing import Any

from ..model.checkpoints.checkpoint_results import CheckpointOverview, MemberOverview, TensorOverview
from .formats.damage import Damage
from .formats.pickles.pickle_values import Mapping, shown
from .formats.state_file import STATE_FILES, read_state_file
from .inspection import conclude, has_optimizer, subject_of_any
from .layouts.layout_reading import weights_in
from .raw_files import RawFile, describe
from .subject import Finding, Subject

COMPILED_PREFIX = "_orig_mod."
"""What ``torch.compile`` puts before each key; a model that is not compiled refuses such a file."""
_MAX_STATE_VALUES = 40
UNKNOWN = "whether it is whole, and what it holds, cannot be told here: only the program that wrote it can read it"


def show(path: Path) -> CheckpointOverview | None:
    """Describe a checkpoint, or None if the path is not a checkpoint. Raises FileNotFoundError."""
    subject = subject_of_any(path)
    if subject is None:
        return None
    finding = subject.examine(None)
    checkpoint = conclude(subject, finding)
    raw = {} if checkpoint.understood else describe(subject.members)
    tensors = _weights(subject, finding)
    dtypes: dict[str, int] = {}
    for tensor in tensors:
        dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + _count(tensor.shape)
    tops = [key for found in finding.files.values() if found.contents for key in _top_keys(found.contents.tree)]
    names = [tensor.name for tensor in tensors]
    return CheckpointOverview(
        checkpoint=checkpoint,
        layout=finding.layout,
        members=tuple(_member(subject, finding, name, raw.get(name)) for name in sorted(subject.members.files)),
        tensors=tensors,
        parameters=sum(dtypes.values()),
        dtypes=dtypes,
        has_optimizer=has_optimizer(subject, finding),
        has_ema=any("ema" in name.lower() for name in [*subject.members.files, *tops]),
        compiled=any(COMPILED_PREFIX in name for name in names),
        state=_state(subject, finding),
        metadata={
            key: value
            for found in finding.files.values()
            if found.contents is not None
            for key, value in found.contents.metadata.items()
        },
        unknown="" if checkpoint.understood else UNKNOWN,
    )


def _weights(subject: Subject, finding: Finding) -> tuple[TensorOverview, ...]:
    files = set(weights_in(subject.members)) if len(subject.members.files) > 1 else set(finding.files)
    return tuple(
        TensorOverview(name=shown(tensor.name, 200), dtype=tensor.element.name, shape=tensor.shape)
        for name, found in sorted(finding.files.items())
        if name in files and found.contents is not None
        for tensor in found.contents.tensors
    )


def _member(subject: Subject, finding: Finding, name: str, raw: RawFile | None) -> MemberOverview:
    found = finding.files.get(name)
    contents = found.contents if found is not None else None
    return MemberOverview(
        name=name,
        size_bytes=subject.members.files[name].size_bytes,
        tensors=None if contents is None else len(contents.tensors),
        elements=None if contents is None else sum(tensor.count for tensor in contents.tensors),
        format=None if raw is None or contents is not None else raw.format,
        sha256=None if raw is None else raw.sha256,
    )


def _state(subject: Subject, finding: Finding) -> dict[str, Any]:
    for name in STATE_FILES:
        if name in subject.members.files:
            try:
                values = read_state_file(subject.members.files[name].path).values
            except (Damage, FileNotFoundError):
                continue
            return {key: value for key, value in list(values.items())[:_MAX_STATE_VALUES] if _is_plain(value)}
    for found in finding.files.values():
        tree = found.contents.tree if found.contents is not None else None
        pairs = tree.pairs if isinstance(tree, Mapping) else []
        plain = {key: value for key, value in pairs if isinstance(key, str) and _is_plain(value)}
        if plain:
            return dict(list(plain.items())[:_MAX_STATE_VALUES])
    return {}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and (not isinstance(value, int) or value.bit_length() < 63)


def _top_keys(tree: object) -> list[str]:
    return tree.keys() if isinstance(tree, Mapping) else []


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
