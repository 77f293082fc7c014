"""The header of a safetensors file: eight bytes of length, JSON, then the tensors without gaps.

Source: the format's description at https://github.com/huggingface/safetensors (README, "Format"); the limits are those
of its reference reader.
"""

import json
from typing import Any

import msgspec

from .byte_range import ByteRange
from .damage import Corrupt, Opaque, Torn
from .elements import SAFETENSORS_ELEMENTS
from .file_contents import FileContents, Region, Tensor
from .foreign_formats import HEAD_BYTES, foreign_format
from .pickles.pickle_values import shown

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
    _check_cover(regions, start, source.size)
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
    count = 1
    for length in entry.shape:
        count *= length
    if count * element.bits != (end - begin) * 8:
        raise Corrupt(
            f"tensor {shown(name)} takes {end - begin} bytes, but {entry.dtype} {list(entry.shape)} needs "
            f"{element.size_bytes(count)}"
        )
    return Region(label=name, start=data_start + begin, size_bytes=end - begin, element=element)


def _check_cover(regions: list[Region], data_start: int, size: int) -> None:
    end = data_start
    for region in regions:
        if region.start != end:
            what = "a gap before" if region.start > end else "an overlap with the tensor before"
            raise Corrupt(f"there is {what} tensor {shown(region.label)} at byte {min(region.start, end)}")
        end = region.start + region.size_bytes
    if end > size:
        raise Torn(f"is cut off: {size} of {end} bytes")
    if end < size:
        raise Corrupt(f"has {size - end} bytes after its last tensor, from byte {end}")


def training_info(metadata: dict[str, str]) -> dict[str, Any]:
    """The ``training_info`` object that some trainers store as JSON text; empty when there is none."""
    try:
        info = json.loads(metadata.get("training_info", "{}"))
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}
