"""Threads that read the GPUs: one for all of them, and one more for each GPU that holds it up.

Imports nothing else of trainwatch: it belongs to the NVML child.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

CALM_ROUNDS = 60
"""After so many quick readings in a row, a GPU that had a thread of its own is read with the others again."""
CALM_SHARE = 0.25
"""Share of the time limit within which a reading is quick."""


class Readable(Protocol):
    """A GPU that is read now and then. ``fresh``: it was read since the last request."""

    fresh: bool

    def read(self) -> None:
        """Read it. May never return; raises nothing."""


class ReadingThread:
    """Reads its GPUs one after the other, each time ``request`` is called."""

    def __init__(self, gpus: Sequence[Readable], due: Sequence[Readable] = ()) -> None:
        self.gpus = [*gpus]
        self.calm_rounds = 0
        self._due = [*due]
        self._reading: Readable | None = None
        self._since_s = 0.0
        self._requested_s = self._read_s = time.monotonic()
        self._ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="gpu-reading", daemon=True).start()

    def request(self) -> None:
        """Start a reading of all; one under way is finished first, and its GPU is then read again."""
        with self._changed:
            for gpu in self.gpus:
                gpu.fresh = False
            self._due = [*self.gpus]
            self._requested_s = time.monotonic()
            self._changed.notify_all()

    def wait(self, until_s: float, limit_s: float) -> "ReadingThread | None":
        """Wait until all are read, at most until ``until_s`` (monotonic clock).

        A GPU that takes more than half of the time that is left keeps this thread for itself, so that the others are
        read before ``until_s``, too: the new thread that reads them is returned.
        """
        with self._changed:
            while self._due or self._reading is not None:
                now = time.monotonic()
                end_s = until_s
                if self._reading is not None and len(self.gpus) > 1:
                    since_s = max(self._since_s, self._requested_s)
                    end_s = since_s + max(0.0, until_s - since_s) / 2
                    if now >= end_s:
                        return self._leave(self._reading)
                if now >= until_s:
                    self.calm_rounds = 0
                    return None
                self._changed.wait(end_s - now)
        quick = self._read_s - self._requested_s <= CALM_SHARE * limit_s
        self.calm_rounds = self.calm_rounds + 1 if quick else 0
        return None

    def take_over(self, other: "ReadingThread") -> None:
        """Read the GPUs of another one, which ends. Neither may be reading."""
        other.end()
        self.gpus += other.gpus

    def end(self) -> None:
        """End the thread once nothing is to be read."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _leave(self, slow: Readable) -> "ReadingThread":
        others = [gpu for gpu in self.gpus if gpu is not slow]
        rest = ReadingThread(others, [gpu for gpu in self._due if gpu is not slow])
        self.gpus = [slow]
        self._due = [gpu for gpu in self._due if gpu is slow]
        self.calm_rounds = 0
        return rest

    def _run(self) -> None:
        while True:
            with self._changed:
                self._reading = None
                self._read_s = time.monotonic()
                if not self._due:  # else the one who waits would only wait on
                    self._changed.notify_all()
                while not self._due:
                    if self._ended:
                        return
                    self._changed.wait()
                gpu = self._reading = self._due.pop(0)
                self._since_s = time.monotonic()
            gpu.read()


class ReadingThreads:
    """Reads all GPUs in one thread while they answer; a GPU that does not answer does not delay the others."""

    def __init__(self, gpus: Sequence[Readable]) -> None:
        self._threads = [ReadingThread(gpus)]

    def __len__(self) -> int:
        return len(self._threads)

    def read(self, limit_s: float) -> None:
        """Read each GPU that is not still being read. Waits at most ``limit_s`` for them."""
        until_s = time.monotonic() + limit_s
        for thread in self._threads:
            thread.request()
        waiting = deque(sorted(self._threads, key=lambda thread: -len(thread.gpus)))
        while waiting:
            thread = waiting.popleft()
            if (rest := thread.wait(until_s, limit_s)) is not None:
                self._threads.append(rest)
                waiting.appendleft(rest)
                waiting.append(thread)
        self._join_calm()

    def _join_calm(self) -> None:
        """Let the largest calm thread take over another calm one."""
        calm = [thread for thread in self._threads if thread.calm_rounds >= CALM_ROUNDS]
        calm.sort(key=lambda thread: -len(thread.gpus))
        for other in calm[1:2]:
            calm[0].take_over(other)
            self._threads.remove(other)
