"""NaN and Inf in stretches of a file, at the speed of memory: read, checksum and judge one buffer at a time.

numpy is imported here and only when something is scanned. float16, bfloat16 and float8 are judged as integers by their
exponent bits, because converting them first costs ten times as much; float32 and float64 by numpy's own test.
"""

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .byte_range import ByteRange
from .damage import Corrupt, Torn
from .element import FiniteCheck
from .pace import Pace

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_BYTES = 1 << 20
"""Fits into the second-level cache, so that checksum and test read what the copy from the kernel just put there."""

BadValues = Callable[[int, "Array", "Array"], None]
"""Called with the byte offset of a chunk, the positions (elements from there) of bad values, and which are -Inf."""

_INTEGER_TESTS: dict[FiniteCheck, tuple[int, int, int, int | None]] = {
    # bytes, mask, smallest bad value after masking, pattern of -Inf
    "float16": (2, 0x7FFF, 0x7C00, 0xFC00),
    "bfloat16": (2, 0x7FFF, 0x7F80, 0xFF80),
    "e4m3": (1, 0x7F, 0x7F, None),
    "e5m2": (1, 0x7F, 0x7C, 0xFC),
    "e8m0": (1, 0xFF, 0xFF, None),
}
_FLOAT_BYTES: dict[FiniteCheck, int] = {"float32": 4, "float64": 8}


class Scanner:
    """Scans byte ranges with buffers that are allocated once."""

    def __init__(self, pace: Pace, chunk_bytes: int = CHUNK_BYTES) -> None:
        import numpy as np

        self._np = np
        self._pace = pace
        self._chunk = chunk_bytes
        self._buffer = np.empty(chunk_bytes, dtype=np.uint8)
        self._scratch = np.empty(chunk_bytes, dtype=np.uint8)
        self._mask = np.empty(chunk_bytes, dtype=np.bool_)

    def scan(
        self,
        source: ByteRange,
        offset: int,
        size: int,
        check: FiniteCheck,
        *,
        on_bad: BadValues,
        checksum: bool = False,
        big_endian: bool = False,
    ) -> int:
        """Read ``size`` bytes, report what is not finite; returns the CRC-32 (0 unless asked for).

        Raises Torn when the file ends early.
        """
        if offset < 0 or offset + size > source.size:
            raise Torn(f"bytes {offset} to {offset + size} are needed, but there are only {source.size}")
        crc, done = 0, 0
        view = self._buffer.data
        while done < size:
            length = min(self._chunk, size - done)
            source.prefetch(offset + done + length)
            source.fill(view[:length], offset + done)
            if checksum:
                crc = zlib.crc32(view[:length], crc)
            if check != "none":
                self.judge(self._buffer[:length], done, check, on_bad, big_endian=big_endian)
            done += length
            self._pace.advance(length)
        return crc

    def scan_deflated(
        self,
        source: ByteRange,
        offset: int,
        packed: int,
        size: int,
        check: FiniteCheck,
        *,
        on_bad: BadValues,
        big_endian: bool = False,
    ) -> int:
        """As ``scan`` for deflated bytes, never unpacking more than ``size`` of them. Returns the CRC-32."""
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        crc, done, read, held = 0, 0, 0, b""
        while not unpacker.eof:
            if not held and read < packed:
                length = min(self._chunk, packed - read)
                held = source.read(offset + read, length)
                read += length
                self._pace.advance(length)
            try:
                unpacked = unpacker.decompress(held, self._chunk)
            except zlib.error as error:
                raise Corrupt(f"cannot be unpacked after {done} bytes") from error
            held = unpacker.unconsumed_tail
            if not unpacked and not held and read >= packed and not unpacker.eof:
                raise Corrupt(f"its packed bytes end after {done} of {size}")
            if done + len(unpacked) > size:
                raise Corrupt(f"unpacks to more than the {size} bytes it claims")
            crc = zlib.crc32(unpacked, crc)
            if check != "none" and unpacked:
                chunk = self._np.frombuffer(unpacked, dtype=self._np.uint8)
                self._judge_stream(chunk, done, check, on_bad, big_endian=big_endian)
            done += len(unpacked)
        if done != size:
            raise Corrupt(f"unpacks to {done} bytes instead of {size}")
        return crc

    def _judge_stream(
        self, chunk: "Array", at: int, check: FiniteCheck, on_bad: BadValues, *, big_endian: bool
    ) -> None:
        width = _FLOAT_BYTES.get(check) or (_INTEGER_TESTS[check][0] if check in _INTEGER_TESTS else 1)
        # pieces of an unpacked stream may cut an element; its two halves are then not judged
        skip = -at % width
        self.judge(chunk[skip:], at + skip, check, on_bad, big_endian=big_endian)

    def judge(self, chunk: "Array", at: int, check: FiniteCheck, on_bad: BadValues, *, big_endian: bool) -> None:
        """Judge the bytes of one chunk, which begins at byte ``at`` of its region."""
        np = self._np
        order = ">" if big_endian else "<"
        if check in _FLOAT_BYTES:
            width = _FLOAT_BYTES[check]
            values = chunk[: len(chunk) // width * width].view(f"{order}f{width}")
            mask = self._mask[: len(values)]
            np.isfinite(values, out=mask)
            if not mask.all():
                positions = np.flatnonzero(~mask)
                on_bad(at, positions, values[positions] == -np.inf)
        elif check == "fnuz":
            mask = self._mask[: len(chunk)]
            np.equal(chunk, 0x80, out=mask)
            if mask.any():
                positions = np.flatnonzero(mask)
                on_bad(at, positions, np.zeros(len(positions), dtype=np.bool_))
        else:
            width, bits, limit, negative = _INTEGER_TESTS[check]
            values = chunk[: len(chunk) // width * width].view(f"{order}u{width}")
            magnitude = self._scratch[: len(values) * width].view(f"u{width}")
            np.bitwise_and(values, bits, out=magnitude)
            if len(values) and int(magnitude.max()) >= limit:
                positions = np.flatnonzero(magnitude >= limit)
                is_negative = np.zeros(len(positions), dtype=np.bool_)
                if negative is not None:
                    is_negative = values[positions] == negative
                on_bad(at, positions, is_negative)
