"""Whether a busy thread only waits for its GPU: its innermost native frames are in the driver's library.

A thread in ``item()``, ``synchronize()`` or a copy uses a whole core until its GPU is done, because CUDA polls by
default. Its Python stack is one line, as that of a long computation is. Seen on an H200 (driver 580, PyTorch 2.11) with
``py-spy dump --native``: a wait is in ``libcuda.so``, now and then in a clock of the vDSO or of libc called by it; a
sort on the CPU is in ``libtorch_cpu.so``. A wait that sleeps uses no processor time and needs no such look.

Standard library only: the stack probe imports this.
"""

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .. import processes
from .py_spy import dump

DRIVER = re.compile(r"^libcuda(?:_loader)?\.so")
"""The driver's library; the loader is that of WSL2."""
CLOCKS = re.compile(r"^\[vdso\]$|^(?:__)?(?:clock_gettime|sched_yield)$")
"""What a poll of the driver calls: a file or the name of a function."""
TRIES = 3
"""Most dumps of one process: py-spy cannot always unwind what is below the vDSO."""
UNKNOWN = "?"
"""File of a frame that py-spy could not place."""
PROCESSES = 4
"""Most processes that are stopped for a look: a rank that waits does so like the others."""


def waiting(spy: str, threads: Mapping[int, Iterable[int]], limit_s: float) -> set[tuple[int, int]]:
    """Return which of these threads, by process, wait for a GPU. Blocks at most ``limit_s``.

    Stops each process for about a second while its native frames are read. None are found if there are more than
    ``PROCESSES``, or if a process cannot be read: what was not looked at may work.
    """
    found: set[tuple[int, int]] = set()
    until = time.monotonic() + limit_s
    for pid, wanted in threads.items() if len(threads) <= PROCESSES else ():
        unclear = set(wanted)
        for _ in range(TRIES):
            process, left_s = processes.read_process(pid), until - time.monotonic()
            if not unclear or process is None or left_s <= 0.0:
                break
            frames = frames_by_thread(dump(spy, process, left_s, [], native=True, options=("--json",)) or "")
            seen = {thread: waits(frames.get(thread, [])) for thread in unclear}
            found |= {(pid, thread) for thread, waiting in seen.items() if waiting}
            unclear = {thread for thread, waiting in seen.items() if waiting is None}
    return found


def frames_by_thread(text: str) -> dict[int, list[dict[str, Any]]]:
    """Return the frames of each native thread id in a JSON dump, innermost first; none if it cannot be read."""
    try:
        return {int(each["os_thread_id"]): each["frames"] for each in json.loads(text) if each["os_thread_id"]}
    except (ValueError, KeyError, TypeError):
        return {}


def waits(frames: Iterable[Mapping[str, Any]]) -> bool | None:
    """Return whether the innermost frame, clocks left aside, is in the driver's library; None if unknown."""
    for frame in frames:
        file = str(frame.get("module") or frame.get("filename") or UNKNOWN).rpartition("/")[2]
        if file == UNKNOWN:
            return None
        if not (CLOCKS.search(file) or CLOCKS.search(str(frame.get("name")))):
            return DRIVER.search(file) is not None
    return None
