"""Processes read from ``/proc`` (proc(5)), and signals that cannot reach a wrong process.

A process is known by (pid, start ticks): the kernel reuses pids, but not the pair within one boot. (psutil's
``create_time`` shifts.) A zombie counts as dead: it holds no memory, file or GPU, unless one of its threads still runs.

Standard library only, no newer Python than 3.8: the runner imports this, and jobs of Slurm have a copy of this file on
their nodes.
"""
# No pathlib here: it keeps the runner small, and reading all processes each second fast.
# ruff: noqa: PTH115, PTH116, PTH208

from __future__ import annotations

import os
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from .model.run import ProcessIdentity

ATTEMPT_VARIABLE = "TRAINWATCH_ATTEMPT"
"""Set in the trainer's environment to its attempt directory. It finds descendants that left its session and parent."""
AGENT_VARIABLE = "TRAINWATCH_AGENT"
"""Set for the agents on the nodes of a job of Slurm, which are no part of the training."""
DEAD_STATES = frozenset("ZXx")
"""Zombie (ended, not yet waited for) and dead. A zombie has a pid and answers signal 0, but nothing runs."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KTHREADD = 2
"""The parent of all kernel threads. A container does not see them; there the pid is another process."""
EXEC_S = 1.0
"""How long the end of an exec is waited for. A program that has neither words nor variables is rare: PR_SET_MM."""
_WRITABLE = 0o200
"""The mode of a link below ``/proc/PID/fd`` shows whether the file was opened for writing."""


class Process(NamedTuple):
    """One process at one moment. ``state`` is the letter of ``/proc/PID/stat`` (R, S, D, T, t, Z, I …).

    CPU time in clock ticks; ``children_ticks``: of children that were waited for. ``exit_status``: the wait status of a
    zombie, 0 if it may not be read.
    """

    pid: int
    start_ticks: int
    parent: int
    group: int
    session: int
    state: str
    name: str
    own_ticks: int = 0
    children_ticks: int = 0
    rss_bytes: int = 0
    exit_status: int = 0
    threads: int = 1

    @property
    def key(self) -> tuple[int, int]:
        """(pid, start ticks), the identity of the process within this boot."""
        return self.pid, self.start_ticks


class ProcessIo(NamedTuple):
    """Bytes that a process has read and written, cumulative, with those of children that it waited for.

    ``read_bytes``: requested (page cache and pipes included: a loader that reads from the cache is alive).
    ``disk_bytes``: read from the disk, those of mapped files and of paging included, which request none.
    ``given_bytes``: requested to be written; they grow with each line. ``paged_bytes``: on their way to a disk, in
    whole pages, those of mapped files included. ``write_bytes``: the larger of these two.
    """

    read_bytes: int
    write_bytes: int
    disk_bytes: int = 0
    given_bytes: int = 0
    paged_bytes: int = 0


# --- files of the kernel ---


def kernel_bytes(path: str | os.PathLike[str]) -> bytes:
    """The whole file; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = more = os.read(descriptor, 1 << 16)
        while more:
            more = os.read(descriptor, 1 << 16)
            data += more
        return data
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def file_text(path: str | os.PathLike[str]) -> str:
    """The whole file; empty if it cannot be read."""
    return kernel_bytes(path).decode("utf-8", "replace")


def status_of(path: str | os.PathLike[str]) -> os.stat_result | None:
    """``stat`` of what is there; None if that cannot be told."""
    try:
        return os.stat(path)
    except OSError:
        return None


def link_of(path: str) -> str:
    """Where a link leads; empty if it is none or cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Id of this boot, "unknown" if the kernel does not say. Start ticks of different boots cannot be compared."""
    return file_text("/proc/sys/kernel/random/boot_id").strip() or "unknown"


# --- one process ---


