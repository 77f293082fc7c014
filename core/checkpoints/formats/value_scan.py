"""Finds NaN and Inf in ranges of a file: one buffer at a time is read, checksummed and tested.

numpy is imported here and only when something is scanned. float16, bfloat16 and float8 are tested as integers by their
largest bit pattern, once signed and once unsigned: no conversion, no temporary; float32 and float64 by numpy's test.
"""

import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from .byte_range import IS_FAST, ByteRange, Corrupt, Pace, Torn, crc32
from .elements import FiniteCheck

if TYPE_CHECKING:
    import numpy as np


if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_BYTES = 1 << 20
"""Fits into the second-level cache, so that checksum and test read what the copy from the kernel just put there."""

BadValues = Callable[[int, "Array", "Array", "Array"], None]
"""Called with the byte offset of a chunk, the positions (elements from there) of bad values, and which of them are -Inf
and which are NaN."""

_INTEGER_TESTS: dict[FiniteCheck, tuple[int, int, int, bool]] = {
    # bytes, smallest bad pattern with the sign clear, smallest with the sign set, whether the latter is -Inf
    "float16": (2, 0x7C00, 0xFC00, True),
    "bfloat16": (2, 0x7F80, 0xFF80, True),
    "e4m3": (1, 0x7F, 0xFF, False),
    "e5m2": (1, 0x7C, 0xFC, True),
    "e8m0": (1, 0x100, 0xFF, False),
}
_FLOAT_BYTES: dict[FiniteCheck, int] = {"float32": 4, "float64": 8}


class Scanner:
    """Scans byte ranges with buffers that are allocated once. Close it, or use it in ``with contextlib.closing``."""

    def __init__(self, pace: Pace, chunk_bytes: int = CHUNK_BYTES) -> None:
        import numpy as np

        self._np = np
        self._pace = pace
        self._chunk = chunk_bytes
        self._buffers = (np.empty(chunk_bytes, dtype=np.uint8), np.empty(chunk_bytes, dtype=np.uint8))
        # zlib's checksum takes most of the time; in a second thread it runs beside the reading (it releases the GIL)
        self._checksums = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checksum")
        self._mask = np.empty(chunk_bytes, dtype=np.bool_)
        self.only_zeros: bool | None = None
        """Whether every value that was tested since this was last set to None is zero; None: none was tested."""

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
        source.expect_sequential()
        crc, done, turn = 0, 0, 0
        pending: Future[int] | None = None
        try:
            while done < size:
                length = min(self._chunk, size - done)
                buffer = self._buffers[turn][:length]
                turn = 1 - turn
                source.is_read_to(offset + done)
                source.fill(buffer.data, offset + done)
                if checksum and size > self._chunk and not IS_FAST:
                    crc = pending.result() if pending is not None else 0
                    pending = self._checksums.submit(crc32, buffer.data, crc)
                elif checksum:
                    crc = crc32(buffer.data, crc)
                if check != "none":
                    self.test(buffer, done, check, on_bad, big_endian=big_endian)
                done += length
                self._pace.advance(length)
        finally:
            crc = pending.result() if pending is not None else crc
        return crc

    def close(self) -> None:
        self._checksums.shutdown()

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
                source.is_read_to(offset + read)
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
            crc = crc32(unpacked, crc)
            if check != "none" and unpacked:
                chunk = self._np.frombuffer(unpacked, dtype=self._np.uint8)
                self._test_stream(chunk, done, check, on_bad, big_endian=big_endian)
            done += len(unpacked)
        if done != size:
            raise Corrupt(f"unpacks to {done} bytes instead of {size}")
        return crc

    def _test_stream(self, chunk: "Array", at: int, check: FiniteCheck, on_bad: BadValues, *, big_endian: bool) -> None:
        width = _FLOAT_BYTES.get(check) or (_INTEGER_TESTS[check][0] if check in _INTEGER_TESTS else 1)
        # pieces of an unpacked stream may cut an element; its two halves are then not tested
        skip = -at % width
        self.test(chunk[skip:], at + skip, check, on_bad, big_endian=big_endian)

    def test(self, chunk: "Array", at: int, check: FiniteCheck, on_bad: BadValues, *, big_endian: bool) -> None:
        """Test the bytes of one chunk, which begins at byte ``at`` of its region."""
        np = self._np
        if self.only_zeros is not False and len(chunk):
            self.only_zeros = not chunk.any()
        order = ">" if big_endian else "<"
        if check in _FLOAT_BYTES:
            width = _FLOAT_BYTES[check]
            values = chunk[: len(chunk) // width * width].view(f"{order}f{width}")
            mask = self._mask[: len(values)]
            np.isfinite(values, out=mask)
            if not mask.all():
                positions = np.flatnonzero(~mask)
                on_bad(at, positions, values[positions] == -np.inf, np.isnan(values[positions]))
        elif check == "fnuz":
            mask = self._mask[: len(chunk)]
            np.equal(chunk, 0x80, out=mask)
            if mask.any():
                positions = np.flatnonzero(mask)
                on_bad(at, positions, np.zeros(len(positions), dtype=np.bool_), np.ones(len(positions), dtype=np.bool_))
        else:
            width, positive, negative, has_infinity = _INTEGER_TESTS[check]
            patterns = chunk[: len(chunk) // width * width].view(f"{order}u{width}")
            if not len(patterns):
                return
            # signed, the largest is the largest positive number; unsigned, the largest negative one
            largest = int(patterns.view(f"{order}i{width}").max())
            if largest >= positive or int(patterns.max()) >= negative:
                sign = 1 << (8 * width - 1)
                bad = (patterns >= negative) | ((patterns >= positive) & (patterns < sign))
                positions = np.flatnonzero(bad)
                found = patterns[positions]
                infinite = ((found == negative) | (found == positive)) & has_infinity
                on_bad(at, positions, (found == negative) & has_infinity, ~infinite)
