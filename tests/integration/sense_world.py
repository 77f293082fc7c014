"""What sensor tests share: an inbox that keeps all, a run clock, waiting for conditions, processes that are ended."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from tests.fakes.e2e_world import until
from trainwatch.core.model.observation import Observation
from trainwatch.core.model.ports import AttemptTarget, Sensor
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.processes import boot_id, read_process

wait_until = until
O = TypeVar("O", bound=Observation)  # noqa: E741


class RunClock:
    """Run seconds since this object was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._start

    def wall(self) -> float:
        return time.time()


class HandClock:
    """A clock whose time the test sets."""

    def __init__(self) -> None:
        self.t = 0.0

    def now(self) -> float:
        return self.t

    def wall(self) -> float:
        return 1_700_000_000.0 + self.t


class ListInbox:
    """Keeps everything in order."""

    def __init__(self) -> None:
        self._all: list[Observation] = []
        self._lock = threading.Lock()

    def put(self, observation: Observation) -> None:
        with self._lock:
            self._all.append(observation)

    def unread(self) -> int:
        return 0

    def of(self, kind: type[O]) -> list[O]:
        with self._lock:
            return [o for o in self._all if isinstance(o, kind)]

    def clear(self) -> None:
        with self._lock:
            self._all.clear()


@contextmanager
def running(sensor: Sensor) -> Iterator[None]:
    sensor.start()
    try:
        yield
    finally:
        sensor.stop()


@contextmanager
def python(code: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python process that is gone afterwards."""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def said(process: "subprocess.Popen[bytes]") -> str:
    """The next line that the process printed."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def identity(pid: int) -> ProcessIdentity:
    """Identity of a process that exists (a zombie too)."""
    stat = read_process(pid)
    assert stat is not None
    return ProcessIdentity(boot_id=boot_id(), pid=pid, start_ticks=stat.start_ticks)


def target(
    trainer: ProcessIdentity, *, runner: ProcessIdentity | None = None, log: str | None = None, directory: str = "/"
) -> AttemptTarget:
    return AttemptTarget(number=1, trainer=trainer, runner=runner, log=log, directory=directory)
