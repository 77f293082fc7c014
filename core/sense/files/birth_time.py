"""When a file was made: ``statx``, which Python does not offer on Linux (3.11 to 3.14)."""

import ctypes
import os
from pathlib import Path

AT_FDCWD = -100
STATX_BTIME = 0x800
_BYTES = 256
"""Size of ``struct statx`` (statx(2))."""
_MASK = slice(0, 4)
_SECONDS = slice(0x50, 0x58)
_NANOSECONDS = slice(0x58, 0x5C)
"""``stx_btime`` behind twelve fields and ``stx_atime``."""


def _function() -> "ctypes._NamedFuncPointer | None":
    found = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
    return found


_statx = _function()


def born_ns(path: Path) -> int | None:
    """In ns since the epoch; None if the file system, the kernel or the C library does not tell."""
    if _statx is None:
        return None
    buffer = ctypes.create_string_buffer(_BYTES)
    if _statx(AT_FDCWD, os.fsencode(path), 0, STATX_BTIME, buffer) != 0:
        return None
    data = buffer.raw
    if not int.from_bytes(data[_MASK], "little") & STATX_BTIME:
        return None
    seconds = int.from_bytes(data[_SECONDS], "little", signed=True)
    return seconds * 1_000_000_000 + int.from_bytes(data[_NANOSECONDS], "little")
