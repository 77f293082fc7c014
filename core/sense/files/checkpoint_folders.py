"""The sensor of all folders that a run saves checkpoints to: one ``CheckpointDirectory`` for each."""

import threading
import time
from collections.abc import Callable

from ...model.ports.supervision import AttemptTarget
from .checkpoint_directory import DRAIN_S, CheckpointDirectory

AT_MOST = 32
"""Folders that are watched. A trainer that makes a new one in each attempt adds one for each restart."""


class CheckpointFolders:
    """Begins with some folders; ``watch`` adds one. Thread-safe.

    ``make``: the sensor of one folder.
    """

    def __init__(self, make: Callable[[str], CheckpointDirectory], folders: tuple[str, ...]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._started = False
        self._target: AttemptTarget | None = None
        self._sensors = {folder: make(folder) for folder in folders}

    @property
    def folders(self) -> tuple[str, ...]:
        """All that are watched, in the order in which they became known."""
        with self._lock:
            return tuple(self._sensors)

    def watch(self, folder: str) -> None:
        """Watch one more folder. Beyond AT_MOST the second oldest is no longer watched: the first is the run's own."""
        with self._lock:
            if folder in self._sensors:
                return
            sensor = self._sensors[folder] = self._make(folder)
            started, target = self._started, self._target
            dropped = self._sensors.pop(list(self._sensors)[1]) if len(self._sensors) > AT_MOST else None
        if dropped is not None:
            dropped.stop()
        if started:
            sensor.start()
            sensor.follow(target)

    def start(self) -> None:
        self._started = True
        for sensor in self._all():
            sensor.start()

    def follow(self, target: AttemptTarget | None) -> None:
        self._target = target
        for sensor in self._all():
            sensor.follow(target)

    def stop(self) -> None:
        for sensor in self._all():
            sensor.stop()

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Wait until the changes of all folders are reported. False if that took longer than ``timeout_s`` in all."""
        end = time.monotonic() + timeout_s
        done = [sensor.drain(max(0.0, end - time.monotonic())) for sensor in self._all()]
        return all(done)

    def list_all(self, limit_s: float, *, expected: bool) -> str | None:
        """List every folder. Returns the first reason why the list is not complete, None if it is.

        A folder that an earlier attempt saved to may be deleted by a person; the newest one is expected.
        """
        end = time.monotonic() + limit_s
        sensors = self._all()
        for number, sensor in enumerate(sensors):
            last = number == len(sensors) - 1
            why = sensor.list_all(max(0.0, end - time.monotonic()), expected=expected and last)
            if why is not None:
                return why
        return None

    def _all(self) -> list[CheckpointDirectory]:
        with self._lock:
            return list(self._sensors.values())
