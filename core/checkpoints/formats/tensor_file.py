"""One file with tensors: its format by the first bytes, its list of tensors, and on demand every value."""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ...model.checkpoint_files import NameCounts, counts_something, read_name
from ...model.checkpoint_suffixes import TensorFormat
from .byte_range import HEAD_BYTES, ByteRange, Corrupt, Damage, Opaque, Torn, open_bytes, worst
from .foreign_formats import TAR_MARK, TAR_MARK_AT, TORCH_LEGACY, foreign_format
from .tensors import SAFETENSORS_ELEMENTS, FileContents, Mapping, Region, Tensor, shown
from .zip_archive import LOCAL_SIGNATURE

if TYPE_CHECKING:
    from .nonfinite import Scanner


# The header of a safetensors file: eight bytes of length, JSON, then the tensors without gaps.
#
# Source: the format's description at https://github.com/huggingface/safetensors (README, "Format"); the limits are
# those of its reference reader.

MAX_HEADER_BYTES = 100_000_000
_METADATA = "__metadata__"


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_safetensors(source: ByteRange) -> FileContents:
    """Read and check the header: lengths, types, shapes against offsets, no gap, no overlap, no byte too many.

    Raises Torn, Corrupt, or Opaque for a file of another format.
    """
    if source.size < 8:
        raise Torn(f"has {source.size} bytes; even the header length takes 8")
    length = int.from_bytes(source.read(0, 8), "little")
    if length > MAX_HEADER_BYTES or length < 2:
        foreign = foreign_format(source.read(0, min(source.size, HEAD_BYTES)), "")
        if foreign is not None:
            raise Opaque(f"saved, not readable here ({foreign.words})")
        impossible = f"has a header length of {length} bytes at byte 0; 2 to {MAX_HEADER_BYTES} are possible"
        raise Corrupt(impossible, understood=length == 0)
    if 8 + length > source.size:
        raise Torn(f"is cut inside its header: {source.size} bytes of at least {8 + length}")
    entries, metadata = _decode(source.read(8, length))
    start = 8 + length
    tensors: list[Tensor] = []
    regions: list[Region] = []
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        region = _region(name, entry, start)
        tensors.append(
            Tensor(name=name, element=SAFETENSORS_ELEMENTS[entry.dtype], shape=entry.shape, region=len(regions))
        )
        regions.append(region)
    end = start
    for region in regions:
        if region.start != end:
            what = "a gap before" if region.start > end else "an overlap with the tensor before"
            raise Corrupt(f"there is {what} tensor {shown(region.label)} at byte {min(region.start, end)}")
        end = region.start + region.size_bytes
    if end > source.size:
        raise Torn(f"is cut off: {source.size} of {end} bytes")
    if end < source.size:
        raise Corrupt(f"has {source.size - end} bytes after its last tensor, from byte {end}")
    return FileContents(format="safetensors", regions=tuple(regions), tensors=tuple(tensors), metadata=metadata)


def _decode(raw: bytes) -> tuple[dict[str, _Entry], dict[str, str]]:
    if raw[:1] != b"{":
        raise Corrupt("its header does not begin with '{' at byte 8")
    try:
        document: dict[str, msgspec.Raw] = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        metadata = msgspec.json.decode(document.pop(_METADATA, b"{}"), type=dict[str, str])
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in document.items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Corrupt(f"its header is damaged: {shown(str(error))}") from error
    return entries, metadata


def _region(name: str, entry: _Entry, data_start: int) -> Region:
    begin, end = entry.data_offsets
    element = SAFETENSORS_ELEMENTS.get(entry.dtype)
    if element is None:
        raise Corrupt(f"tensor {shown(name)} has the unknown element type {shown(entry.dtype)}")
    if begin < 0 or end < begin or any(length < 0 for length in entry.shape):
        raise Corrupt(f"tensor {shown(name)} has impossible offsets {begin} to {end}")
    count = math.prod(entry.shape)
    if count * element.bits != (end - begin) * 8:
        raise Corrupt(
            f"tensor {shown(name)} takes {end - begin} bytes, but {entry.dtype} {list(entry.shape)} needs "
            f"{element.size_bytes(count)}"
        )
    return Region(label=name, start=data_start + begin, size_bytes=end - begin, element=element)


def training_info(metadata: dict[str, str]) -> dict[str, Any]:
    """The ``training_info`` object that some trainers store as JSON text; empty when there is none."""
    try:
        info = json.loads(metadata.get("training_info", "{}"))
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}


# Small JSON files that hold a training's progress (``training_state.json``, ``trainer_state.json`` …).

MAX_STATE_BYTES = 64 << 20
"""transformers' log history grows with the run; a few MB at most."""
STATE_FILES = ("training_state.json", "trainer_state.json", "train_state.json")


