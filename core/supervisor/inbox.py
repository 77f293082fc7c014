"""The bounded queue between sensors and the supervisor."""

import threading
from collections import deque
from time import monotonic

from ..model.observation import GpuSample, HostSample, LogChunk, Observation, ProcessSample

CAPACITY = 2048
"""Observations that may wait before ``put`` blocks its sensor. A burst of log then waits in its file."""

REPLACEABLE = (GpuSample, HostSample, ProcessSample)
PATIENT = frozenset({*REPLACEABLE, LogChunk})
LITTLE_TEXT = 4096
"""Characters of log text that may wait for the next turn; more of it wakes the supervisor."""


class BoundedInbox:
    """Implements ``model.ports.Inbox``: a sample replaces an older one of its kind; all else is kept in order.

    ``patient``: samples and a little text of the log do not wake the supervisor, which takes them at its next turn:
    when something else comes, or at the end of the time that it waits. To wake a thread costs as much CPU time as to
    judge a sample. The first of each kind wakes it in any case: a launch waits for the first reading of the GPUs.
    """

    def __init__(self, capacity: int = CAPACITY, *, patient: bool = False) -> None:
        self._capacity = capacity
        self._patient = patient
        self._known: set[type[Observation]] = set()
        self._queue: deque[Observation] = deque()
        self._samples: dict[type[Observation], Observation] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._unread = 0

    def put(self, observation: Observation) -> None:
        """Add; blocks while full. After ``close`` observations are dropped, so that sensors can end."""
        with self._changed:
            if isinstance(observation, REPLACEABLE):
                self._samples[type(observation)] = observation
            else:
                self._changed.wait_for(lambda: self._closed or len(self._queue) < self._capacity)
                if self._closed:
                    return
                self._queue.append(observation)
                if isinstance(observation, LogChunk):
                    self._unread += len(observation.text)
            if not self._can_wait(observation):
                self._changed.notify_all()

    def _can_wait(self, observation: Observation) -> bool:
        kind = type(observation)
        if not self._patient or kind not in PATIENT:
            return False
        if kind not in self._known:
            self._known.add(kind)
            return False
        return self._unread < LITTLE_TEXT

    def take(self, timeout_s: float) -> Observation | None:
        """The next observation, or None after ``timeout_s``. Samples go first: there are at most three."""
        deadline = monotonic() + timeout_s
        with self._changed:
            while not self._samples and not self._queue:
                remaining = deadline - monotonic()
                if remaining <= 0 or not self._changed.wait(remaining):
                    break
            if self._samples:
                return self._samples.pop(next(iter(self._samples)))
            if not self._queue:
                return None
            taken = self._queue.popleft()
            if isinstance(taken, LogChunk):
                self._unread -= len(taken.text)
            self._changed.notify_all()
            return taken

    def unread(self) -> int:
        """Characters of log text that wait."""
        return self._unread

    def close(self) -> None:
        """Release every sensor that waits in ``put``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
