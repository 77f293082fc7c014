"""Long reads that do not starve the trainer's own loader: idle disk priority, a speed limit, progress."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ProgressCallback = Callable[[int, int], None]
"""Called with bytes done and bytes in all; what it raises ends the read and reaches the caller (cancel)."""

BESIDE_TRAINING_BYTES_PER_S = 400e6
"""Limit of a deep verification beside a running training, whose loader needs the disk."""
_REPORT_BYTES = 16 << 20


class Pace:
    """Counts the bytes read, reports every 16 MB, and sleeps when reading is faster than the limit."""

    def __init__(
        self,
        total: int,
        progress: ProgressCallback | None = None,
        rate_limit_bytes_per_s: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if rate_limit_bytes_per_s is not None and rate_limit_bytes_per_s <= 0:
            raise ValueError(f"rate limit must be above 0 bytes per second, not {rate_limit_bytes_per_s}")
        self.total = total
        self.done = 0
        self._progress = progress
        self._rate = rate_limit_bytes_per_s
        self._clock = clock
        self._sleep = sleep
        self._began = clock()
        self._reported = 0

    def advance(self, size: int) -> None:
        """``size`` more bytes were read and checked."""
        self.done += size
        if self._rate is not None:
            ahead_s = self.done / self._rate - (self._clock() - self._began)
            if ahead_s > 0:
                self._sleep(ahead_s)
        if self._progress is not None and self.done - self._reported >= _REPORT_BYTES:
            self._reported = self.done
            self._progress(min(self.done, self.total), self.total)

    def finish(self) -> None:
        """Report the total, even if parts were skipped."""
        if self._progress is not None:
            self._progress(self.total, self.total)


_CALLS = {"x86_64": (251, 252), "aarch64": (30, 31)}
"""System call numbers of ioprio_set and ioprio_get, which libc does not wrap."""
_WHO_PROCESS = 1
_CALLING_THREAD = 0
_IDLE = 3 << 13


@contextmanager
def idle_io_priority() -> Iterator[bool]:
    """Run the block with the calling thread in the idle I/O class of ioprio_set(2); yields whether that worked.

    The kernel then serves it only when nobody else wants the disk. Schedulers other than BFQ ignore the class; on
    machines without these call numbers nothing is done.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        yield False
        return
    import ctypes  # slow to import

    libc = ctypes.CDLL(None, use_errno=True)
    set_call, get_call = calls
    before = libc.syscall(get_call, _WHO_PROCESS, _CALLING_THREAD)
    lowered = before >= 0 and libc.syscall(set_call, _WHO_PROCESS, _CALLING_THREAD, _IDLE) == 0
    try:
        yield lowered
    finally:
        if lowered:
            libc.syscall(set_call, _WHO_PROCESS, _CALLING_THREAD, before)
