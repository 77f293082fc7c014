"""Processes read from ``/proc``, and signals that cannot reach a wrong process.

Standard library only: the runner imports this. A process is identified by (pid, start ticks): the kernel reuses pids,
but not the pair within one boot. A zombie counts as dead: it holds no memory, file or GPU, unless one of its threads
still runs.
"""
# No pathlib here: it keeps the runner small, and reading all processes fast.
# ruff: noqa: PTH123, PTH208

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

ATTEMPT_VARIABLE = "TRAINWATCH_ATTEMPT"
"""Set in the trainer's environment to its attempt directory. It finds descendants that left its session and parent."""

AGENT_VARIABLE = "TRAINWATCH_AGENT"
"""Set for the agents on the nodes of a job of Slurm, which are no part of the training."""
DEAD_STATES = frozenset("ZXx")


class Process(NamedTuple):
    """One process at one moment. ``state`` is the letter of ``/proc/PID/stat`` (R, S, D, T, t, Z, I …)."""

    pid: int
    start_ticks: int
    parent: int
    group: int
    session: int
    state: str
    name: str

    @property
    def key(self) -> tuple[int, int]:
        """(pid, start ticks), the identity of the process within this boot."""
        return self.pid, self.start_ticks


def boot_id() -> str:
    """Id of this boot. Start ticks of different boots cannot be compared."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def read_process(pid: int) -> Process | None:
    """Return the process with this pid, zombies included, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    # The name is in parentheses and may contain spaces and parentheses: the last ")" ends it.
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    if len(fields) < 20:
        return None
    # A process whose first thread ended looks like a zombie while other threads run or hang in the driver (state D).
    state = living_thread_state(pid) if fields[0] == "Z" and int(fields[17]) > 1 else fields[0]
    return Process(
        pid=pid,
        start_ticks=int(fields[19]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        state=state,
        name=head.partition("(")[2],
    )


def living_thread_state(pid: int) -> str:
    """D if a thread is in state D, else the state of a thread that has not ended; Z if all have ended."""
    found = set()
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                found.add(file.read().rpartition(b")")[2].split()[0].decode())
    except (OSError, IndexError):
        pass
    living = found - DEAD_STATES
    return "D" if "D" in living else min(living, default="Z")


def all_processes() -> dict[int, Process]:
    """All visible processes by pid."""
    found: dict[int, Process] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (process := read_process(int(entry))) is not None:
            found[process.pid] = process
    return found


def descendants(root: int, processes: Mapping[int, Process] | None = None) -> list[Process]:
    """Live descendants of ``root`` without itself, parents first. Children of zombies are included."""
    processes = all_processes() if processes is None else processes
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = list(children.get(root, ()))
    while waiting:
        process = waiting.pop(0)
        found.append(process)
        waiting.extend(children.get(process.pid, ()))
    return [process for process in found if process.state not in DEAD_STATES]


def ancestors(pid: int, processes: Mapping[int, Process]) -> set[int]:
    """``pid`` and all its ancestors."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def marked_with(directory: str, processes: Iterable[Process], variable: str = ATTEMPT_VARIABLE) -> list[Process]:
    """The processes that have this variable set to ``directory``."""
    wanted = os.fsencode(f"{variable}={directory}")
    return [process for process in processes if wanted in (variables_of(process.pid) or ())]


def variables_of(pid: int) -> list[bytes] | None:
    """The environment that a process was started with, ``NAME=value`` each; None if it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return None


def is_for_writing(pid: int, descriptor: str) -> bool:
    """Whether a process has this file descriptor open for writing. Raises OSError."""
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def living(key: Sequence[int]) -> Process | None:
    """Exactly this process (pid, start ticks), if it runs. A zombie does not."""
    process = read_process(key[0])
    alive = process is not None and process.start_ticks == key[1] and process.state not in DEAD_STATES
    return process if alive else None


def is_alive(key: Sequence[int]) -> bool:
    """Whether exactly this process runs."""
    return living(key) is not None


def attempt_processes(
    trainer: tuple[int, int], *, directory: str | None, spare: Collection[int] = (), variable: str = ATTEMPT_VARIABLE
) -> list[Process]:
    """The live processes of an attempt, found without its runner.

    These are the trainer and its descendants; members of the session and process group that the trainer leads (not of
    a shell's session that it was started in); and processes whose ``variable`` is ``directory``, which finds those
    that were re-parented. This process, its ancestors and ``spare`` are left out. If the trainer is dead, its pid may
    still be the id of a session of survivors (the kernel does not reuse a pid while it is the id of a session or
    group).
    """
    processes = all_processes()
    leader = processes.get(trainer[0])
    found: dict[int, Process] = {}
    if leader is None or leader.start_ticks == trainer[1]:
        led_session = leader is None or leader.session == trainer[0]
        led_group = leader is None or leader.group == trainer[0]
        for pid, process in processes.items():
            of_session, of_group = process.session == trainer[0], process.group == trainer[0]
            if process is leader or (led_session and of_session) or (led_group and of_group):
                found[pid] = process
    if directory is not None:
        found.update((process.pid, process) for process in marked_with(directory, processes.values(), variable))
    for root in list(found.values()):
        found.update((process.pid, process) for process in descendants(root.pid, processes))
    excluded = ancestors(os.getpid(), processes) | set(spare)
    return [process for pid, process in found.items() if pid not in excluded and process.state not in DEAD_STATES]


def send_signal(key: tuple[int, int], number: int) -> bool:
    """Signal exactly this process. False: it has ended. Raises PermissionError."""
    pid, start_ticks = key
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:  # a kernel before 5.3: some microseconds pass between reading and killing
        handle = None
    try:
        process = read_process(pid)
        # Read after the handle was opened: if the ticks match, the handle is of this process and not of a later one.
        if process is None or process.start_ticks != start_ticks:
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


Members = Callable[[], Iterable[Process]]
"""Returns the processes that belong to a tree now."""


def own_process() -> Process:
    """The calling process. Exits with a message if /proc is not mounted."""
    process = read_process(os.getpid())
    if process is None:
        sys.exit("/proc is not mounted, so process identities cannot be read; mount it")
    return process
