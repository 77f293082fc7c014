"""Base class of sensors that take a sample once per period, in a thread of their own."""

import os
import select
import threading
import time
from collections.abc import Callable

from ..model.rounds import next_round
from ..model.supervision_ports import AttemptTarget

# Sentences of a sensor about what it cannot read, without repetitions.

OnProblem = Callable[[str], None]
"""Receives a sentence (what, where, what to do next) in the sensor's thread. Must not block."""


def ignore_problem(_sentence: str) -> None:
    """For sensors without a receiver."""


class ProblemReport:
    """Passes a sentence on if it differs from the last one about the same subject."""

    def __init__(self, on_problem: OnProblem) -> None:
        self._on_problem = on_problem
        self._said: dict[str, str] = {}

    def report(self, subject: str, sentence: str) -> None:
        """Report ``sentence`` about ``subject`` unless it was the last one about it."""
        if self._said.get(subject) != sentence:
            self._said[subject] = sentence
            self._on_problem(sentence)

    def clear(self, subject: str) -> None:
        """Forget the subject's last sentence, because it works again."""
        self._said.pop(subject, None)


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


# A pipe that wakes a thread which waits in ``poll``.


class Wakeup:
    """``poll.register(wakeup, POLLIN)`` in one thread, ``wake`` from any other. Has two descriptors until closed."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._read

    def wake(self) -> None:
        """Wake the waiting thread, now or at its next wait. Does not block."""
        try:
            os.write(self._write, b"!")
        except OSError:
            return  # full: it is awake already; or closed: it has ended

    def wait(self, timeout_s: float) -> None:
        """Wait until somebody wakes it, at most this long."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        poll.poll(max(0.0, timeout_s) * 1000)

    def clear(self) -> None:
        """Clear all wakeups so far."""
        try:
            while os.read(self._read, 4096):
                pass
        except BlockingIOError:
            return

    def close_after(self, thread: threading.Thread | None) -> None:
        """Join the waiting thread, then close the descriptors. They stay open if the thread does not end."""
        if thread is not None:
            thread.join(JOIN_S)
            if thread.is_alive():
                return
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1
