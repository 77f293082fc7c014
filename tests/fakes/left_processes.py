"""The processes that a test started, told by a variable of their environment that only this test sets."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from tests.fakes.e2e_world import until
from trainwatch.core import processes

MARK = "LEFT_BY_TEST"
"""A variable that the processes of a test inherit, with a value of its own for each test."""
ENDS_IN_S = 20.0
"""A process that was killed, or whose work is done, may need so long on a busy machine."""


class Left(NamedTuple):
    """A process that lives, and its command."""

    pid: int
    start_ticks: int
    command: str


def processes_with(variable: str, value: str) -> list[Left]:
    """All that began with this variable, but for this process. One that a test may not look into is not its own."""
    mark = os.fsencode(f"{variable}={value}")
    found = []
    for process in processes.all_processes().values():
        place = Path(f"/proc/{process.pid}")
        try:
            if process.pid == os.getpid() or mark not in (place / "environ").read_bytes().split(b"\0"):
                continue
            command = os.fsdecode((place / "cmdline").read_bytes().replace(b"\0", b" ")).strip()
        except OSError:
            continue
        pid, start_ticks = process.key
        found.append(Left(pid, start_ticks, command))
    return found


def left_processes(variable: str, value: str) -> list[Left]:
    """Those of ``processes_with`` that do not end by themselves in a while."""
    end = time.monotonic() + ENDS_IN_S
    while (found := processes_with(variable, value)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def end_processes_with(variable: str, value: str) -> None:
    """Kill them, and what they start until then: again until there is none."""

    def none_left() -> bool:
        left = processes_with(variable, value)
        for one in left:
            processes.send_signal((one.pid, one.start_ticks), signal.SIGKILL)
        return not left

    until(none_left, f"the end of all processes with {variable}={value}")
