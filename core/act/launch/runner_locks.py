"""The runner's part of a run's output locks: held and counted up in a thread until no process of the trainer is left.

A thread, because a write to a network file system that does not answer must not stop the runner. Standard library only.
"""

import contextlib
import sys
import threading
import time
from typing import Any

from .locks import BEAT_S, RUNNER, Owner
from .output_locks import OutputLocks

LOOK_S = 1.0
"""Period in which an output folder that has no lock yet is looked at: the trainer makes it and writes into it."""
JOIN_S = 2.0


class RunnerLocks:
    """The locks that an order names; none if it names none."""

    def __init__(self, order: dict[str, Any], directory: str) -> None:
        wanted = order.get("locks")
        self._directory = directory
        self._locks: OutputLocks | None = None
        if wanted is not None:
            owner = Owner(wanted["run"], wanted["created"], wanted["home"], wanted["output_dir"])
            # The supervisor has judged the holders of other hosts before it gave the order.
            self._locks = OutputLocks(owner, RUNNER, wanted["command"], lambda _folder: True)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="locks", daemon=True)

    def take(self) -> None:
        """Share the supervisor's locks. Raises Taken if another run has one of them by now."""
        if self._locks is not None:
            self._say(self._locks.take())

    def keep(self, trainer: tuple[int, int]) -> None:
        """Name the trainer in the locks, and count up until ``release``."""
        if self._locks is not None:
            self._locks.name_trainer(trainer, self._directory)
            self._thread.start()

    def release(self) -> None:
        """Release them, unless the thread is stuck in a write: then the kernel does it."""
        if self._over.is_set():
            return
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)
        if self._locks is not None and not self._thread.is_alive():
            self._locks.release()

    def _keep(self) -> None:
        assert self._locks is not None
        counted = time.monotonic()
        while not self._over.wait(BEAT_S if self._locks.complete else LOOK_S):
            beat = time.monotonic() - counted >= BEAT_S
            counted = time.monotonic() if beat else counted
            self._say(self._locks.keep(beat=beat))

    @staticmethod
    def _say(news: list[str]) -> None:
        with contextlib.suppress(OSError):  # runner.log is on a full disk
            for text in news:
                sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
