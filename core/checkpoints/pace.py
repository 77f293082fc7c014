"""Progress of a long read and its speed limit, so that the trainer's own loader is not starved."""

import time
from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]
"""Called with bytes done and bytes in all; what it raises ends the read and reaches the caller (cancel)."""

_REPORT_BYTES = 16 << 20


class Pace:
    """Counts bytes read, reports them now and then, and sleeps when they come faster than the limit."""

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
        """Everything is read: report the whole, whatever was skipped."""
        if self._progress is not None:
            self._progress(self.total, self.total)
