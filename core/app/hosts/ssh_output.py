"""What comes from ssh: standard output behind the line with MARK, and the end of standard error."""

import contextlib
import os
import threading
from typing import IO

from ...act.remote.there import MARK

NOISE_BYTES = 1_000_000
"""Most that the shell's own files may print before trainwatch there begins."""
KEPT_BYTES = 4096
"""Of standard error, for the reason of a failure."""


def behind_mark(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """The version that the line with MARK names, and what came behind it; None: the line never came."""
    head = b""
    mark = MARK.encode()
    while True:
        at = head.find(mark)
        end = head.find(b"\n", at) if at >= 0 else -1
        if end >= 0:
            break
        got = os.read(stream.fileno(), 65_536)
        if not got or len(head) > NOISE_BYTES:
            return None
        head += got
    return version_of(head[at + len(mark) : end].decode(errors="replace")), head[end + 1 :]


def version_of(line: str) -> str:
    """The number in ``trainwatch 0.2.0``; empty if it is none."""
    name, _, number = line.strip().partition(" ")
    return number.strip() if name == "trainwatch" else ""


class Said:
    """Keeps the end of standard error. ``onward``: it is passed on as it comes."""

    def __init__(self, stream: IO[bytes] | None, *, onward: bool) -> None:
        assert stream is not None
        self._stream = stream
        self._onward = onward
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._copy, name="ssh stderr", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        with self._stream, contextlib.suppress(OSError):
            while got := os.read(self._stream.fileno(), 4096):
                self._kept += got
                del self._kept[:-KEPT_BYTES]
                if self._onward:
                    os.write(2, got)

    def text(self) -> str:
        """What came. The shared connection may keep the other end open, so its end is not waited for."""
        self._thread.join(0.2)
        return bytes(self._kept).decode(errors="replace")
