"""The bounded queue between sensors and the supervisor."""

import threading
from collections import deque
from time import monotonic

from .model.observation import GpuSample, HostSample, Observation, ProcessSample

KEPT = 2048
"""Observations that may wait before ``put`` blocks its sensor: a flood then waits in the log, the lossless store."""

REPLACEABLE = (GpuSample, HostSample, ProcessSample)


class BoundedInbox:
    """Implements ``model.ports.Inbox``: samples replace an older one of their kind, all else waits its turn."""

    def __init__(self, kept: int = KEPT) -> None:
        self._limit = kept
        self._kept: deque[Observation] = deque()
        self._samples: dict[type[Observation], Observation] = {}
        self._changed = threading.Condition()
        self._closed = False

    def put(self, observation: Observation) -> None:
        """Add; blocks while full. After ``close`` it drops, so that sensors can end."""
        with self._changed:
            if isinstance(observation, REPLACEABLE):
                self._samples[type(observation)] = observation
            else:
                self._changed.wait_for(lambda: self._closed or len(self._kept) < self._limit)
                if self._closed:
                    return
                self._kept.append(observation)
            self._changed.notify_all()

    def take(self, timeout_s: float) -> Observation | None:
        """The next observation, or None after ``timeout_s``. Samples go first: there are at most three of them."""
        deadline = monotonic() + timeout_s
        with self._changed:
            while not self._samples and not self._kept:
                remaining = deadline - monotonic()
                if remaining <= 0 or not self._changed.wait(remaining):
                    return None
            if self._samples:
                return self._samples.pop(next(iter(self._samples)))
            taken = self._kept.popleft()
            self._changed.notify_all()
            return taken

    def close(self) -> None:
        """Let every waiting sensor go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
