"""One supervisor per run: a lock on a file, and a sign of life.

The kernel releases the lock when the holder ends, however it ends.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Self

import msgspec

from ..atomic_files import is_file_at
from ..model.text import typed
from ..processes import boot_id
from .latest import rewrite

ACQUIRE_PATIENCE_S = 0.25
"""Retries of ``acquire``: a screen that checks the lock holds a shared one for microseconds."""
_RETRY_S = 0.01


class SupervisorRunning(Exception):  # noqa: N818  named after the condition
    """Another supervisor owns this run. ``pid`` None: unknown."""

    def __init__(self, path: Path, pid: int | None) -> None:
        who = f"pid {pid}" if pid is not None else "pid unknown"
        super().__init__(
            f"run {path.parent.name} already has a supervisor ({who}); look at it with "
            f"`{typed('status', path.parent.name)}`"
        )
        self.pid = pid


class LockLost(Exception):  # noqa: N818  named after the condition
    """The lock's file was replaced, and another supervisor holds the new one."""


class SupervisorLock:
    """The lock of one run. Started programs do not inherit it (O_CLOEXEC); a forked child without exec must close it.

    Use as a context manager, or ``acquire`` and ``release``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self.predecessor: int | None = None
        """Pid of a supervisor that died without releasing the lock, known after ``acquire``."""
        self.crashed = False
        """Set before ``release`` by a supervisor that ends because of a bug: as if it had been killed."""

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock and write the pid into the file.

        Raises SupervisorRunning, or OSError if the file cannot be made or its file system has no locks.
        """
        if self._descriptor is not None:
            return
        deadline = time.monotonic() + ACQUIRE_PATIENCE_S
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if _lock(descriptor, fcntl.LOCK_EX, self.path) and is_file_at(descriptor, self.path):
                    with contextlib.suppress(ValueError):
                        self.predecessor = int(os.pread(descriptor, 32, 0))
                    pid = f"{os.getpid()}\n".encode()
                    os.pwrite(descriptor, pid, 0)  # in place: an empty file would say that its holder ended in order
                    os.ftruncate(descriptor, len(pid))
                    self._descriptor = descriptor
                    return
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)
            if time.monotonic() >= deadline:
                raise SupervisorRunning(self.path, holder_pid(self.path))
            time.sleep(_RETRY_S)

    def keep(self) -> bool:
        """Take the lock again if its file was deleted or replaced. Returns whether that was needed.

        Raises LockLost if another supervisor was quicker, OSError if the file cannot be made.
        """
        if self._descriptor is None or is_file_at(self._descriptor, self.path):
            return False
        before, self._descriptor = self._descriptor, None
        try:
            self.acquire()
        except SupervisorRunning as running:
            os.close(before)
            raise LockLost(
                f"{self.path} was deleted, and another supervisor (pid {running.pid or 'unknown'}) has the run now"
            ) from None
        except OSError:
            self._descriptor = before
            raise
        os.close(before)
        return True

    def release(self) -> None:
        """Release the lock, if held, and empty the file, which shows that it was in order.

        The file stays: without it two supervisors could lock two files.
        """
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            if not self.crashed:
                os.ftruncate(self._descriptor, 0)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also in a child between fork and exec
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a supervisor is alive, by trying the lock: the pid in the file may be reused.

    Raises OSError if that cannot be told: the file cannot be opened, or its file system has no locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH, path)
    finally:
        os.close(descriptor)


def holder_pid(path: Path) -> int | None:
    """Return the pid of the live supervisor; None if there is none, or if it is in another pid namespace.

    Use ``is_held`` to find out whether one is alive. Between locking and writing, the file still shows the pid of a
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


def _lock(descriptor: int, kind: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as fault:  # NFS without a lock server, some FUSE file systems
        why = fault.strerror or str(fault)
        raise OSError(
            fault.errno,
            f"this file system gives no locks ({why}), and without one two supervisors could own the same run; set "
            "TRAINWATCH_HOME to a folder on a local disk",
            str(path),
        ) from None
    return True


# --- the sign of life: a small file that its loop rewrites about once a second.
#
# Its age shows a supervisor that is stopped or stuck, whose lock is still held. The record has always the same length
# and is written in place, so it needs no room on a full disk. Format, which the runner also reads: pid, start ticks,
# seconds of CLOCK_MONOTONIC, boot id, separated by blanks. That clock does not count the time in which the machine was
# suspended.

BEAT_S = 1.0
RECORD_BYTES = 96


class LifeSign(msgspec.Struct, frozen=True, kw_only=True):
    """``age_s``: seconds since it was written; None if that was before the last boot."""

    pid: int
    start_ticks: int
    age_s: float | None


class LifeSignWriter:
    """Rewrites the file at most every BEAT_S. Thread-safe enough: two writers write the same. Raises nothing."""

    def __init__(self, path: Path, *, start_ticks: int) -> None:
        self.path = path
        self._who = f"{os.getpid()} {start_ticks}"
        self._boot = boot_id()
        self._next = 0.0
        self.turned = time.monotonic()
        """When ``beat`` was called last (monotonic seconds), also if the file cannot be written."""

    def beat(self) -> None:
        self.turned = now = time.monotonic()
        if now < self._next:
            return
        self._next = now + BEAT_S
        record = f"{self._who} {now:.2f} {self._boot}".ljust(RECORD_BYTES - 1).encode() + b"\n"
        with contextlib.suppress(OSError):
            rewrite(self.path, record)


def read_life_sign(path: Path) -> LifeSign | None:
    """The newest sign; None if there is none or it cannot be read."""
    try:
        pid, start_ticks, at, boot = path.read_text(encoding="ascii").split()
        age_s = max(0.0, time.monotonic() - float(at)) if boot == boot_id() else None
        return LifeSign(pid=int(pid), start_ticks=int(start_ticks), age_s=age_s)
    except (OSError, ValueError):
        return None
