"""The structure of a zip archive as ``torch.save`` writes it: the directory at the end against the headers in front.

Nothing is extracted. ``zipfile`` is not used because it trusts the directory alone; here a member counts only if its
own header, its descriptor and the directory agree. Source: PKWARE APPNOTE 6.3.10, sections 4.3 and 4.5.
"""

import struct

import msgspec

from .byte_range import ByteRange, Corrupt, Opaque, Torn
from .tensors import Packing, Region, shown

LOCAL_SIGNATURE = b"PK\x03\x04"
MAX_DIRECTORY_BYTES = 256 << 20
_DIRECTORY_SIGNATURE = b"PK\x01\x02"
_END_SIGNATURE = b"PK\x05\x06"
_END64_SIGNATURE = b"PK\x06\x06"
_LOCATOR64_SIGNATURE = b"PK\x06\x07"
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_HAS_DESCRIPTOR = 1 << 3
_ENCRYPTED = 1 << 0
_DIRECTORY_ATTRIBUTE = 1 << 4
_METHODS: dict[int, Packing] = {0: "stored", 8: "deflated"}
_NEWEST_VERSION = 63
"""6.3 of the format; readers refuse members that ask for more."""
_FULL_32, _FULL_16 = 0xFFFFFFFF, 0xFFFF


class _Entry(msgspec.Struct, frozen=True):
    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    header: int


def read_zip(source: ByteRange) -> tuple[Region, ...]:
    """The members in the order of their bytes, every header checked against the directory.

    None of them has a checksum (``crc``) if all were left out at the writing. Raises Torn (the directory, written last,
    is missing), Corrupt, Opaque (encrypted, or packed in a way torch cannot read).
    """
    entries, directory_start = _directory(source)
    members: list[Region] = []
    names: set[bytes] = set()
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header):
        if entry.name in names:
            raise Corrupt(f"member {_label(entry.name)} occurs twice")
        names.add(entry.name)
        if entry.header < end:
            raise Corrupt(f"member {_label(entry.name)} at byte {entry.header} overlaps the one before")
        member, end = _member(source, entry, directory_start)
        members.append(member)
    if any(member.size_bytes for member in members) and not any(member.crc for member in members):
        return tuple(msgspec.structs.replace(member, crc=None) for member in members)
    return tuple(members)


def _directory(source: ByteRange) -> tuple[list[_Entry], int]:
    at = _find_end(source)
    _, disk, first_disk, here, count, size, start, _ = _END.unpack(source.read(at, _END.size))
    end = at
    if at >= _LOCATOR64.size and source.read(at - _LOCATOR64.size, 4) == _LOCATOR64_SIGNATURE:
        _, disk64, at64, volumes = _LOCATOR64.unpack(source.read(at - _LOCATOR64.size, _LOCATOR64.size))
        if disk64 or volumes != 1:
            raise Corrupt(f"its locator at byte {at - _LOCATOR64.size} names several volumes")
        end, here64, count64, size64, start64 = _end64(source, at64, at - _LOCATOR64.size)
        narrow = ((here, here64, _FULL_16), (count, count64, _FULL_16), (size, size64, _FULL_32))
        for small, large, full in (*narrow, (start, start64, _FULL_32)):
            if small not in {large, full}:
                raise Corrupt(f"its two end records contradict each other at byte {at}")
        here, count, size, start = here64, count64, size64, start64
    if disk or first_disk or here != count:
        raise Corrupt(f"its end record at byte {at} names several volumes")
    if start + size != end or size > MAX_DIRECTORY_BYTES:
        raise Corrupt(f"its directory of {size} bytes at byte {start} does not end at byte {end}")
    return _entries(source.read(start, size), count, start), start


def _find_end(source: ByteRange) -> int:
    tail_size = min(source.size, _END.size + _FULL_16)
    tail = source.read(source.size - tail_size, tail_size)
    at = len(tail)
    while (at := tail.rfind(_END_SIGNATURE, 0, at)) >= 0:
        if at + _END.size <= len(tail):
            comment = int.from_bytes(tail[at + _END.size - 2 : at + _END.size], "little")
            if at + _END.size + comment == len(tail):
                return source.size - tail_size + at
    if _END_SIGNATURE in tail:
        raise Corrupt("has bytes after its end record, or the record is damaged")
    raise Torn(f"is cut off after {source.size} bytes: the directory, which is written last, is missing")


def _end64(source: ByteRange, at: int, locator: int) -> tuple[int, int, int, int, int]:
    if at + _END64.size > locator:
        raise Corrupt(f"its locator at byte {locator} points to no end record")
    signature, length, _, _, disk, first, here, count, size, start = _END64.unpack(source.read(at, _END64.size))
    if signature != _END64_SIGNATURE or at + 12 + length != locator or disk or first:
        raise Corrupt(f"its long end record at byte {at} is damaged")
    return at, here, count, size, start


