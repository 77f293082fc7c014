"""Messages over a pipe: each in msgpack behind its length in four bytes."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from ...model.remote.messages import LONGEST
from ..atomic import write_all

T = TypeVar("T")
_READ_BYTES = 1 << 18


class Frames(Generic[T]):
    """Reads messages of a type. ``first``: bytes that were read already."""

    def __init__(self, descriptor: int, type_: object, first: bytes = b"") -> None:
        self._descriptor = descriptor
        self._decode: Callable[[bytes], T] = msgspec.msgpack.Decoder(type_).decode
        self._kept = bytearray(first)

    def next(self) -> T | None:
        """Waits for the next one; None at the end. Raises ValueError for what is no message, OSError."""
        while True:
            if len(self._kept) >= 4:
                size = int.from_bytes(self._kept[:4], "big")
                if size > LONGEST:
                    raise ValueError("what comes over the line is not of trainwatch")
                if len(self._kept) >= 4 + size:
                    data = bytes(self._kept[4 : 4 + size])
                    del self._kept[: 4 + size]
                    return self._decode(data)
            got = os.read(self._descriptor, _READ_BYTES)
            if not got:
                return None
            self._kept += got


class FrameWriter:
    """Writes messages, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._encode = msgspec.msgpack.Encoder().encode

    def send(self, message: object) -> int:
        """How many bytes it took. Raises OSError."""
        data = self._encode(message)
        with self._lock:
            write_all(self._descriptor, len(data).to_bytes(4, "big") + data)
        return 4 + len(data)
