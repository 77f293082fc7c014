"""Base classes of sensors: a thread that takes turns, and samplers that do so once per period."""

import os
import select
import threading
import time
from collections.abc import Callable
from typing import NotRequired, TypedDict, Unpack

from ..model.ports import AttemptTarget, Clock, Inbox
from ..model.text import next_round

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
        self._said.pop(subject, None)


LONGEST_WAIT_S = 86_400.0
"""A longer wait ends then: the system call takes 24 days at most, and who waits looks again at what is due."""
JOIN_S = 1.0
"""Longest wait for a sensor's thread at its end. Threads are daemons, so a stuck file system delays nothing else."""


class Wakeup:
    """A pipe that wakes a thread which waits in ``poll``: ``wake`` from any other. Has two descriptors until closed."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        return self._read

    def wake(self) -> None:
        """Wake the waiting thread, now or at its next wait. Does not block."""
        try:
            os.write(self._write, b"!")
        except OSError:
            return  # full: it is awake already; or closed: it has ended

    def wait(self, timeout_s: float | None, *others: int) -> bool:
        """Wait until it is woken or another descriptor is readable, at most this long (None: no limit).

        Returns whether it was woken; the next wait is for the next time.
        """
        poll = select.poll()
        for descriptor in (self._read, *others):
            poll.register(descriptor, select.POLLIN)
        limit_ms = None if timeout_s is None else 1000 * min(max(0.0, timeout_s), LONGEST_WAIT_S)
        woken = any(each == self._read for each, _ in poll.poll(limit_ms))
        if woken:
            os.read(self._read, 1 << 16)  # all that a pipe holds
        return woken

    def close(self) -> None:
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1


DRAIN_S = 0.5
RETRY_S = 0.2
"""Wait after a turn that failed."""


class Worker:
    """A sensor with a thread of its own, which calls ``turn`` until the sensor ends.

    A subclass gives ``name`` and ``turn``; ``close`` is called by the thread at its end.
    """

    name = "sensor"

    def __init__(self, on_problem: OnProblem = ignore_problem) -> None:
        self._problems = ProblemReport(on_problem)
        self._wakeup = Wakeup()
        self._turn_over = threading.Condition()
        self._drains_asked = self._drains_done = 0
        self._stopping = False
        """Whether ``stop`` was called. A long ``turn`` checks it."""
        self._thread: threading.Thread | None = None
        self.target: AttemptTarget | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"sense-{self.name}", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt that is watched."""
        self.target = target
        self._wakeup.wake()

    @property
    def drain_s(self) -> float:
        """Longest wait for a last turn before an exit is reported. A slow network disk must not delay it."""
        return DRAIN_S

    def drain(self, timeout_s: float | None = None) -> bool:
        """Block until a turn is over that began after the call. False: it takes longer than that, or fails."""
        if self._thread is None:
            return True
        with self._turn_over:
            self._drains_asked += 1
            asked = self._drains_asked
            self._wakeup.wake()
            return self._turn_over.wait_for(
                lambda: self._drains_done >= asked or self._stopping, self.drain_s if timeout_s is None else timeout_s
            )

    def stop(self) -> None:
        self._stopping = True
        with self._turn_over:
            self._turn_over.notify_all()
        self._wakeup.wake()
        if self._thread is not None:
            self._thread.join(JOIN_S)
        else:
            self.close()
        if self._thread is None or not self._thread.is_alive():  # else the descriptors stay open
            self._wakeup.close()

    def turn(self, *, drains: bool) -> float | None:
        """Look once. Returns after how many seconds the next turn is due (None: when woken).

        ``drains``: somebody waits for the end of this turn.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what the thread holds."""

    def wait(self, pause_s: float | None) -> None:
        """Wait for the next turn, or until woken."""
        self._wakeup.wait(pause_s)

    def _run(self) -> None:
        while not self._stopping:
            asked = self._drains_asked
            try:
                pause_s = self.turn(drains=asked > self._drains_done)
                self._problems.clear(self.name)
            except Exception as fault:
                self._problems.report(self.name, f"{self.name} cannot be read ({fault!r}); retrying")
                pause_s = RETRY_S
            else:
                with self._turn_over:
                    self._drains_done = asked
                    self._turn_over.notify_all()
            if not self._stopping:
                self.wait(pause_s)
        self.close()


class Common(TypedDict):
    """What each sensor is given."""

    inbox: Inbox
    clock: Clock
    on_problem: NotRequired[OnProblem]


class Observer(Worker):
    """A worker that puts observations into an inbox."""

    def __init__(self, *, inbox: Inbox, clock: Clock, on_problem: OnProblem = ignore_problem) -> None:
        super().__init__(on_problem)
        self._inbox = inbox
        self._clock = clock


class Sampler(Observer):
    """Calls ``sample`` every ``interval_s``, and at once when another attempt is followed.

    An exception of ``sample`` is reported by ``on_problem``, and the next sample is taken after the interval.
    """

    def __init__(self, *, interval_s: float, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self._interval_s = interval_s
        self._turn = threading.Lock()
        self._due_s = 0.0
        """Monotonic seconds; 0: at once."""

    def follow(self, target: AttemptTarget | None) -> None:
        self._due_s = 0.0
        super().follow(target)

    def sample(self) -> None:
        raise NotImplementedError

    def sample_now(self) -> None:
        """Take a sample in any thread, besides those that are due: once more at the end of an attempt."""
        with self._turn:
            self.sample()

    def sample_if_due(self, now: float) -> float:
        """Take a sample if it is time. Returns when the next one is due (monotonic seconds).

        ``now``: one moment for several samplers, which are due together then, too.
        """
        if now >= self._due_s and not self._stopping:
            self._due_s = next_round(now, self._interval_s)
            try:
                self.sample_now()
                self._problems.clear(self.name)
            except Exception as fault:
                self._problems.report(
                    self.name,
                    f"{self.name} cannot be read ({fault!r}); it is read again every "
                    f"{self._interval_s:g} s and the training continues",
                )
        return self._due_s

    def turn(self, *, drains: bool) -> float:
        del drains
        return self.sample_if_due(time.monotonic()) - time.monotonic()


class SamplersInOneThread(Worker):
    """Takes the samples of several samplers in one thread. Implements Sensor.

    One that blocks delays the others: those whose system calls never block have a thread without such.
    """

    name = "samples"

    def __init__(self, *samplers: Sampler) -> None:
        super().__init__()
        self._samplers = samplers

    def follow(self, target: AttemptTarget | None) -> None:
        for sampler in self._samplers:
            sampler.follow(target)
        super().follow(target)

    def stop(self) -> None:
        super().stop()
        for sampler in self._samplers:
            sampler.stop()

    def turn(self, *, drains: bool) -> float:
        del drains
        now = time.monotonic()
        return min([sampler.sample_if_due(now) for sampler in self._samplers]) - time.monotonic()
