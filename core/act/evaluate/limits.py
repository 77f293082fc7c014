"""Limits of a process tree that runs beside the training: the lowest priorities, and what it takes."""

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..processes import DEAD_STATES, Process, all_processes, descendants

MARK = "TRAINWATCH_EVALUATION"
"""Set in its environment to its folder: finds processes that left their parent and group."""
NICE = 19
FIRST_FOR_OOM = 1000
"""``oom_score_adj`` with which the kernel ends this process before any other if memory runs out."""


_BEHIND = f"""
{{ echo {FIRST_FOR_OOM} > /proc/$$/oom_score_adj; }} 2> /dev/null
command -v ionice > /dev/null && ionice -c 3 true 2> /dev/null && exec ionice -c 3 nice -n {NICE} "$@"
exec nice -n {NICE} "$@"
"""
"""Lowers everything before the program begins, so that nothing of it runs before; what is refused stays as it is."""


def behind_all(argv: Sequence[str]) -> list[str]:
    """``argv`` with the lowest CPU and I/O priority, and the first that the kernel ends for memory."""
    return ["sh", "-c", _BEHIND, "sh", *argv]


def tree_of(pid: int, mark: str) -> list[Process]:
    """The live processes below ``pid``, those of its group and session, and those marked with ``mark``."""
    processes = all_processes()
    found = {process.pid: process for process in descendants(pid, processes)}
    for process in processes.values():
        if pid in {process.group, process.session}:
            found[process.pid] = process
    found.update((process.pid, process) for process in marked(mark, processes.values()))
    found.pop(pid, None)
    return [process for process in found.values() if process.state not in DEAD_STATES]


def marked(mark: str, processes: Iterable[Process] | None = None) -> list[Process]:
    """The live processes whose environment has MARK with this value."""
    wanted = os.fsencode(f"{MARK}={mark}")
    found = []
    for process in all_processes().values() if processes is None else processes:
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                found.append(process)
    return [process for process in found if process.state not in DEAD_STATES]


def memory_of(tree: list[Process]) -> float | None:
    """RAM that the processes take (proportional share of what they share); None if it cannot be read."""
    total, known = 0.0, False
    for process in tree:
        taken = _memory(process.pid)
        if taken is not None:
            total, known = total + taken, True
    return total if known else None


def _memory(pid: int) -> float | None:
    for name, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
                if line.startswith(key):
                    return float(line.split()[1]) * 1024
    return None
