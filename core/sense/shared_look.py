"""What is read of the whole machine (all its processes, its memory) is read once for all supervisors of its user.

Nobody is the reader for good: who finds the newest reading too old takes a lock, reads, and leaves the reading in a
small file for the others. A reader that dies leaves the lock free. While somebody else reads, and where files cannot be
shared, each reads for itself: a run never waits for another one.
"""

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ..private_folder import make_private
from .kernel_text import kernel_bytes

_HEAD = struct.Struct(">IdI")
"""CRC-32 of the rest, CLOCK_MONOTONIC of the reading, length."""
TORN_READS = 3
ABANDONED_S = 3600.0
"""A file that was not written for this long belongs to nobody: each that is used is rewritten within seconds."""


class Look(NamedTuple):
    """``at``: when it was read (monotonic seconds). ``data``: as ``read`` of ``SharedLook`` returned it."""

    at: float
    data: bytes


def namespaces() -> str:
    """Which processes and files this process sees, and by which clock: only who sees the same may share readings."""
    found = []
    for name in ("pid", "mnt", "time"):
        try:
            found.append(os.readlink(f"/proc/self/ns/{name}"))  # noqa: PTH115
        except OSError:  # a kernel without namespaces of that kind
            found.append("")
    return " ".join(found)


class SharedLook:
    """A reading of the machine. ``path``: of its file, below a private folder in memory; None: it is not shared.

    ``read`` makes the bytes. Used by one thread.
    """

    def __init__(self, path: Path | None, read: Callable[[], bytes]) -> None:
        self._path = path
        self._read = read
        self._looked_for_abandoned = False

    def take(self, max_age_s: float) -> Look:
        """The newest reading, if it is younger than that, else a new one. Raises what ``read`` raises."""
        if self._path is None or max_age_s <= 0:
            return self._new()
        newest = self._newest(self._path, max_age_s)
        return newest if newest is not None else self._read_for_all(self._path)

    def close(self) -> None:
        """Leave no files behind. Others who share them read once more."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            with contextlib.suppress(OSError):
                _lock_of(self._path).unlink()

    def _new(self) -> Look:
        at = time.monotonic()  # before: what is written meanwhile may be in it or not
        return Look(at, self._read())

    def _read_for_all(self, path: Path) -> Look:
        try:
            lock = _open_lock(path)
        except OSError:
            return self._new()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._clear_abandoned(path)
            look = self._new()
            rest = _HEAD.pack(0, look.at, len(look.data))[4:] + look.data
            with contextlib.suppress(OSError):
                _write(path, crc32(rest).to_bytes(4, "big") + rest)
        except OSError:  # another one reads now, or this file system knows no locks
            return self._new()
        finally:
            os.close(lock)
        return look

    @staticmethod
    def _newest(path: Path, max_age_s: float) -> Look | None:
        for _ in range(TORN_READS):
            try:
                data = kernel_bytes(str(path))
                crc, at, length = _HEAD.unpack_from(data)
            except (OSError, struct.error):
                return None
            end = _HEAD.size + length
            if crc32(memoryview(data)[4:end]) == crc:
                return Look(at, data[_HEAD.size : end]) if 0 <= time.monotonic() - at < max_age_s else None
        return None

    def _clear_abandoned(self, path: Path) -> None:
        """Remove once what killed supervisors of other containers and versions left."""
        if self._looked_for_abandoned:
            return
        self._looked_for_abandoned = True
        with contextlib.suppress(OSError):
            for each in path.parent.iterdir():
                with contextlib.suppress(OSError):
                    if each.name.partition(".")[0] != path.name.partition(".")[0] and _age_s(each) > ABANDONED_S:
                        each.unlink()


def _age_s(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(_lock_of(path), flags, 0o600)
    except FileNotFoundError:
        make_private(path.parent)
        return os.open(_lock_of(path), flags, 0o600)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, data, 0)
    finally:
        os.close(descriptor)