def read_json(path: Path, what: str, *, cut: type[Damage] = Torn) -> dict[str, Any]:
    """The object in a file. ``what`` it is, for the reason.

    Raises Torn (empty), ``cut`` (cut off), Corrupt, FileNotFoundError.
    """
    with open_bytes(path) as source:
        if source.size == 0:
            raise Torn("is empty")
        if source.size > MAX_STATE_BYTES:
            raise Corrupt(f"has {source.size} bytes, too many for {what}")
        raw = source.read(0, source.size)
    try:
        values = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # an error at the very end of the text means that the file was cut
        ends = isinstance(error, json.JSONDecodeError) and (
            error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
        )
        raise (cut if ends else Corrupt)(f"is not valid JSON: {shown(str(error))}") from error
    if not isinstance(values, dict):
        raise Corrupt("does not hold a JSON object")
    return values


def counts_in(values: dict[str, Any]) -> NameCounts:
    """Step and epoch among the keys that trainers use; a fractional epoch counts as begun."""
    return NameCounts(whole_number(values, step_keys(values)), whole_number(values, epoch_keys(values)))


def whole_number(values: dict[str, Any], keys: tuple[str, ...]) -> int | None:
    """The first of ``keys`` that is a number (not negative), as a whole one."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53:
            return int(value)
    return None


# The names under which trainers store how far they have trained.
#
# The usual ones come first. Any other name counts if it is a word for steps or epochs with words beside it that do not
# change what is counted (``iter_num`` of nanoGPT, ``EPOCHS_RUN`` of PyTorch's tutorial, ``currentEpoch``):
# ``max_iters``, ``num_epochs``, ``steps_per_epoch`` and ``best_epoch`` are other numbers. A plural alone is a total as
# often as a count.

STEP_KEYS = ("global_step", "step", "current_step", "steps", "iteration", "iter", "num_updates", "global_steps")
EPOCH_KEYS = ("epoch", "current_epoch")
_BEFORE = r"(?:(?:global|current|cur|train|training|trainer|trained|optimizer|opt|last|completed|finished|i)_)*"
_AFTER = r"_(?:num|number|no|idx|index|count|counter|run|done|completed|trained|finished|so_far)"
_STEP = re.compile(rf"{_BEFORE}(?:(?:step|iter|iteration|update)(?:{_AFTER})*|(?:step|iter|iteration|update)s{_AFTER})")
_EPOCH = re.compile(rf"{_BEFORE}(?:epoch(?:{_AFTER})*|epochs{_AFTER})")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def step_keys(names: Iterable[object]) -> tuple[str, ...]:
    """The keys to look up for a step, in their order."""
    return (*STEP_KEYS, *_matching(_STEP, names))


def epoch_keys(names: Iterable[object]) -> tuple[str, ...]:
    """The keys to look up for an epoch, in their order."""
    return (*EPOCH_KEYS, *_matching(_EPOCH, names))


def _matching(pattern: re.Pattern[str], names: Iterable[object]) -> list[str]:
    words = [name for name in names if isinstance(name, str) and len(name) < 64]
    return [name for name in words if pattern.fullmatch(_HUMP.sub("_", name).lower().replace("-", "_"))]


ONLY_ZEROS = "all values of its tensors are zero"
_SAFETENSORS_STEP_KEYS = ("ss_steps", *STEP_KEYS)
_SAFETENSORS_EPOCH_KEYS = ("ss_epoch", *EPOCH_KEYS)
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
        with open_bytes(path, once=scanner is not None and scanner.pace.rate is not None) as source:
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
        from .nonfinite import check_values  # with numpy, only where values are read

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
    from .torch_files import (  # with the first file of torch: 1 MB of memory
        read_legacy,
        read_plain_pickle,
        read_torch_archive,
    )

    head = source.read(0, min(source.size, TAR_MARK_AT + len(TAR_MARK)))
    if head.startswith(LOCAL_SIGNATURE):
        return read_torch_archive(source)
    if head.startswith(TORCH_LEGACY):
        return read_legacy(source)
    if TORCH_LEGACY.startswith(head) or LOCAL_SIGNATURE.startswith(head):
        raise Torn(f"is cut off after {source.size} bytes")
    if head.endswith(TAR_MARK):
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
        step = _first(contents.metadata, _SAFETENSORS_STEP_KEYS, info.get("step"))
        held = counts_in({"step": step, "epoch": _first(contents.metadata, _SAFETENSORS_EPOCH_KEYS, info.get("epoch"))})
    else:  # at the top of the object, else in its ``meta`` (mmengine, mmcv)
        texts = contents.tree.texts if isinstance(contents.tree, Mapping) else {}
        meta = texts.get("meta")
        held = counts_in(texts).or_of(counts_in(meta.texts) if isinstance(meta, Mapping) else NameCounts())
    named, epoch = read_name(name), held.epoch
    if held.step is None and epoch is not None and named.step in {epoch, epoch + 1} and counts_something(name):
        return held  # timm: checkpoint-3.pth.tar is that of epoch 3
    return held.or_of(named)


def _first(metadata: dict[str, str], keys: tuple[str, ...], default: object) -> object:
    return next((metadata[key] for key in keys if key in metadata), default)
