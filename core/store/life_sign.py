"""The supervisor's sign of life: a small file (in memory) that its loop rewrites about once a second.

Its age shows a supervisor that is stopped or stuck, whose lock is still held. The record has always the same length and
is written in place, so it needs no room on a full disk. Format, which the runner also reads: pid, start ticks,
seconds of CLOCK_MONOTONIC, boot id, separated by blanks. That clock does not count the time in which the machine was
suspended.
"""

import contextlib
import os
import time
from pathlib import Path

import msgspec

BEAT_S = 1.0
RECORD_BYTES = 96
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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
        from .memory_file import MemoryFile  # readers do without it

        self._file = MemoryFile(path)
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
            self._file.write(record)

    def close(self) -> None:
        self._file.close()


def read_life_sign(path: Path) -> LifeSign | None:
    """The newest sign; None if there is none or it cannot be read."""
    try:
        pid, start_ticks, at, boot = path.read_text(encoding="ascii").split()
        age_s = max(0.0, time.monotonic() - float(at)) if boot == boot_id() else None
        return LifeSign(pid=int(pid), start_ticks=int(start_ticks), age_s=age_s)
    except (OSError, ValueError):
        return None


def boot_id() -> str:
    """Of this boot; "unknown" if the kernel does not say."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return "unknown"
