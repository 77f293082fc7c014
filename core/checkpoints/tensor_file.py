"""One file with tensors, whatever its format: listed, and on demand read through."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .byte_range import ByteRange, open_bytes
from .contents import FileContents
from .damage import Damage, Sealed, worst
from .names import NameCounts, TensorFormat, read_name
from .nonfinite import check_values
from .pickle_tree import whole_number
from .pickle_values import Mapping, PickleValue
from .safetensors_header import read_safetensors, training_info
from .state_file import EPOCH_KEYS, STEP_KEYS, counts_in
from .torch_file import read_torch_file

if TYPE_CHECKING:
    from .finite import Scanner

_SAFETENSORS_STEP_KEYS = ("ss_steps", *STEP_KEYS)
_SAFETENSORS_EPOCH_KEYS = ("ss_epoch", *EPOCH_KEYS)


class FileFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``damage`` None: sound as far as was looked. ``contents`` None: it could not be listed."""

    contents: FileContents | None
    damage: Damage | None


def examine_file(
    path: Path, tensor_format: TensorFormat, *, scanner: "Scanner | None" = None, needed: bool = True
) -> FileFinding:
    """List a file; with a scanner, read it through.

    ``needed`` False: objects beyond tensors are expected there (RNG state, arguments) and do not count against it.
    Raises FileNotFoundError.
    """
    try:
        with open_bytes(path) as source:
            return examine_range(source, tensor_format, scanner=scanner, needed=needed)
    except Damage as damage:
        return FileFinding(contents=None, damage=damage)


def examine_range(
    source: ByteRange, tensor_format: TensorFormat, *, scanner: "Scanner | None" = None, needed: bool = True
) -> FileFinding:
    """As ``examine_file`` for a stretch of an open file."""
    try:
        contents = read_safetensors(source) if tensor_format == "safetensors" else read_torch_file(source)
    except Damage as damage:
        return FileFinding(contents=None, damage=damage)
    damages: list[Damage] = []
    sealed = _sealed(contents, needed=needed)
    if sealed is not None:
        damages.append(sealed)
    if scanner is not None:
        try:
            damages.extend(check_values(source, contents, scanner))
        except Damage as damage:
            damages.append(damage)
    return FileFinding(contents=contents, damage=worst(damages))


def _sealed(contents: FileContents, *, needed: bool) -> Sealed | None:
    if contents.hostile:
        return Sealed(f"asks for {contents.hostile[0]}, which can run commands and which no framework stores")
    if not needed:
        return None
    if contents.refused:
        return Sealed(f"asks for {contents.refused[0]} to be called, which no known framework stores")
    if contents.format == "pickle":
        return Sealed("is a plain pickle that torch.save did not write; its tensors cannot be listed")
    return None


def counts_of(contents: FileContents, name: str) -> NameCounts:
    """Step and epoch from the file's metadata or object tree, else from its name."""
    if contents.format == "safetensors":
        info = training_info(contents.metadata)
        stored = counts_in({"step": _first(contents.metadata, _SAFETENSORS_STEP_KEYS, info.get("step"))})
        epochs = counts_in({"epoch": _first(contents.metadata, _SAFETENSORS_EPOCH_KEYS, info.get("epoch"))})
        step, epoch = stored.step, epochs.epoch
    else:
        step, epoch = _in_tree(contents.tree, STEP_KEYS), _in_tree(contents.tree, EPOCH_KEYS)
    named = read_name(name)
    return NameCounts(named.step if step is None else step, named.epoch if epoch is None else epoch)


def _in_tree(tree: PickleValue, keys: tuple[str, ...]) -> int | None:
    """At the top of the object, else in its ``meta`` (mmengine, mmcv)."""
    found = whole_number(tree, keys)
    return whole_number(tree.get("meta"), keys) if found is None and isinstance(tree, Mapping) else found


def _first(metadata: dict[str, str], keys: tuple[str, ...], default: object) -> object:
    return next((metadata[key] for key in keys if key in metadata), default)
