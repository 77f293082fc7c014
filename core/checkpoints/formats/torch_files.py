"""Files of ``torch.save``: the zip form and the older one."""

import zlib
from typing import Any

import msgspec

from .byte_range import ByteRange, Corrupt, Damage, Opaque, Torn
from .foreign_formats import TORCH_LEGACY
from .pickle_reader import MAX_PICKLE_BYTES, read_pickle
from .tensors import (
    TORCHSCRIPT,
    FileContents,
    Mapping,
    PickleValue,
    Region,
    Storage,
    describe_views,
    shown,
    storage_elements,
)
from .torch_objects import TorchInterpreter
from .zip_archive import read_zip

# A file of ``torch.save`` in its zip form: ``data.pkl`` and one member for each storage.
#
# Source: ``torch/serialization.py`` (``_save``, ``_load``) and ``caffe2/serialize/inline_container.cc``.


def read_torch_archive(source: ByteRange) -> FileContents:
    """List tensors and storages and check that each storage is there in full. Raises Damage."""
    members = read_zip(source)
    pickles = [member for member in members if f"/{member.label}".endswith("/data.pkl")]
    if not pickles:
        raise Opaque("saved, not readable here (an archive without data.pkl, so torch did not write it)")
    if len(pickles) > 1:  # torch takes that of the first folder, other readers may take another
        raise Corrupt(f"has {len(pickles)} members named data.pkl")
    (pickle_member,) = pickles
    top = pickle_member.label.removesuffix("data.pkl")
    index_of = {member.label: index for index, member in enumerate(members)}
    interpreter = TorchInterpreter()
    tree, _ = read_pickle(_unpacked(source, pickle_member), interpreter)
    walk_nested(interpreter)
    region_of = {key: index_of.get(f"{top}data/{key}") for key in interpreter.storages}
    tensors = describe_views(tree, region_of)
    element_of = {region_of[key]: element for key, element in storage_elements(interpreter.storages, tree).items()}
    order = index_of.get(f"{top}byteorder")
    mark = None if order is None else members[order]
    big_endian = mark is not None and mark.size_bytes < 16 and _unpacked(source, mark) == b"big"
    for key, storage in interpreter.storages.items():
        _check_storage(storage, region_of[key], members)
    regions = tuple(
        msgspec.structs.replace(member, element=element_of.get(index), big_endian=big_endian)
        for index, member in enumerate(members)
    )
    names = names_in(interpreter)
    if f"{top}constants.pkl" in index_of:
        names |= {"opaque": (*names["opaque"], TORCHSCRIPT), "objects": ()}
    return FileContents(
        format="torch_zip",
        regions=regions,
        tensors=tensors,
        tree=tree,
        **names,
        notes=("it was written without checksums",) if pickle_member.crc is None else (),
    )


def names_in(interpreter: TorchInterpreter) -> dict[str, Any]:
    """The names that a pickle asks for, by field of FileContents."""
    return {field: tuple(getattr(interpreter, field)) for field in ("opaque", "objects", "refused", "hostile")}


def _unpacked(source: ByteRange, member: Region) -> bytes:
    if member.size_bytes > MAX_PICKLE_BYTES:
        raise Opaque(f"member {shown(member.label)} of {member.size_bytes} bytes is too large to be listed")
    packed = source.read(member.start, member.packed_bytes)
    if member.packing == "deflated":
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = unpacker.decompress(packed, member.size_bytes + 1)
        except zlib.error as error:
            raise Corrupt(f"member {shown(member.label)} cannot be unpacked") from error
        if len(data) != member.size_bytes:
            raise Corrupt(f"member {shown(member.label)} does not unpack to its {member.size_bytes} bytes")
    else:
        data = packed
    if member.crc is not None and zlib.crc32(data) != member.crc:
        raise Corrupt(f"member {shown(member.label)} at byte {member.start} has a wrong checksum")
    return data


def _check_storage(storage: Storage, index: int | None, members: tuple[Region, ...]) -> None:
    if index is None:
        raise Corrupt(f"storage {shown(storage.key)}, which its tensors need, is missing from the archive")
    member = members[index]
    width = storage.element.bits // 8 if storage.element else 1
    needed = storage.numel * width
    if not needed <= member.size_bytes < needed + max(width, 1):
        raise Corrupt(f"member {shown(member.label)} has {member.size_bytes} bytes, its tensors need {needed}")


# A file of ``torch.save`` from before the zip form: five pickles, then the storages.
#
# Magic number, protocol, system, object, list of storage keys; then for each key its number of elements (eight bytes)
# and the elements. No checksums. Source: ``torch/serialization.py`` (``_legacy_save``, ``_legacy_load``).

_PROTOCOL = 1001
_FIRST_WINDOW_BYTES = 1 << 20
_MAX_NESTING = 4


