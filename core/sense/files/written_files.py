"""Who writes: files that processes hold open for writing, and how many bytes each process has written (proc(5))."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...model.attempt import ExitRecord
from ...model.text.json_line import decode_exact
from ..process.proc_stat import read_written

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
        for _, path in descriptors_for_writing(pid):
            yield OpenFile(pid, path)


def descriptors_for_writing(pid: int) -> Iterator[tuple[int, str]]:
    """The same of one process, each path with its number below ``/proc/PID/fd``."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                path = _path(entry)
                if path is not None:
                    yield int(entry.name), path
    except OSError:
        return


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
    found = {pid: read_written(pid) for pid in pids}
    return {pid: written for pid, written in found.items() if written is not None}


def growth(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    """Bytes written in between by each process; all bytes of one that began meanwhile."""
    return {pid: done - before.get(pid, 0) for pid, done in now.items()}


def written_in_all(attempt_directory: str) -> int | None:
    """Bytes that the attempt's processes wrote from its beginning to its end, as its runner recorded them."""
    record = _exit_record(attempt_directory)
    return None if record is None else record.written_bytes


def ended_at(attempt_directory: str) -> float | None:
    """When the attempt ended, in seconds since the epoch; None if its runner has recorded no end."""
    record = _exit_record(attempt_directory)
    return None if record is None else record.wall


def _exit_record(attempt_directory: str) -> ExitRecord | None:
    try:
        return decode_exact(Path(attempt_directory, "exit.json").read_bytes(), ExitRecord)
    except (OSError, msgspec.MsgspecError):
        return None