def _entries(raw: bytes, count: int, start: int) -> list[_Entry]:
    entries: list[_Entry] = []
    at = 0
    for _ in range(count):
        if at + _ENTRY.size > len(raw) or raw[at : at + 4] != _DIRECTORY_SIGNATURE:
            raise Corrupt(f"its directory is damaged at byte {start + at}")
        fields = _ENTRY.unpack_from(raw, at)
        _, _, version, flags, method, _, _, crc, packed, size, *lengths, disk, _, attributes, header = fields
        name_length, extra_length, comment_length = lengths
        name_at = at + _ENTRY.size
        name = raw[name_at : name_at + name_length]
        extra = raw[name_at + name_length : name_at + name_length + extra_length]
        at = name_at + name_length + extra_length + comment_length
        if attributes & _DIRECTORY_ATTRIBUTE and size:
            raise Corrupt(f"its directory marks a member with bytes as a folder at byte {start + name_at}")
        if at > len(raw) or disk or version > _NEWEST_VERSION:
            raise Corrupt(f"its directory is damaged at byte {start + name_at}")
        size, packed, header = _widen(extra, size, packed, header, start + name_at)
        entries.append(_Entry(name, flags, method, crc, packed, size, header))
    if at != len(raw):
        raise Corrupt(f"its directory has {len(raw) - at} bytes too many at byte {start + at}")
    return entries


def _widen(extra: bytes, size: int, packed: int, header: int, where: int) -> tuple[int, int, int]:
    """Replace fields that did not fit into 32 bits by those of the zip64 extra field."""
    wanted = [value == _FULL_32 for value in (size, packed, header)]
    if not any(wanted):
        return size, packed, header
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            if length < 8 * sum(wanted) or at + 4 + length > len(extra):
                break
            wide = iter(struct.unpack_from(f"<{sum(wanted)}Q", extra, at + 4))
            fields = [next(wide) if want else value for want, value in zip(wanted, (size, packed, header), strict=True)]
            return fields[0], fields[1], fields[2]
        at += 4 + length
    raise Corrupt(f"its directory lacks a long size at byte {where}")


def _member(source: ByteRange, entry: _Entry, limit: int) -> tuple[Region, int]:
    label = _label(entry.name)
    packing = _METHODS.get(entry.method)
    if entry.flags & _ENCRYPTED or packing is None:
        raise Opaque(f"member {label} is encrypted or packed by method {entry.method}")
    if entry.header + _LOCAL.size > limit:
        raise Corrupt(f"member {label} begins at byte {entry.header}, after the start of the directory")
    header = _LOCAL.unpack(source.read(entry.header, _LOCAL.size))
    signature, _, flags, method, _, _, crc, packed, size, name_length, extra_length = header
    data_start = entry.header + _LOCAL.size + name_length + extra_length
    end = data_start + entry.packed
    if signature != LOCAL_SIGNATURE or method != entry.method or flags != entry.flags:
        raise Corrupt(f"the header of member {label} at byte {entry.header} is damaged")
    if end > limit:
        raise Corrupt(f"member {label} reaches into the directory at byte {limit}")
    if source.read(entry.header + _LOCAL.size, name_length) != entry.name:
        raise Corrupt(f"the header of member {label} at byte {entry.header} has another name")
    described = bool(flags & _HAS_DESCRIPTOR)
    for own, listed in ((crc, entry.crc), (packed, entry.packed), (size, entry.size)):
        if own not in {listed, _FULL_32} and not (described and own == 0):
            raise Corrupt(f"the header of member {label} at byte {entry.header} contradicts the directory")
    if entry.method == 0 and entry.packed != entry.size:
        raise Corrupt(f"member {label} is stored in {entry.packed} bytes but has {entry.size}")
    if described:
        end = _descriptor_end(source, entry, end, limit)
    name = entry.name.decode("utf-8", "replace")
    if name.startswith("/") or ".." in name.split("/") or "\\" in name:
        raise Corrupt(f"member {label} has a name outside of the archive")
    member = Region(
        label=name, start=data_start, size_bytes=entry.size, crc=entry.crc, packing=packing, packed_bytes=entry.packed
    )
    return member, end


def _descriptor_end(source: ByteRange, entry: _Entry, at: int, limit: int) -> int:
    raw = source.read(at, min(24, limit - at))
    for layout in ("<4s3L", "<4sL2Q"):
        record = struct.Struct(layout)
        if len(raw) >= record.size:
            signature, crc, packed, size = record.unpack_from(raw)
            if (signature, crc, packed, size) == (_DESCRIPTOR_SIGNATURE, entry.crc, entry.packed, entry.size):
                return at + record.size
    if raw[:12] == struct.pack("<3L", entry.crc, entry.packed & _FULL_32, entry.size & _FULL_32):
        return at + 12
    raise Corrupt(f"the descriptor of member {_label(entry.name)} at byte {at} contradicts the directory")


def _label(name: bytes) -> str:
    return shown(name.decode("utf-8", "replace"))
