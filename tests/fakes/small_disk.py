"""A mount namespace with a small disk in it, and a person at a terminal there: what a full disk does is then real."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

BLOCK = bytes(4096)


def may_mount() -> bool:
    """Whether this user can mount in a mount namespace of its own."""
    with contextlib.suppress(OSError):
        return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    return False


NEEDS_MOUNTS = pytest.mark.skipif(not may_mount(), reason="mounting small disks needs root (unshare -m)")


class SmallDisk:
    """``folder`` is a tmpfs of ``size_mb`` for all that runs in the namespace; outside it is reached by ``outside``."""

    def __init__(self, folder: Path, size_mb: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        mount = f"mount -t tmpfs -o mode=700,size={round(size_mb * 1024)}k tmpfs '{folder}' && echo mounted && exec sleep 3600"
        self._holder = subprocess.Popen(["unshare", "-m", "sh", "-c", mount], stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        with self._holder.stdout as said:
            assert said.readline() == b"mounted\n"
        self.outside = Path(f"/proc/{self._holder.pid}/root{folder}")

    def within(self, cwd: Path) -> tuple[str, ...]:
        """What a command is run by to be in the namespace."""
        return ("nsenter", "-t", str(self._holder.pid), "-m", f"--wd={cwd}", "--")

    def fill(self, name: str = "fill", *, but: int = 0) -> None:
        """Write until nothing more fits, then give ``but`` bytes back."""
        path = self.outside / name
        with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
            while True:
                file.write(BLOCK)
        if but:
            os.truncate(path, max(0, path.stat().st_size - but))

    def empty(self, name: str = "fill") -> None:
        """Remove what ``fill`` wrote."""
        (self.outside / name).unlink()

    def close(self) -> None:
        """End the namespace; what still runs in it keeps the disk."""
        self._holder.kill()
        self._holder.wait()


@contextlib.contextmanager
def small_disk(folder: Path, size_mb: float) -> Iterator[SmallDisk]:
    """A disk that is given up whatever happens."""
    made = SmallDisk(folder, size_mb)
    try:
        yield made
    finally:
        made.close()
