"""Free space of a directory on a file system that may be stuck."""

import os
import threading
from pathlib import Path


def nearest_existing(path: Path) -> Path:
    """``path`` or its nearest existing parent. The output directory does not exist before the trainer makes it."""
    return next((p for p in (path, *path.parents) if p.exists()), Path("/"))


def free_bytes(path: Path) -> float | None:
    """Bytes that an ordinary user may still write, or None if the file system does not report them."""
    try:
        space = os.statvfs(nearest_existing(path))
    except OSError:
        return None
    return float(space.f_bavail * space.f_frsize)


class DiskSpace:
    """Reads the free space in a thread of its own, because a dead network mount blocks the call forever."""

    def __init__(self, directory: Path | None, *, timeout_s: float = 0.2) -> None:
        self._directory = directory
        self._timeout_s = timeout_s
        self._asking: threading.Thread | None = None
        self._answer: float | None = None

    def free_bytes(self) -> float | None:
        """Free bytes; None if unknown, or if the file system does not answer within ``timeout_s``."""
        if self._directory is None:
            return None
        if self._asking is None or not self._asking.is_alive():
            self._answer = None
            self._asking = threading.Thread(target=self._ask, args=(self._directory,), name="sense-disk", daemon=True)
            self._asking.start()
        self._asking.join(self._timeout_s)
        return None if self._asking.is_alive() else self._answer

    def _ask(self, directory: Path) -> None:
        self._answer = free_bytes(directory)
