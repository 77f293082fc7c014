"""Whether a process tree is writing a checkpoint now. A kill during a save leaves a torn checkpoint.

Standard library only: the runner imports this. A save is seen by the files that the processes have open for writing,
not by the folder, because other programs may copy files there. A file that does not grow for STILL_S is a hung save
and is not waited for. Files that trainers keep open (logs, TensorBoard's events) do not count.
"""
# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH115, PTH116, PTH119, PTH122, PTH123, PTH208

import os
import time
from collections.abc import Callable, Iterable

from ...model.checkpoints.checkpoint_suffixes import DCP_SUFFIX, TENSOR_SUFFIXES
from ..processes import Process

STILL_S = 8.0
"""A file that has not grown for this long is no longer being written. Network disks pause for seconds."""
LIMIT_S = 900.0
"""Longest wait for all saves together: a trainer that ignores signals may save repeatedly."""
LOG_SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ".jsonl", ".json", ".csv", ".tsv", ".db", ".sqlite",
                          ".sqlite-wal", ".wandb", ".lock", ".html", ".png"})  # fmt: skip
LOG_BEGINNINGS = ("events.out.tfevents",)
WEIGHT_SUFFIXES = frozenset({*TENSOR_SUFFIXES, DCP_SUFFIX})
"""What counts as a checkpoint if the output folder is unknown."""


class SaveWatch:
    """Call :meth:`writing` about every second. A file that was seen for less than STILL_S counts as growing."""

    def __init__(self, folder: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = None if folder is None else os.path.realpath(folder)
        self._clock = clock
        self._seen: dict[str, tuple[tuple[int, int], float]] = {}
        self._since: float | None = None

    def writing(self, processes: Iterable[Process]) -> bool:
        """Whether a checkpoint grows or was first seen less than STILL_S ago."""
        now = self._clock()
        growing = False
        for path, state in self._open_files(processes).items():
            before = self._seen.get(path)
            if before is None or before[0] != state:
                self._seen[path] = (state, now)
                growing = True
            elif now - before[1] < STILL_S:
                growing = True
        if not growing:
            return False
        self._since = now if self._since is None else self._since
        return now - self._since < LIMIT_S

    def _open_files(self, processes: Iterable[Process]) -> dict[str, tuple[int, int]]:
        """Path → (size, time of the last write) of checkpoints that are open for writing."""
        found: dict[str, tuple[int, int]] = {}
        for process in processes:
            folder = f"/proc/{process.pid}/fd"
            try:
                numbers = os.listdir(folder)
            except OSError:
                continue
            for number in numbers:
                try:
                    path = os.readlink(f"{folder}/{number}")
                    if not self._is_checkpoint(path) or not _is_writable(process.pid, number):
                        continue
                    state = os.stat(f"{folder}/{number}")
                except OSError:
                    continue
                found[path] = (state.st_size, state.st_mtime_ns)
        return found

    def _is_checkpoint(self, path: str) -> bool:
        if not path.startswith("/") or path.startswith(("/dev/", "/proc/", "/memfd:", "/anon_hugepage")):
            return False
        name = os.path.basename(path.removesuffix(" (deleted)"))
        suffix = os.path.splitext(name)[1].lower()
        if self._folder is None:
            return suffix in WEIGHT_SUFFIXES
        inside = path.startswith(self._folder.rstrip("/") + "/")
        return inside and suffix not in LOG_SUFFIXES and not name.startswith(LOG_BEGINNINGS)


def _is_writable(pid: int, number: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
        for line in file:
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
