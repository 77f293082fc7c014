"""Who writes: files that processes hold open for writing, and how many bytes each process has written (proc(5))."""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..process.proc_stat import read_io

_WRITABLE = 0o200
"""The mode of a link below ``/proc/PID/fd`` shows whether the file was opened for writing."""
_NO_FILES = ("/dev/", "/proc/", "/sys/")


class OpenFile(NamedTuple):
    """A regular path that a process holds open for writing."""

    pid: int
    path: str


def open_for_writing(pids: Iterable[int]) -> Iterator[OpenFile]:
    """All of them; processes that cannot be examined have none."""
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as entries:
                for entry in entries:
                    path = _path(entry)
                    if path is not None:
                        yield OpenFile(pid, path)
        except OSError:
            continue


def _path(entry: os.DirEntry[str]) -> str | None:
    try:
        if not entry.stat(follow_symlinks=False).st_mode & _WRITABLE:
            return None
        path = os.readlink(entry.path)  # noqa: PTH115  (each file that is open)
    except OSError:
        return None
    usable = path.startswith("/") and not path.startswith(_NO_FILES) and not path.endswith(" (deleted)")
    return path if usable else None


def written_bytes(pids: Iterable[int]) -> dict[int, int]:
    """Bytes that each process has written since it began, with those of children that it waited for."""
    found = {pid: read_io(pid) for pid in pids}
    return {pid: io.write_bytes for pid, io in found.items() if io is not None}


def growth(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    """Bytes written in between by each process; all bytes of one that began meanwhile."""
    return {pid: done - before.get(pid, 0) for pid, done in now.items()}
