"""Processes as the kernel tells them (``/proc``), and signals that cannot hit the wrong one.

Standard library only: the runner imports this. A process is known by (pid, start ticks); pids are reused, the pair is
not within one boot. Zombies count as gone: they hold no memory, no file and no GPU (unless a thread of theirs lives).
"""
# No pathlib here: the runner stays small, and a look at every process fast.
# ruff: noqa: PTH123, PTH208

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

ATTEMPT_VARIABLE = "TRAINWATCH_ATTEMPT"
"""Set in the trainer's environment to its attempt directory: finds descendants that left session and parent."""

GONE_STATES = frozenset("ZXx")


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
        """(pid, start ticks): what stays true of a process for as long as it lives."""
        return self.pid, self.start_ticks


def boot_id() -> str:
    """Identity of this boot; start ticks of different boots must not be compared."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def look(pid: int) -> Process | None:
    """The process with this pid, zombies included; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold spaces and parentheses itself: the last ")" ends it.
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    if len(fields) < 20:
        return None
    # A process whose first thread ended looks like a zombie while others run on, or hang in the driver (state D).
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
    """State of a thread that has not ended, one that is stuck in the kernel first; Z when none is left."""
    found = set()
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                found.add(file.read().rpartition(b")")[2].split()[0].decode())
    except (OSError, IndexError):
        pass
    living = found - GONE_STATES
    return "D" if "D" in living else min(living, default="Z")


def everyone() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    found: dict[int, Process] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (process := look(int(entry))) is not None:
            found[process.pid] = process
    return found


def descendants(root: int, processes: Mapping[int, Process] | None = None) -> list[Process]:
    """Children, grandchildren … of ``root`` without itself, parents first; zombies are left out but looked through."""
    processes = everyone() if processes is None else processes
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = list(children.get(root, ()))
    while waiting:
        process = waiting.pop(0)
        found.append(process)
        waiting.extend(children.get(process.pid, ()))
    return [process for process in found if process.state not in GONE_STATES]


def ancestors(pid: int, processes: Mapping[int, Process]) -> set[int]:
    """``pid`` and all its parents."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def marked_with(directory: str, processes: Iterable[Process]) -> list[Process]:
    """Those whose environment says that they were started inside the attempt of ``directory``."""
    wanted = os.fsencode(f"{ATTEMPT_VARIABLE}={directory}")
    found = []
    for process in processes:
        try:
            with open(f"/proc/{process.pid}/environ", "rb") as file:
                entries = file.read().split(b"\0")
        except OSError:
            continue
        if wanted in entries:
            found.append(process)
    return found


def is_alive(key: tuple[int, int]) -> bool:
    """Whether this very process still runs (a zombie does not)."""
    process = look(key[0])
    return process is not None and process.start_ticks == key[1] and process.state not in GONE_STATES


def family(trainer: tuple[int, int], *, directory: str | None, spare: Collection[int] = ()) -> list[Process]:
    """The trainer and everything that belongs to it, when no runner is there to be asked.

    Descendants; members of the trainer's own session and process group, if it leads them (never a shell's session that
    it was merely started in); and processes that carry the attempt's mark in their environment (``directory``), which
    finds those that were re-parented. This process, its ancestors and ``spare`` are never part of it. When the trainer
    is dead, its pid may lead a session of survivors (a pid is not reused while it names a session or group).
    """
    processes = everyone()
    leader = processes.get(trainer[0])
    found: dict[int, Process] = {}
    if leader is None or leader.start_ticks == trainer[1]:
        roots = []
        if leader is not None:
            roots.append(leader)
        led_session = leader is None or leader.session == trainer[0]
        led_group = leader is None or leader.group == trainer[0]
        roots.extend(
            process
            for process in processes.values()
            if (led_session and process.session == trainer[0]) or (led_group and process.group == trainer[0])
        )
        for root in roots:
            found[root.pid] = root
    if directory is not None:
        found.update((process.pid, process) for process in marked_with(directory, processes.values()))
    for root in list(found.values()):
        found.update((process.pid, process) for process in descendants(root.pid, processes))
    untouchable = ancestors(os.getpid(), processes) | set(spare)
    return [process for pid, process in found.items() if pid not in untouchable and process.state not in GONE_STATES]


def send(key: tuple[int, int], number: int) -> bool:
    """Signal exactly this process. False when it is gone; PermissionError when it is not ours to signal."""
    pid, start_ticks = key
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:  # a kernel before 5.3: the gap between look and kill is microseconds
        return _send_without_handle(pid, start_ticks, number)
    try:
        process = look(pid)
        # Looked at after the handle was taken: if the ticks match, the handle names this process and no later one.
        if process is None or process.start_ticks != start_ticks:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _send_without_handle(pid: int, start_ticks: int, number: int) -> bool:
    process = look(pid)
    if process is None or process.start_ticks != start_ticks:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


Members = Callable[[], Iterable[Process]]
"""Asks anew which processes belong to a tree."""


def own_process() -> Process:
    """The process that asks."""
    process = look(os.getpid())
    if process is None:
        sys.exit("/proc is not mounted, so process identities cannot be read; mount it")
    return process
