"""Which files processes hold open (proc(5))."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...model.attempt import ExitRecord
from ...model.text.json_line import decode_exact

_WRITABLE = 0o200
"""The mode of a link below ``/proc/PID/fd`` shows whether the file was opened for writing."""
_NO_FILES = ("/dev/", "/proc/", "/sys/")


class OpenFile(NamedTuple):
    """A regular path that a process holds open for writing. ``number``: of its link below ``/proc/PID/fd``."""

    pid: int
    path: str
    number: int = 0


def open_for_writing(pids: Iterable[int]) -> Iterator[OpenFile]:
    """All of them; processes that cannot be examined have none."""
    for pid in pids:
        for number, path in descriptors_for_writing(pid):
            yield OpenFile(pid, path, number)


def descriptors_for_writing(pid: int) -> Iterator[tuple[int, str]]:
    """The same of one process, each path with its number below ``/proc/PID/fd``."""
    return ((number, path) for number, path, writable in descriptors(pid, for_writing=True) if writable)


def descriptors(pid: int, *, for_writing: bool = False) -> Iterator[tuple[int, str, bool]]:
    """(number, path, whether it may be written to) of the files that a process holds open."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                found = _open_file(entry, for_writing=for_writing)
                if found is not None:
                    yield int(entry.name), *found
    except OSError:
        return


def _open_file(entry: os.DirEntry[str], *, for_writing: bool) -> tuple[str, bool] | None:
    try:
        writable = bool(entry.stat(follow_symlinks=False).st_mode & _WRITABLE)
        if for_writing and not writable:
            return None
        path = os.readlink(entry.path)  # noqa: PTH115  (each file that is open)
    except OSError:
        return None
    usable = path.startswith("/") and not path.startswith(_NO_FILES) and not path.endswith(" (deleted)")
    return (path, writable) if usable else None


def ended_at(attempt_directory: str) -> float | None:
    """When the attempt ended, in seconds since the epoch; None if its runner has recorded no end."""
    try:
        return decode_exact(Path(attempt_directory, "exit.json").read_bytes(), ExitRecord).wall
    except (OSError, msgspec.MsgspecError):
        return None
