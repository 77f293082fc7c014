"""How slow a machine is at the moment: bounds on time count the seconds that a program would have taken alone."""

import contextlib
import threading
import time
from collections.abc import Iterator

PAUSE_S = 0.1
WORK_S = 0.003
"""CPU time of each measurement, in seconds: 3 % of a core."""


class Slowness:
    """Measured all along by a thread that computes a little again and again."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._wall_s = self._cpu_s = 0.0
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()

    def _measure(self) -> None:
        while not self._over.wait(PAUSE_S):
            wall, cpu = time.monotonic(), time.thread_time()
            while time.thread_time() - cpu < WORK_S:
                pass
            self._wall_s += time.monotonic() - wall
            self._cpu_s += time.thread_time() - cpu

    @property
    def factor(self) -> float:
        """Seconds that a second of CPU time took: about 1 on an idle machine."""
        return max(1.0, self._wall_s / self._cpu_s) if self._cpu_s else 1.0

    def end(self) -> None:
        self._over.set()
        self._thread.join()


@contextlib.contextmanager
def slowness() -> Iterator[Slowness]:
    """The slowness of the machine during this block."""
    made = Slowness()
    try:
        yield made
    finally:
        made.end()
