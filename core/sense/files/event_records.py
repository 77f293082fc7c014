"""Records of a TensorBoard event file (TFRecord): length, masked CRC32C of it, data, masked CRC32C of that.

A file is read while its trainer writes it: a record that is not whole yet is read again later, and never counts as
damage (TensorBoard gives one error for both: github.com/tensorflow/tensorboard/pull/3194). Large records hold images
and histograms; they are passed over unread.
"""

import os
import struct
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("<QI")
CRC = struct.Struct("<I")
SCALAR_BYTES = 16 * 1024
"""A record with scalars has about a hundred bytes; a longer one is passed over. Its CRC would cost 1 ms each 10 kB."""
LONGEST_BYTES = 1 << 32
"""A longer record is no record: the length is damaged."""
_MASK = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78


def _table() -> tuple[int, ...]:
    rows = []
    for row in range(256):
        for _ in range(8):
            row = row >> 1 ^ (_POLYNOMIAL if row & 1 else 0)  # noqa: PLW2901  a register
        rows.append(row)
    return tuple(rows)


_ROWS = _table()


def masked_crc(data: bytes) -> int:
    """The checksum of ``data`` as TFRecord stores it: CRC32C (Castagnoli), rotated and shifted."""
    crc = _MASK
    for byte in data:
        crc = crc >> 8 ^ _ROWS[(crc ^ byte) & 0xFF]
    crc ^= _MASK
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & _MASK


class Damaged(Exception):  # noqa: N818  named after the condition
    """What follows cannot be divided into records. The message says where."""


class Records(NamedTuple):
    """Whole records from an offset on, and where the next one begins. ``bad``: records whose checksum is wrong."""

    data: tuple[bytes, ...]
    offset: int
    bad: int = 0


def read_records(path: Path, offset: int = 0, limit_bytes: int = 4 << 20) -> Records:
    """Read about ``limit_bytes`` from ``offset`` on, whole records only. Raises OSError, Damaged."""
    found: list[bytes] = []
    bad = 0
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        size = os.fstat(descriptor).st_size
        end = offset + limit_bytes
        while offset < end:
            head = os.pread(descriptor, HEAD.size, offset)
            if len(head) < HEAD.size or not any(head):  # zeros: room that a file system made in advance
                break
            length, crc = HEAD.unpack(head)
            if masked_crc(head[:8]) != crc or length > LONGEST_BYTES:
                if found:
                    break  # the next call begins here
                raise Damaged(f"{path}: no record at byte {offset}")
            after = offset + HEAD.size + length + CRC.size
            if after > size:
                break
            if length <= SCALAR_BYTES:
                body = os.pread(descriptor, length + CRC.size, offset + HEAD.size)
                if len(body) < length + CRC.size:
                    break
                data = body[:length]
                if masked_crc(data) == CRC.unpack(body[length:])[0]:
                    found.append(data)
                elif after == size:
                    break  # the last one: its end is not written yet
                else:
                    bad += 1
            offset = after
    finally:
        os.close(descriptor)
    return Records(tuple(found), offset, bad)
