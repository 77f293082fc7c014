"""Base class of sensors that take a sample once per period, in a thread of their own."""

import threading
import time

from ..model.ports.supervision import AttemptTarget
from .sensor_problem import OnProblem, ProblemReport, ignore_problem

JOIN_S = 1.0
"""Longest wait for a sensor's thread at its end. Threads are daemons, so a stuck file system delays nothing else."""


class Sampler:
    """Calls ``sample`` every ``interval_s``, and at once when another attempt is followed.

    An exception of ``sample`` is reported by ``on_problem``, and the next sample is taken after the interval.
    """

    name = "sensor"

    def __init__(self, *, interval_s: float, on_problem: OnProblem = ignore_problem) -> None:
        self._interval_s = interval_s
        self._problems = ProblemReport(on_problem)
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.target: AttemptTarget | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"sense-{self.name}", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt that samples are taken of."""
        self.target = target
        self._wake.set()

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    @property
    def stopping(self) -> bool:
        """Whether ``stop`` was called. A long ``sample`` checks it."""
        return self._stopping

    def sample(self) -> None:
        """Take one sample and put it into the inbox."""
        raise NotImplementedError

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping:
            self._wake.clear()
            try:
                self.sample()
                self._problems.clear(self.name)
            except Exception as fault:
                self._problems.report(
                    self.name,
                    f"{self.name} cannot be read ({fault!r}); it is read again every "
                    f"{self._interval_s:g} s and the training continues",
                )
            due = max(due + self._interval_s, time.monotonic())
            self._wake.wait(max(0.0, due - time.monotonic()))
