"""Deep check of one tensor file: every checksum, and every value of every tensor finite, one buffer at a time.

numpy is imported when something is scanned. float16, bfloat16 and float8 are tested as integers by their largest bit
pattern, once signed and once unsigned: no conversion, no temporary; float32 and float64 by numpy's test.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...model.checkpoint import NAMES_KEPT
from .byte_range import ByteRange, Corrupt, Damage, NonFinite, Pace, crc32
from .tensors import FileContents, FiniteCheck, Region, Tensor, shown

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_BYTES = 1 << 20
"""Fits into the second-level cache, so that checksum and test read what the copy from the kernel just put there."""

BadValues = Callable[["Array", "Array", "Array"], None]
"""Called with the positions of bad values of a region (parts: elements, or halves of complex ones), and which of them
are -Inf and which are NaN."""

_INTEGER_TESTS: dict[FiniteCheck, tuple[int, int, int, bool]] = {
    # bytes, smallest bad pattern with the sign clear, smallest with the sign set, whether the latter is -Inf
    "float16": (2, 0x7C00, 0xFC00, True),
    "bfloat16": (2, 0x7F80, 0xFF80, True),
    "e4m3": (1, 0x7F, 0xFF, False),
    "e5m2": (1, 0x7C, 0xFC, True),
    "e8m0": (1, 0x100, 0xFF, False),
}
_FLOAT_BYTES: dict[FiniteCheck, int] = {"float32": 4, "float64": 8}
_MASK_WORD = "mask"
"""Attention masks that are saved as buffers hold -Inf by design."""


def _part_bytes(check: FiniteCheck) -> int:
    return _FLOAT_BYTES.get(check) or (_INTEGER_TESTS[check][0] if check in _INTEGER_TESTS else 1)


class Scanner:
    """Reads regions through a buffer that is allocated once."""

    def __init__(self, pace: Pace) -> None:
        import numpy as np

        self._np = np
        self.pace = pace
        self._buffer = np.empty(CHUNK_BYTES, dtype=np.uint8)
        self.only_zeros: bool | None = None
        """Whether every value that was tested since this was last set to None is zero; None: none was tested."""

    def scan(self, source: ByteRange, region: Region, on_bad: BadValues | None = None) -> int:
        """Read a region, report what is not finite; returns the CRC-32 of what is unpacked (0 if none is stored).

        Raises Torn when the file ends early, Corrupt when it cannot be unpacked.
        """
        check = region.element.check if region.element is not None and on_bad is not None else "none"
        width = _part_bytes(check)
        crc = at = 0
        for chunk in (self._deflated if region.packing == "deflated" else self._stored)(source, region):
            crc = crc32(chunk.data, crc) if region.crc is not None else 0
            if check != "none" and on_bad is not None:
                # pieces of an unpacked stream may cut a value; its two halves are then not tested
                skip = -at % width
                bad = self._bad(chunk[skip : skip + (len(chunk) - skip) // width * width], check, region)
                if bad is not None:
                    on_bad(bad[0].astype(self._np.int64) + (at + skip) // width, bad[1], bad[2])
            at += len(chunk)
        return crc

    def _stored(self, source: ByteRange, region: Region) -> "Iterator[Array]":
        for done in range(0, region.size_bytes, CHUNK_BYTES):
            buffer = self._buffer[: min(CHUNK_BYTES, region.size_bytes - done)]
            source.is_read_to(region.start + done)
            source.fill(buffer.data, region.start + done)
            yield buffer
            self.pace.advance(len(buffer))

    def _deflated(self, source: ByteRange, region: Region) -> "Iterator[Array]":
        """Never unpacks more than the region claims."""
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        done, read, held = 0, 0, b""
        while not unpacker.eof:
            if not held and read < region.packed_bytes:
                length = min(CHUNK_BYTES, region.packed_bytes - read)
                source.is_read_to(region.start + read)
                held = source.read(region.start + read, length)
                read += length
                self.pace.advance(length)
            try:
                unpacked = unpacker.decompress(held, CHUNK_BYTES)
            except zlib.error as error:
                raise Corrupt(f"cannot be unpacked after {done} bytes") from error
            held = unpacker.unconsumed_tail
            if not unpacked and not held and read >= region.packed_bytes and not unpacker.eof:
                raise Corrupt(f"its packed bytes end after {done} of {region.size_bytes}")
            done += len(unpacked)
            if done > region.size_bytes:
                raise Corrupt(f"unpacks to more than the {region.size_bytes} bytes it claims")
            yield self._np.frombuffer(unpacked, dtype=self._np.uint8)
        if done != region.size_bytes:
            raise Corrupt(f"unpacks to {done} bytes instead of {region.size_bytes}")

    def _bad(self, chunk: "Array", check: FiniteCheck, region: Region) -> "tuple[Array, Array, Array] | None":
        """Positions of bad values in a chunk of whole values, which are -Inf, which are NaN; None: all are finite."""
        np = self._np
        if not len(chunk):
            return None
        if self.only_zeros is not False:
            self.only_zeros = not chunk.any()
        order = ">" if region.big_endian else "<"
        if check in _FLOAT_BYTES:
            values = chunk.view(f"{order}f{_FLOAT_BYTES[check]}")
            positions = np.flatnonzero(~np.isfinite(values))
            found = values[positions]
            return (positions, found == -np.inf, np.isnan(found)) if len(positions) else None
        if check == "fnuz":
            positions = np.flatnonzero(chunk == 0x80)
            nan = np.ones(len(positions), dtype=np.bool_)
            return (positions, ~nan, nan) if len(positions) else None
        width, positive, negative, has_infinity = _INTEGER_TESTS[check]
        patterns = chunk.view(f"{order}u{width}")
        # signed, the largest is the largest positive number; unsigned, the largest negative one
        if int(patterns.view(f"{order}i{width}").max()) < positive and int(patterns.max()) < negative:
            return None
        sign = 1 << (8 * width - 1)
        positions = np.flatnonzero((patterns >= negative) | ((patterns >= positive) & (patterns < sign)))
        found = patterns[positions]
        infinite = ((found == negative) | (found == positive)) & has_infinity
        return positions, (found == negative) & has_infinity, ~infinite


def check_values(source: ByteRange, contents: FileContents, scanner: Scanner) -> list[Damage]:
    """Read every region of a file once; returns what is wrong (empty: nothing). Raises Damage when it cannot be read.

    A value that no tensor covers is not tested: storages may be larger than the views of them.
    """
    views: dict[int, list[Tensor]] = {}
    for tensor in contents.tensors:
        if tensor.region is not None:
            views.setdefault(tensor.region, []).append(tensor)
    tally, damages = _Tally(), list[Damage]()
    with suppress(OSError):  # that all of it is read in order; some filesystems do not support it
        os.posix_fadvise(source.fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    for index in sorted(range(len(contents.regions)), key=lambda index: contents.regions[index].start):
        region = contents.regions[index]
        crc = scanner.scan(source, region, tally.of(region, views.get(index, [])))
        if region.crc is not None and crc != region.crc:
            damages.append(Corrupt(f"member {shown(region.label)} at byte {region.start} has a wrong checksum"))
    finding = tally.finding()
    return damages if finding is None else [*damages, finding]


class _Tally:
    """Counts non-finite values by tensor."""

    def __init__(self) -> None:
        self._count = 0
        self._names: dict[str, None] = {}
        self._nan: dict[str, None] = {}
        self._first = ("", 0)

    def of(self, region: Region, views: list[Tensor]) -> BadValues:
        """Takes the bad values of a region; each counts for the first of its views that covers it."""
        check, bits = (region.element.check, region.element.bits) if region.element else ("none", 8)
        width = _part_bytes(check)
        parts = max(1, bits // (8 * width))

        def add(positions: "Array", negative: "Array", nan: "Array") -> None:
            for tensor in views:
                if not tensor.tested:
                    continue
                within = _covered(tensor, positions // parts)
                if _MASK_WORD in tensor.name.lower():
                    within &= ~negative
                if within.any():
                    if not self._count:
                        self._first = tensor.name, region.start + int(positions[within][0]) * width
                    self._count += int(within.sum())
                    self._names[tensor.name] = None
                    if nan[within].any():
                        self._nan[tensor.name] = None
                    positions, negative, nan = positions[~within], negative[~within], nan[~within]

        return add

    def finding(self) -> NonFinite | None:
        if not self._count:
            return None
        name, at = self._first
        where = f"in tensor {shown(name)}" if len(self._names) == 1 else f"in {len(self._names)} tensors"
        first = f"at byte {at}" if len(self._names) == 1 else f"{shown(name)} at byte {at}"
        kept = tuple(self._names)[:NAMES_KEPT], tuple(self._nan)[:NAMES_KEPT]
        return NonFinite(f"holds {self._count} NaN or Inf {where}, the first {first}", names=kept[0], nan=kept[1])


def _covered(tensor: Tensor, elements: "Array") -> "Array":
    """Which element positions of a region the tensor covers.

    Exact for views whose strides nest (all that torch makes from slicing and transposing); for others it may take too
    many as covered, never too few.
    """
    inside: Array = elements >= tensor.offset
    if tensor.contiguous:
        inside &= elements < tensor.offset + tensor.count
        return inside
    rest = elements - tensor.offset
    strides = tensor.strides or ()
    for stride, length in sorted(zip(strides, tensor.shape, strict=True), reverse=True):
        if stride > 0 and length > 1:
            steps = rest // stride
            steps[steps > length - 1] = length - 1
            rest -= steps * stride
    inside &= rest == 0
    return inside
