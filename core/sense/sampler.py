"""A sensor that looks at its part of the world once per period, in its own thread."""

import threading
import time

from ..model.ports import AttemptTarget
from .sensor_problem import OnTrouble, TroubleReport, unheard

JOIN_S = 1.0
"""Longest wait for a sensor's thread at its end: a stuck file system must not hold the supervisor (daemon threads)."""


class Sampler:
    """Calls ``sample`` every ``interval_s``, and at once when another attempt is followed.

    ``sample`` may be called directly (tests do). What it raises is reported through ``on_trouble`` and tried again.
    """

    name = "sensor"

    def __init__(self, *, interval_s: float, on_trouble: OnTrouble = unheard) -> None:
        self._interval_s = interval_s
        self._trouble = TroubleReport(on_trouble)
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.target: AttemptTarget | None = None

    def start(self) -> None:
        """Begin. Returns at once."""
        self._thread = threading.Thread(target=self._run, name=f"sense-{self.name}", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Another attempt is live from now on."""
        self.target = target
        self._wake.set()

    def stop(self) -> None:
        """End and join."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    @property
    def stopping(self) -> bool:
        """Whether ``stop`` was called; a long ``sample`` looks at it."""
        return self._stopping

    def sample(self) -> None:
        """Look once and put what was seen into the inbox."""
        raise NotImplementedError

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping:
            self._wake.clear()
            try:
                self.sample()
                self._trouble.clear(self.name)
            except Exception as fault:
                self._trouble.say(
                    self.name,
                    f"{self.name} cannot be read ({fault!r}); it is tried again every "
                    f"{self._interval_s:g} s and the training goes on",
                )
            due = max(due + self._interval_s, time.monotonic())
            self._wake.wait(max(0.0, due - time.monotonic()))
