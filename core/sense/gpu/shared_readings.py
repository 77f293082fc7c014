"""GPU readings that the supervisors of one user on one machine share: one of them reads the driver for all.

The one that holds the lock is the reader. It rewrites a small file with each message of its NVML child; the others take
the messages from there. The kernel releases the lock when the reader ends, and the next one that asks becomes it.
"""

import contextlib
import fcntl
import os
import re
import struct
import time
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ...private_folder import make_private

_HEAD = struct.Struct(">IQddI")
"""CRC-32 of the rest, number of the message, CLOCK_MONOTONIC of the message and of the last sign of life, length."""
TORN_READS = 3
_KEY = re.compile(r"[0-9a-f]{16}")
"""Names of such folders."""
WANTED = "details-wanted"
"""Its time of modification is when a process asked for details last."""
WANTED_S = 5.0


class SharedMessage(NamedTuple):
    """``number``: rises with each message. Seconds since the message, and since the reader's last sign of life."""

    number: int
    line: bytes
    age_s: float
    sign_s: float


class SharedReadings:
    """``folder``: on this machine, of this user, for one interval. Used by one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._file: int | None = None
        self._number = 0
        self._line = b""
        self._told = 0.0

    def lead(self) -> bool:
        """Whether this process reads the driver: it does already, or nobody else does. True if that cannot be told."""
        if self._lock is not None:
            return True
        try:
            make_private(self._folder)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return True
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_file_at(lock, self._folder / "lock"):  # its last reader removed it just now: ask again
                os.close(lock)
                return False
        except BlockingIOError:
            os.close(lock)
            return False
        except OSError:
            os.close(lock)
            return True
        self._lock = lock
        self._clear_dead()
        newest = self.newest()
        self._number = newest.number if newest is not None else 0
        self.publish(None)
        return True

    def publish(self, line: bytes | None) -> None:
        """Give the others a message, or (None) a sign of life. Does nothing without the lock. Raises nothing."""
        if self._lock is None:
            return
        now = time.monotonic()
        if line is not None:
            self._number, self._line, self._told = self._number + 1, line, now
        rest = _HEAD.pack(0, self._number, self._told, now, len(self._line))[4:] + self._line
        with contextlib.suppress(OSError):
            if self._file is None:
                self._file = os.open(self._folder / "newest", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, crc32(rest).to_bytes(4, "big") + rest, 0)

    def want_details(self) -> None:
        """Ask the reader for details; it reads them for WANTED_S. Raises nothing."""
        with contextlib.suppress(OSError):
            (self._folder / WANTED).touch(mode=0o600)

    def details_wanted(self) -> bool:
        """Whether another process asked for details lately."""
        try:
            return abs(time.time() - (self._folder / WANTED).stat().st_mtime) < WANTED_S
        except OSError:
            return False

    def newest(self) -> SharedMessage | None:
        """What the reader published last; None if there is nothing readable."""
        for _ in range(TORN_READS):
            try:
                data = (self._folder / "newest").read_bytes()
                crc, number, told, sign, length = _HEAD.unpack_from(data)
            except (OSError, struct.error):
                return None
            end = _HEAD.size + length
            if crc32(memoryview(data)[4:end]) == crc:
                now = time.monotonic()
                return SharedMessage(number, data[_HEAD.size : end], now - told, now - sign)
        return None

    def release(self) -> None:
        """Let another process read the driver, and leave no files behind. Two readers at once do no harm."""
        if self._lock is not None:
            _remove(self._folder)
        for descriptor in (self._file, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._file = self._lock = None

    def _clear_dead(self) -> None:
        """Remove the folders of other intervals and versions whose reader was killed: nobody holds their lock."""
        with contextlib.suppress(OSError):
            for folder in self._folder.parent.iterdir():
                if folder != self._folder and _KEY.fullmatch(folder.name):
                    with contextlib.suppress(OSError):
                        _remove_if_dead(folder)


def _remove_if_dead(folder: Path) -> None:
    """Raises OSError, also if its reader lives."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_file_at(lock, folder / "lock"):
            _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove the files of one reader, and the folder. The caller holds its lock."""
    with contextlib.suppress(OSError):
        for name in ("newest", WANTED, "lock"):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _is_file_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
