"""One file with tensors: its format by the first bytes, its list of tensors, and on demand every value."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...model.checkpoints.checkpoint_names import NameCounts, counts_something, read_name
from ...model.checkpoints.checkpoint_suffixes import TensorFormat
from .byte_range import ByteRange, open_bytes
from .count_keys import EPOCH_KEYS, STEP_KEYS, epoch_keys, step_keys
from .damage import Corrupt, Damage, Opaque, Torn, worst
from .file_contents import FileContents
from .foreign_formats import TORCH_LEGACY, foreign_format
from .nonfinite import check_values
from .pickles.pickle_tensors import whole_number
from .pickles.pickle_values import Mapping, PickleValue
from .safetensors_file import read_safetensors, training_info
from .state_file import counts_in
from .zip_archive import LOCAL_SIGNATURE

if TYPE_CHECKING:
    from .value_scan import Scanner

ONLY_ZEROS = "all values of its tensors are zero"
_SAFETENSORS_STEP_KEYS = ("ss_steps", *STEP_KEYS)
_SAFETENSORS_EPOCH_KEYS = ("ss_epoch", *EPOCH_KEYS)
_TAR_MARK = b"ustar"
_TAR_MARK_AT = 257
_TEXT_PICKLE_STARTS = b"(c]}lNISFVGUX"
"""First bytes of pickles of protocol 0 and 1, which carry no mark."""


class FileFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``damage`` None: nothing wrong was found. ``contents`` None: it could not be listed.

    ``note``: what its values show that is unusual but may be meant.
    """

    contents: FileContents | None
    damage: Damage | None
    note: str | None = None


def examine_file(
    path: Path, tensor_format: TensorFormat, *, scanner: "Scanner | None" = None, needed: bool = True
) -> FileFinding:
    """List a file; with a scanner, read it through.

    ``needed`` False: objects beyond tensors are expected there (RNG state, arguments) and do not count against it.
    Raises FileNotFoundError.
    """
    try:
        with open_bytes(path, once=scanner is not None) as source:
            return examine_range(source, tensor_format, scanner=scanner, needed=needed)
    except Damage as damage:
        return FileFinding(contents=None, damage=damage)


def examine_range(
    source: ByteRange, tensor_format: TensorFormat, *, scanner: "Scanner | None" = None, needed: bool = True
) -> FileFinding:
    """As ``examine_file`` for a range of an open file."""
    try:
        contents = read_safetensors(source) if tensor_format == "safetensors" else read_torch_file(source)
    except Damage as damage:
        return FileFinding(contents=None, damage=damage)
    damages: list[Damage] = []
    opaque = _opaque(contents, needed=needed)
    if opaque is not None:
        damages.append(opaque)
    if scanner is not None:
        scanner.only_zeros = None
        try:
            damages.extend(check_values(source, contents, scanner))
        except Damage as damage:
            damages.append(damage)
    zeros = scanner is not None and scanner.only_zeros is True
    return FileFinding(contents=contents, damage=worst(damages), note=ONLY_ZEROS if zeros else None)


def read_torch_file(source: ByteRange) -> FileContents:
    """List a file of ``torch.save`` (zip or legacy) or a plain pickle. Raises Damage."""
    if source.size == 0:
        raise Torn("is empty")
    from .torch_legacy import read_legacy, read_plain_pickle  # with the first file of torch: 1 MB of memory
    from .torch_zip import read_torch_archive

    head = source.read(0, min(source.size, _TAR_MARK_AT + len(_TAR_MARK)))
    if head.startswith(LOCAL_SIGNATURE):
        return read_torch_archive(source)
    if head.startswith(TORCH_LEGACY):
        return read_legacy(source)
    if TORCH_LEGACY.startswith(head) or LOCAL_SIGNATURE.startswith(head):
        raise Torn(f"is cut off after {source.size} bytes")
    if head.endswith(_TAR_MARK):
        raise Opaque("is a tar file of torch 0.1, which cannot be read")
    if head[0] == 0x80:
        return read_plain_pickle(source)
    foreign = foreign_format(head, "")
    if foreign is not None:
        raise Opaque(f"saved, not readable here ({foreign.words})")
    if head[:1] in {bytes([start]) for start in _TEXT_PICKLE_STARTS}:
        try:
            return read_plain_pickle(source)
        except (Torn, Corrupt) as damage:
            raise Corrupt(f"is in no format that torch writes ({damage.reason})", understood=False) from damage
    if not head.strip(b"\0"):
        raise Corrupt(f"begins with zeros (byte 0: {head[:8].hex(' ')})")
    raise Corrupt(f"is in no format that torch writes (byte 0: {head[:8].hex(' ')})", understood=False)


def looks_like_torch(head: bytes) -> bool:
    """Whether the first bytes of a file of unclear name (``.bin``, ``.pkl``) are torch's."""
    return head.startswith((LOCAL_SIGNATURE, TORCH_LEGACY))


def _opaque(contents: FileContents, *, needed: bool) -> Opaque | None:
    if contents.hostile:
        return Opaque(f"imports {contents.hostile[0]}, which can run commands and which no framework stores")
    if not needed:
        return None
    if contents.refused:
        return Opaque(f"calls {contents.refused[0]}, which no known framework stores")
    if contents.format == "pickle":
        return Opaque("is a plain pickle that torch.save did not write; its tensors cannot be listed")
    return None


def counts_of(contents: FileContents, name: str) -> NameCounts:
    """Step and epoch from the file's metadata or object tree, else from its name."""
    if contents.format == "safetensors":
        info = training_info(contents.metadata)
        stored = counts_in({"step": _first(contents.metadata, _SAFETENSORS_STEP_KEYS, info.get("step"))})
        epochs = counts_in({"epoch": _first(contents.metadata, _SAFETENSORS_EPOCH_KEYS, info.get("epoch"))})
        step, epoch = stored.step, epochs.epoch
    else:
        step, epoch = _in_tree(contents.tree, step_keys), _in_tree(contents.tree, epoch_keys)
    named = read_name(name)
    if step is None and epoch is not None and named.step in {epoch, epoch + 1} and counts_something(name):
        return NameCounts(None, epoch)  # timm: checkpoint-3.pth.tar is that of epoch 3
    return NameCounts(named.step if step is None else step, named.epoch if epoch is None else epoch)


def _in_tree(tree: PickleValue, keys: Callable[[Iterable[object]], tuple[str, ...]]) -> int | None:
    """At the top of the object, else in its ``meta`` (mmengine, mmcv)."""
    if not isinstance(tree, Mapping):
        return None
    found, meta = whole_number(tree, keys(tree.keys())), tree.get("meta")
    return whole_number(meta, keys(meta.keys())) if found is None and isinstance(meta, Mapping) else found


def _first(metadata: dict[str, str], keys: tuple[str, ...], default: object) -> object:
    return next((metadata[key] for key in keys if key in metadata), default)
