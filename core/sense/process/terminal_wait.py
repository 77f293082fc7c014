"""Whether a process waits for input at its terminal (proc(5): ``fd``, ``syscall``, ``wchan``).

``syscall`` is reliable but readable only if Yama allows it. ``wchan`` names a function in which sockets wait, too.
"""

import os
from collections.abc import Iterable
from typing import Literal

from .proc_stat import ProcStat

Wait = Literal["yes", "maybe"]

CHECKED_PROCESSES = 4
"""Most processes with a terminal that are checked; the trainer and its wrapper come first."""
TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
WAITING_IN = frozenset({"n_tty_read", "wait_woken"})
READ = {"x86_64": 0, "aarch64": 63}
"""Number of ``read`` by machine."""
SELECTS = {"x86_64": frozenset({23, 270}), "aarch64": frozenset({72})}
"""Numbers of ``select`` and ``pselect6``. With 1 as first argument they wait only for descriptor 0."""


class TerminalWait:
    """Remembers which processes have a terminal as standard input, so that all others cost nothing."""

    def __init__(self, proc: str = "/proc", machine: str | None = None) -> None:
        self._proc = proc
        self._machine = machine if machine is not None else os.uname().machine
        self._terminal: dict[tuple[int, int], bool] = {}

    def check(self, tree: Iterable[ProcStat]) -> Wait | None:
        """Whether a sleeping process waits for input: "yes", "maybe", or None if none does."""
        known = {(stat.pid, stat.start_ticks): stat for stat in tree}
        self._terminal = {key: held for key, held in self._terminal.items() if key in known}
        found: Wait | None = None
        checked = 0
        for key, stat in sorted(known.items()):
            if key not in self._terminal:
                self._terminal[key] = self._has_terminal(stat.pid)
            if not self._terminal[key] or stat.state != "S" or checked == CHECKED_PROCESSES:
                continue
            checked += 1
            match self._waits(stat.pid):
                case "yes":
                    return "yes"
                case "maybe":
                    found = "maybe"
                case None:
                    pass
        return found

    def _has_terminal(self, pid: int) -> bool:
        try:
            return os.readlink(f"{self._proc}/{pid}/fd/0").startswith(TERMINALS)  # noqa: PTH115  (1 Hz)
        except OSError:
            return False

    def _waits(self, pid: int) -> Wait | None:
        call = self._read(pid, "syscall").split()
        if len(call) > 1:
            try:
                number, first = int(call[0]), int(call[1], 16)
            except ValueError:
                return None
            reads = number == READ.get(self._machine) and first == 0
            return "yes" if reads or (first == 1 and number in SELECTS.get(self._machine, ())) else None
        if call:  # "running"
            return None
        return "maybe" if self._read(pid, "wchan") in WAITING_IN else None

    def _read(self, pid: int, name: str) -> str:
        try:
            with open(f"{self._proc}/{pid}/{name}", encoding="ascii", errors="replace") as file:  # noqa: PTH123  (1 Hz)
                return file.read().strip()
        except OSError:
            return ""