def read_process(pid: int) -> Process | None:
    """Return the process with this pid, zombies included, or None."""
    # The name is in parentheses and may contain spaces and parentheses: the last ")" ends it.
    head, _, rest = file_text(f"/proc/{pid}/stat").rpartition(")")
    fields = rest.split()
    if len(fields) < 22:
        return None
    return Process(
        pid=pid,
        start_ticks=int(fields[19]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        # One whose first thread ended looks like a zombie while other threads run or hang in the driver (state D).
        state=_state_of_threads(pid) if fields[0] == "Z" and int(fields[17]) > 1 else fields[0],
        name=head.partition("(")[2],
        own_ticks=int(fields[11]) + int(fields[12]),
        children_ticks=int(fields[13]) + int(fields[14]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
        exit_status=int(fields[49]) if len(fields) > 49 else 0,
        threads=int(fields[17]),
    )


def _state_of_threads(pid: int) -> str:
    """D if a thread is in state D, else the state of a thread that has not ended; Z if all have ended."""
    try:
        threads = [file_text(f"/proc/{pid}/task/{tid}/stat") for tid in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return "Z"
    living = {text.rpartition(")")[2].split()[0] for text in threads if text} - DEAD_STATES
    return "D" if "D" in living else min(living, default="Z")


def read_io(pid: int) -> ProcessIo | None:
    """Bytes of a process; None if it has ended, belongs to another user, or the kernel does not count."""
    words = kernel_bytes(f"/proc/{pid}/io").split()
    if len(words) < 12:
        return None
    # rchar, wchar, syscr, syscw, read_bytes, write_bytes, each behind its name
    read, given, disk, paged = int(words[1]), int(words[3]), int(words[9]), int(words[11])
    return ProcessIo(read, max(given, paged), disk, given, paged)


def read_children(pid: int) -> list[int]:
    """Pids that the first thread of a process started; none if it has ended or the kernel has no such list."""
    return [int(word) for word in kernel_bytes(f"/proc/{pid}/task/{pid}/children").split()]


def variables_of(pid: int) -> list[bytes] | None:
    """The environment that a process was started with, ``NAME=value`` each; None if it cannot be read.

    In the midst of an exec the kernel shows neither words nor variables, on a busy machine for tens of milliseconds: a
    survivor of an attempt that just starts a program is found all the same.
    """
    end, settled = time.monotonic() + EXEC_S, False
    while True:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                data = file.read()
        except OSError:
            return None
        if data or settled:
            return data.split(b"\0")
        # Who has ended has no link to its program either. The exec may have ended since the look: one more follows.
        settled = kernel_bytes(f"/proc/{pid}/cmdline") != b"" or not link_of(f"/proc/{pid}/exe")
        settled = settled or time.monotonic() > end
        if not settled:
            time.sleep(0.001)


def words_of(pid: int) -> list[bytes]:
    """Its command line; nothing but an empty word if it has none or has ended."""
    data = kernel_bytes(f"/proc/{pid}/cmdline")
    return (data[:-1] if data.endswith(b"\0") else data).split(b"\0")


def comm_of(pid: int) -> str:
    """The program's name; empty if there is no such process."""
    return file_text(f"/proc/{pid}/comm").strip()


def status_fields(pid: int) -> dict[str, str]:
    """``/proc/PID/status`` by name (``SigCgt``, ``Tgid``, ``NSpid``); empty if it has ended."""
    pairs = (line.partition(":") for line in file_text(f"/proc/{pid}/status").splitlines())
    return {name: value.strip() for name, _, value in pairs}


def owner_of(pid: int) -> int | None:
    """The id of the user that a process belongs to; None: there is no such process."""
    status = status_of(f"/proc/{pid}")
    return None if status is None else status.st_uid


def is_trainwatch(words: Sequence[bytes]) -> bool:
    """Whether a command line is of a supervisor, a runner or a screen: ``trainwatch``, ``python -m trainwatch…``."""
    if any(word.rpartition(b"/")[2] == b"trainwatch" for word in words[:2]):
        return True
    return any(words[n - 1] == b"-m" and word.partition(b".")[0] == b"trainwatch" for n, word in enumerate(words) if n)


def age_s(start_ticks: int) -> float:
    """Seconds since the start of a process. Ticks count from boot and include suspends."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / TICKS_PER_S)


def open_files(pid: int, *, for_writing: bool = False) -> Iterator[tuple[int, str, bool]]:
    """(number, where it leads, whether it may be written to) of what a process has open; nothing if not permitted."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                try:
                    writable = bool(entry.stat(follow_symlinks=False).st_mode & _WRITABLE)
                    if writable or not for_writing:
                        yield int(entry.name), os.readlink(entry.path), writable
                except OSError:
                    continue
    except OSError:
        return


def catches_signal(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal now."""
    try:
        return bool(int(status_fields(pid).get("SigCgt", "0"), 16) >> (number - 1) & 1)
    except ValueError:
        return False


# --- which of them ---


def all_processes() -> dict[int, Process]:
    """All visible processes by pid, without kernel threads. Takes about 15 microseconds for each."""
    kernel = KTHREADD if comm_of(KTHREADD) == "kthreadd" else None
    threads = frozenset() if kernel is None else frozenset(read_children(kernel))  # a thousand on a large machine
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit() and int(name) not in threads)
    return {process.pid: process for process in found if process is not None and process.parent != kernel}


def living(key: Sequence[int]) -> Process | None:
    """Exactly this process (pid, start ticks), if it runs. A zombie does not."""
    process = read_process(key[0])
    alive = process is not None and process.start_ticks == key[1] and process.state not in DEAD_STATES
    return process if alive else None


def is_alive(which: Sequence[int] | ProcessIdentity | None) -> bool:
    """Whether exactly this process runs, by its key or by its identity, which holds for one boot. None does not."""
    if which is None:
        return False
    if not isinstance(which, (tuple, list)):
        which = (which.pid, which.start_ticks) if which.boot_id == boot_id() else (0, 0)  # type: ignore[union-attr]
    return living(which) is not None


def is_zombie(identity: ProcessIdentity) -> bool:
    """Whether the process has ended and was not waited for yet."""
    process = read_process(identity.pid) if identity.boot_id == boot_id() else None
    return process is not None and process.start_ticks == identity.start_ticks and process.state in DEAD_STATES


def identity_of(process: Process) -> ProcessIdentity:
    from .model.run import ProcessIdentity

    return ProcessIdentity(boot_id=boot_id(), pid=process.pid, start_ticks=process.start_ticks)


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a running process; None if there is none or it is a zombie."""
    process = read_process(pid)
    return None if process is None or process.state in DEAD_STATES else identity_of(process)


def own_process() -> Process:
    """The calling process. Exits with a message if /proc is not mounted."""
    process = read_process(os.getpid())
    if process is None:
        sys.exit("/proc is not mounted, so process identities cannot be read; mount it")
    return process


def catching(among: Iterable[Process], number: int) -> list[Process]:
    """The processes that catch the signal and that descend from none that does (loader workers inherit a handler)."""
    known = {process.pid: process for process in among}
    found = {pid for pid in known if catches_signal(pid, number)}
    return [known[pid] for pid in sorted(found) if not (ancestors(pid, known) - {pid}) & found]


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


def signal_each(among: Iterable[Process], number: int) -> list[Process]:
    """Signal each of them; those that got it, without those that have ended or are another user's."""
    got = []
    for process in among:
        try:
            got += [process] if send_signal(process.key, number) else []
        except OSError:
            continue
    return got


def send_signal(key: tuple[int, int], number: int) -> bool:
    """Signal exactly this process. False: it has ended. Raises PermissionError."""
    import signal  # who only reads does not load it

    pid, start_ticks = key
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # a kernel before 5.3, Python 3.8: some microseconds pass between read and kill
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
