"""Whether a file whose format is recognised but not read is whole, as far as the format itself tells.

Zip archives (Keras, ``np.savez``, stable-baselines3), HDF5 and numpy arrays say how long they are; zip archives have
checksums, too. Nothing is unpickled or extracted. Sources: HDF5 File Format Specification 3.0, section II.A;
``numpy/lib/format.py``.
"""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from .byte_range import ByteRange, open_bytes
from .damage import Corrupt, Damage, Opaque, Torn
from .pickles.pickle_values import shown
from .zip_archive import LOCAL_SIGNATURE, ZipArchive, read_zip

if TYPE_CHECKING:
    from .value_scan import Scanner

_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_FIRST_ADDRESS = {0: 24, 1: 28, 2: 12, 3: 12}
"""Byte of the superblock where its addresses begin, by its version: base, one other, end of file."""
_HDF5_WIDTH_AT = {0: 13, 1: 13, 2: 9, 3: 9}
_SUPERBLOCK_BYTES = 96
_NUMPY = b"\x93NUMPY"
_NUMPY_TYPE = re.compile(r"[<>|=][?bBiufcmMSaVU](\d+)(\[\w+\])?")
_NUMPY_HEADER_AT_MOST = 1 << 20


def foreign_damage(path: Path, scanner: "Scanner | None" = None) -> Damage | None:
    """What the format itself says is wrong; None: nothing, or it cannot be told. With a scanner, checksums, too.

    Raises FileNotFoundError.
    """
    try:
        with open_bytes(path) as source:
            head = source.read(0, min(source.size, _SUPERBLOCK_BYTES))
            if head.startswith(LOCAL_SIGNATURE):
                _check_zip(source, scanner)
            elif head.startswith(_HDF5):
                _check_length(source, _hdf5_end(head))
            elif head.startswith(_NUMPY):
                _check_length(source, _numpy_end(source))
    except Opaque:
        return None
    except Damage as damage:
        return damage
    return None


def _check_length(source: ByteRange, end: int | None) -> None:
    if end is not None and source.size < end:
        raise Torn(f"is cut off after {source.size} of its {end} bytes")


def _check_zip(source: ByteRange, scanner: "Scanner | None") -> None:
    archive = read_zip(source)
    if scanner is None or not archive.checksummed:
        return
    for member, crc in _checksums(source, archive, scanner):
        if crc != archive.members[member].crc:
            at = archive.members[member]
            raise Corrupt(f"member {shown(at.name)} at byte {at.data_start} has a wrong checksum")


def _checksums(source: ByteRange, archive: ZipArchive, scanner: "Scanner") -> list[tuple[int, int]]:
    """(index of the member, checksum of its bytes)."""
    found: list[tuple[int, int]] = []
    for index, member in enumerate(archive.members):
        if member.packing == "deflated":
            crc = scanner.scan_deflated(
                source, member.data_start, member.packed_bytes, member.size_bytes, "none", on_bad=_not_tested
            )
        else:
            crc = scanner.scan(source, member.data_start, member.size_bytes, "none", on_bad=_not_tested, checksum=True)
        found.append((index, crc))
    return found


def _not_tested(*_: object) -> None:
    raise AssertionError("values of a format that is not read are not tested")


def _hdf5_end(head: bytes) -> int | None:
    """The length that the superblock gives, in bytes."""
    version = head[8] if len(head) > 8 else -1
    if version not in _HDF5_FIRST_ADDRESS:
        return None
    width = head[_HDF5_WIDTH_AT[version]] if len(head) > _HDF5_WIDTH_AT[version] else 0
    at = _HDF5_FIRST_ADDRESS[version] + 2 * width
    if width not in {4, 8} or len(head) < at + width:
        return None
    end = int.from_bytes(head[at : at + width], "little")
    return None if end == (1 << 8 * width) - 1 else end


def _numpy_end(source: ByteRange) -> int | None:
    """The length that the header gives, in bytes; None for arrays of objects, whose length it does not give."""
    wide = source.read(6, 1)[0] > 1
    at = 12 if wide else 10
    length = int.from_bytes(source.read(8, at - 8), "little")
    if length > _NUMPY_HEADER_AT_MOST:
        return None
    try:
        from ast import literal_eval

        header = literal_eval(source.read(at, length).decode("utf-8"))
        shape, kind = header["shape"], _NUMPY_TYPE.fullmatch(header["descr"])
        if kind is None:
            return None
        width = int(kind[1]) * (4 if header["descr"][1] == "U" else 1)
        return at + length + width * int(math.prod(shape))
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        return None
