"""Run time: seconds since the run was created, on a clock that includes suspends and never goes back."""

import threading
import time

# Only Linux has a clock that counts suspends; elsewhere run time stops while the machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_seconds() -> float:
    """Seconds on a clock that nobody sets and that counts suspends, from an unknown beginning."""
    return time.clock_gettime(_CLOCK)


class RunClock:
    """The Clock of model/ports.py. Thread-safe.

    The time of day is read once, when the clock is made; then only the boot clock counts, so a corrected time of day
    (NTP, a user) moves no deadline. ``not_before``: the newest ``t`` in the journal: an adopting supervisor never goes
    back in time, and its time goes on from there if the time of day was set back meanwhile.
    """

    def __init__(self, created_wall: float, *, not_before: float = 0.0) -> None:
        self._offset = max(time.time() - created_wall, not_before, 0.0)
        self._boot = time.clock_gettime(_CLOCK)
        self._newest = max(not_before, 0.0)
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds since the run was created, never less than an earlier answer."""
        elapsed = self._offset + time.clock_gettime(_CLOCK) - self._boot
        with self._lock:
            self._newest = max(self._newest, elapsed)
            return self._newest

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()
