"""Scalars in records of a TensorBoard event file, by the fields of its protocol buffers; no library is needed.

Source: tensorboard's ``event.proto``, ``summary.proto`` and ``tensor.proto``. PyTorch, TensorFlow 1, Lightning and
Hugging Face write ``simple_value``; TensorFlow 2 and Keras write a tensor of one element.
"""

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

TAG_CHARACTERS = 200


class Scalar(NamedTuple):
    """One value. ``wall``: when it was logged, epoch seconds. Finite."""

    tag: str
    step: int
    wall: float
    value: float


_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
Field = tuple[int, int, int | bytes]
"""Number, wire type, and a number (varint) or the raw bytes."""


def scalars(record: bytes) -> Iterator[Scalar]:
    """All finite scalars of one record; none if it is no event or holds other things."""
    try:
        yield from _of_event(record)
    except (IndexError, ValueError, struct.error, OverflowError):
        return


def _of_event(record: bytes) -> Iterator[Scalar]:
    wall, step, summaries = 0.0, 0, []
    for number, wire, value in _fields(record):
        if number == 1 and wire == _DOUBLE and isinstance(value, bytes):
            wall = struct.unpack("<d", value)[0]
        elif number == 2 and wire == _VARINT and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, wire, value in _fields(summary):
            if number == 1 and wire == _BYTES and isinstance(value, bytes):
                tag, scalar = _of_value(value)
                if tag and scalar is not None and math.isfinite(scalar):
                    yield Scalar(tag, step, wall, scalar)


def _of_value(value: bytes) -> tuple[str, float | None]:
    """Tag and scalar of a ``Summary.Value``."""
    tag, scalar = "", None
    for number, wire, content in _fields(value):
        if number == 1 and isinstance(content, bytes):
            tag = content[: 4 * TAG_CHARACTERS].decode("utf-8", "replace")[:TAG_CHARACTERS]
        elif number == 2 and wire == _FLOAT and isinstance(content, bytes):
            scalar = struct.unpack("<f", content)[0]
        elif number == 8 and isinstance(content, bytes):
            scalar = _of_tensor(content)
    return tag, scalar


_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}
"""dtype → one element of ``tensor_content``: float, double, int32, int64."""
_LISTS = {5: "<f", 6: "<d"}
"""Field of the values in a list → one element."""


_WHOLE = frozenset({7, 10})
"""Fields of whole numbers (int_val, int64_val), one after the other or packed."""
_SIGNED = frozenset({3, 9})


def _of_tensor(tensor: bytes) -> float | None:
    """The value of a tensor of one element; None for every other one."""
    kind, raw, values = 0, b"", []
    for number, _, content in _fields(tensor):
        if number == 1 and isinstance(content, int):
            kind = content
        elif number == 4 and isinstance(content, bytes):
            raw = content
        elif number in _LISTS and isinstance(content, bytes):
            values += [one for (one,) in struct.iter_unpack(_LISTS[number], content)]
        elif number in _WHOLE:
            values += [content] if isinstance(content, int) else _packed(content)
    if raw and kind in _FORMATS and len(raw) == struct.calcsize(_FORMATS[kind]):
        return float(struct.unpack(_FORMATS[kind], raw)[0])
    if len(values) != 1 or raw:
        return None
    return float(values[0] - (1 << 64) if values[0] >= 1 << 63 and kind in _SIGNED else values[0])


def _packed(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield value


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message. Raises IndexError or ValueError if it is none."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        elif wire in {_DOUBLE, _FLOAT}:
            length = 8 if wire == _DOUBLE else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at + length > end:
            raise ValueError("cut off")
        yield number, wire, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where what follows it begins."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")