def read_legacy(source: ByteRange) -> FileContents:
    """List tensors and storages and check that the file ends where the last storage does. Raises Damage."""
    interpreter, tree, system, keys, start = _head(source)
    walk_nested(interpreter)
    little = system.get("little_endian") if isinstance(system, Mapping) else True
    elements = storage_elements(interpreter.storages, tree)
    regions: list[Region] = []
    region_of: dict[str, int | None] = {}
    at = start
    for key in keys:
        storage = interpreter.storages.get(key)
        if storage is None or key in region_of:
            raise Corrupt(f"its list of storages names {shown(key)}, which no tensor needs")
        size = _storage_size(source, storage, at)
        region_of[key] = len(regions)
        regions.append(
            Region(
                label=f"storage {key}",
                start=at + 8,
                size_bytes=size,
                element=elements.get(key),
                big_endian=little is False,
            )
        )
        at += 8 + size
    if at < source.size:
        raise Corrupt(f"has {source.size - at} bytes after its last storage, from byte {at}")
    missing = [key for key in interpreter.storages if key not in region_of]
    if missing:
        raise Corrupt(f"storage {shown(missing[0])}, which its tensors need, is missing")
    return FileContents(
        format="torch_legacy",
        regions=tuple(regions),
        tensors=describe_views(tree, region_of),
        tree=tree,
        **names_in(interpreter),
    )


def read_plain_pickle(source: ByteRange) -> FileContents:
    """A single pickle that ``torch.save`` did not write: its names, no tensors. Raises Damage."""
    if source.size > MAX_PICKLE_BYTES:
        raise Opaque(f"is a pickle of {source.size} bytes, too large to be listed")
    interpreter = TorchInterpreter()
    tree, _ = read_pickle(source.read(0, source.size), interpreter)
    walk_nested(interpreter)
    return FileContents(
        format="pickle",
        regions=(Region(label="pickle", start=0, size_bytes=source.size),),
        tensors=(),
        tree=tree,
        **names_in(interpreter) | {"objects": ()},
    )


def walk_nested(interpreter: TorchInterpreter) -> None:
    """Walk the pickles that ``_load_from_bytes`` would load, and theirs, for the names they ask for."""
    for _ in range(_MAX_NESTING):
        pending, interpreter.nested = interpreter.nested, []
        for data in pending:
            inner = TorchInterpreter(legacy=True)
            at = 0
            try:
                for _ in range(5):
                    _, at = read_pickle(data, inner, at)
            except Damage as damage:
                raise Corrupt(f"a tensor stored inside its pickle is damaged: {damage.reason}") from damage
            finally:
                interpreter.opaque.update(inner.opaque)
                interpreter.refused.update(inner.refused)
                interpreter.hostile.update(inner.hostile)
            for deeper in inner.nested:
                interpreter.add_nested(deeper)
    if interpreter.nested:
        raise Opaque("its pickles are nested too deep to be listed")


def _head(source: ByteRange) -> tuple[TorchInterpreter, PickleValue, PickleValue, list[str], int]:
    window = min(source.size, _FIRST_WINDOW_BYTES)
    while True:
        data = source.read(0, window)
        try:
            return _head_in(data)
        except Torn as torn:
            if window == source.size:
                raise Torn(f"is cut inside its pickles: {torn.reason}") from torn
            if window >= MAX_PICKLE_BYTES:
                raise Opaque("its pickles are too large to be listed") from torn
            window = min(source.size, window * 8, MAX_PICKLE_BYTES)


def _head_in(data: bytes) -> tuple[TorchInterpreter, PickleValue, PickleValue, list[str], int]:
    interpreter = TorchInterpreter(legacy=True)
    at = len(TORCH_LEGACY)
    protocol, at = read_pickle(data, interpreter, at)
    if not isinstance(protocol, int) or protocol != _PROTOCOL:
        raise Corrupt(f"has a protocol other than {_PROTOCOL} at byte {len(TORCH_LEGACY)}")
    system, at = read_pickle(data, interpreter, at)
    tree, at = read_pickle(data, interpreter, at)
    keys, end = read_pickle(data, interpreter, at)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Corrupt(f"has no list of storages at byte {at}")
    return interpreter, tree, system, keys, end


def _storage_size(source: ByteRange, storage: Storage, at: int) -> int:
    label = shown(storage.key)
    if at + 8 > source.size:
        raise Torn(f"is cut off: {source.size} bytes, storage {label} should begin at byte {at}")
    numel = int.from_bytes(source.read(at, 8), "little", signed=True)
    if numel != storage.numel:
        raise Corrupt(f"storage {label} at byte {at} has {numel} elements, its tensors need {storage.numel}")
    size = storage.element.size_bytes(numel) if storage.element else numel
    if at + 8 + size > source.size:
        raise Torn(f"is cut off: {source.size} of at least {at + 8 + size} bytes, inside storage {label}")
    return size
