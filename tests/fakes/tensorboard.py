"""Event files of TensorBoard, as its own writer makes them: records of one scalar each."""

import struct

from trainwatch.core.sense.files.scalars import masked_crc


def record(data: bytes) -> bytes:
    """A record: length, checksum, data, checksum."""
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data))


def event(tag: str, value: float, step: int, wall: float) -> bytes:
    """An event with one scalar."""
    name = tag.encode()
    one = b"\x0a" + _varint(len(name)) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + _varint(len(one)) + one
    return b"\x09" + struct.pack("<d", wall) + b"\x10" + _varint(step) + b"\x2a" + _varint(len(summary)) + summary


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))
