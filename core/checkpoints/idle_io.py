"""Read at idle disk priority: the kernel serves us only when nobody else wants the disk (ioprio_set(2))."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_CALLS = {"x86_64": (251, 252), "aarch64": (30, 31)}
"""System call numbers of ioprio_set and ioprio_get, which libc does not wrap."""
_WHO_PROCESS = 1
_CALLING_THREAD = 0
_IDLE = 3 << 13


@contextmanager
def idle_io_priority() -> Iterator[bool]:
    """Run the block with the calling thread in the idle I/O class; yields whether that worked.

    Best effort: schedulers other than BFQ ignore it, and on other machines it does nothing.
    """
    calls = _CALLS.get(platform.machine())
    if calls is None:
        yield False
        return
    libc = ctypes.CDLL(None, use_errno=True)
    set_call, get_call = calls
    before = libc.syscall(get_call, _WHO_PROCESS, _CALLING_THREAD)
    lowered = before >= 0 and libc.syscall(set_call, _WHO_PROCESS, _CALLING_THREAD, _IDLE) == 0
    try:
        yield lowered
    finally:
        if lowered:
            libc.syscall(set_call, _WHO_PROCESS, _CALLING_THREAD, before)
