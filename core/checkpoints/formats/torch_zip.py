"""A file of ``torch.save`` in its zip form: ``data.pkl`` and one member for each storage.

Source: ``torch/serialization.py`` (``_save``, ``_load``) and ``caffe2/serialize/inline_container.cc``.
"""

import zlib

from .byte_range import ByteRange
from .damage import Corrupt, Opaque
from .file_contents import TORCHSCRIPT, FileContents, Region, describe_views, storage_elements
from .pickles.pickle_reader import MAX_PICKLE_BYTES, read_pickle
from .pickles.pickle_values import Storage, shown
from .pickles.torch_objects import TorchInterpreter
from .torch_legacy import walk_nested
from .zip_archive import ZipArchive, ZipMember, read_zip


def read_torch_archive(source: ByteRange) -> FileContents:
    """List tensors and storages and check that each storage is there in full. Raises Damage."""
    archive = read_zip(source)
    pickle_member = _find_pickle(archive)
    top = pickle_member.name.removesuffix("data.pkl")
    index_of = {member.name: index for index, member in enumerate(archive.members)}
    interpreter = TorchInterpreter()
    tree, _ = read_pickle(_unpacked(source, pickle_member, archive), interpreter)
    walk_nested(interpreter)
    region_of = {key: index_of.get(f"{top}data/{key}") for key in interpreter.storages}
    tensors = describe_views(tree, region_of)
    element_of = {region_of[key]: element for key, element in storage_elements(interpreter.storages, tree).items()}
    order = index_of.get(f"{top}byteorder")
    big_endian = order is not None and _is_big(source, archive.members[order], archive)
    for key, storage in interpreter.storages.items():
        _check_storage(storage, region_of[key], archive)
    regions = tuple(
        Region(
            label=member.name,
            start=member.data_start,
            size_bytes=member.size_bytes,
            element=element_of.get(index),
            crc=member.crc if archive.checksummed else None,
            packing=member.packing,
            packed_bytes=member.packed_bytes,
            big_endian=big_endian,
        )
        for index, member in enumerate(archive.members)
    )
    opaque = dict(interpreter.opaque)
    if f"{top}constants.pkl" in index_of:
        opaque[TORCHSCRIPT] = None
    return FileContents(
        format="torch_zip",
        regions=regions,
        tensors=tensors,
        opaque=tuple(opaque),
        objects=() if TORCHSCRIPT in opaque else tuple(interpreter.objects),
        refused=tuple(interpreter.refused),
        hostile=tuple(interpreter.hostile),
        tree=tree,
        notes=() if archive.checksummed else ("it was written without checksums",),
    )


def _find_pickle(archive: ZipArchive) -> ZipMember:
    found = [member for member in archive.members if member.name == "data.pkl" or member.name.endswith("/data.pkl")]
    if not found:
        raise Opaque("saved, not readable here (an archive without data.pkl, so torch did not write it)")
    if len(found) > 1:  # torch takes that of the first folder, other readers may take another
        raise Corrupt(f"has {len(found)} members named data.pkl")
    return found[0]


def _unpacked(source: ByteRange, member: ZipMember, archive: ZipArchive) -> bytes:
    if member.size_bytes > MAX_PICKLE_BYTES:
        raise Opaque(f"member {shown(member.name)} of {member.size_bytes} bytes is too large to be listed")
    packed = source.read(member.data_start, member.packed_bytes)
    if member.packing == "deflated":
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = unpacker.decompress(packed, member.size_bytes + 1)
        except zlib.error as error:
            raise Corrupt(f"member {shown(member.name)} cannot be unpacked") from error
        if len(data) != member.size_bytes:
            raise Corrupt(f"member {shown(member.name)} does not unpack to its {member.size_bytes} bytes")
    else:
        data = packed
    if archive.checksummed and zlib.crc32(data) != member.crc:
        raise Corrupt(f"member {shown(member.name)} at byte {member.data_start} has a wrong checksum")
    return data


def _is_big(source: ByteRange, member: ZipMember, archive: ZipArchive) -> bool:
    return member.size_bytes < 16 and _unpacked(source, member, archive) == b"big"


def _check_storage(storage: Storage, index: int | None, archive: ZipArchive) -> None:
    if index is None:
        raise Corrupt(f"storage {shown(storage.key)}, which its tensors need, is missing from the archive")
    member = archive.members[index]
    width = storage.element.bits // 8 if storage.element else 1
    needed = storage.numel * width
    if not needed <= member.size_bytes < needed + max(width, 1):
        raise Corrupt(f"member {shown(member.name)} has {member.size_bytes} bytes, its tensors need {needed}")
