"""One supervisor a run: a lock on a file, held for life. The kernel frees it when the holder dies, however it dies."""

import contextlib
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

ACQUIRE_PATIENCE_S = 0.25
"""A screen that asks who holds the lock takes a shared one for microseconds; that must not look like a supervisor."""
_RETRY_S = 0.01


class SupervisorRunning(Exception):  # noqa: N818  named for what is the case
    """Another supervisor owns this run. ``pid`` is None where it cannot be told."""

    def __init__(self, path: Path, pid: int | None) -> None:
        who = f"pid {pid}" if pid is not None else "pid unknown"
        super().__init__(
            f"run {path.parent.name} already has a supervisor ({who}); look at it with `trainwatch status`"
        )
        self.pid = pid


class SupervisorLock:
    """The lock of one run. Not inherited by programs we start (O_CLOEXEC); a forked child without exec must close it.

    Use as a context manager, or ``acquire`` and ``release``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take it and write our pid inside. Raises SupervisorRunning, or OSError where the file cannot be made."""
        if self._descriptor is not None:
            return
        deadline = time.monotonic() + ACQUIRE_PATIENCE_S
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _lock(descriptor, fcntl.LOCK_EX) and _is_file_at(descriptor, self.path):
                break
            os.close(descriptor)
            if time.monotonic() >= deadline:
                raise SupervisorRunning(self.path, holder_pid(self.path))
            time.sleep(_RETRY_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go. Does nothing when not held. The file stays: removing it would let two supervisors lock two files."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a copy in a child between fork and exec
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a supervisor lives, by trying the lock: a pid inside the file proves nothing (pids are reused)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def holder_pid(path: Path) -> int | None:
    """Return the pid of the living supervisor; None when there is none, or it lives where its pid says nothing to us.

    ``is_held`` is the question for whether one lives. Between locking and writing, the file still shows the pid of a
    dead predecessor: a pid without a process is read again.
    """
    deadline = time.monotonic() + ACQUIRE_PATIENCE_S
    while is_held(path):
        with contextlib.suppress(OSError, ValueError):
            pid = int(path.read_text().strip())
            if Path("/proc", str(pid)).exists():
                return pid
        if time.monotonic() >= deadline:
            return None
        time.sleep(_RETRY_S)
    return None


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_file_at(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one with this name (somebody may have removed it in between)."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
