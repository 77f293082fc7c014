"""Base class of sensors that take a sample once per period, in a thread of their own."""

import threading
import time

from ..model.ports.rounds import next_round
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
        self._due_s = 0.0
        """Monotonic seconds; 0: at once."""
        self._thread: threading.Thread | None = None
        self.target: AttemptTarget | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"sense-{self.name}", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt that samples are taken of."""
        self.target = target
        self._due_s = 0.0
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

    def sample_if_due(self, now: float | None = None) -> float:
        """Take a sample if it is time. Returns when the next one is due (monotonic seconds).

        ``now``: one moment for several samplers, which are due together then, too.
        """
        now = time.monotonic() if now is None else now
        if now >= self._due_s and not self._stopping:
            self._due_s = next_round(now, self._interval_s)
            self._sample_or_report()
        return self._due_s

    def share_wake(self, wake: threading.Event) -> None:
        """Set the event that wakes the thread which takes the samples, instead of one of its own."""
        self._wake = wake

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            self._wake.wait(max(0.0, self.sample_if_due() - time.monotonic()))

    def _sample_or_report(self) -> None:
        try:
            self.sample()
            self._problems.clear(self.name)
        except Exception as fault:
            self._problems.report(
                self.name,
                f"{self.name} cannot be read ({fault!r}); it is read again every "
                f"{self._interval_s:g} s and the training continues",
            )


class SamplersInOneThread:
    """Takes the samples of several samplers in one thread. Implements Sensor.

    It is for samplers whose system calls never block: one that blocks would delay the others.
    """

    def __init__(self, *samplers: Sampler) -> None:
        self._samplers = samplers
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        for sampler in samplers:
            sampler.share_wake(self._wake)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sense-samples", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        for sampler in self._samplers:
            sampler.follow(target)

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
        for sampler in self._samplers:
            sampler.stop()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            now = time.monotonic()
            due_s = min([sampler.sample_if_due(now) for sampler in self._samplers])
            self._wake.wait(max(0.0, due_s - time.monotonic()))
