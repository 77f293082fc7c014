"""The sensor of the trainer's process tree: CPU, memory, bytes, states."""

import os
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path

from ...model.observation import ProcessSample
from ...model.ports.supervision import AttemptTarget, Clock, DetailDesk, Inbox, NoDetails
from ...model.run import ProcessIdentity
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem
from .computing import Computing
from .mount_probe import MountProbe
from .paging import Paging, worked_for
from .proc_stat import TICKS_PER_S, ProcStat, read_all, read_io
from .process_identity import boot_id
from .ranks import Ranks
from .socket_bytes import SocketBytes
from .terminal_wait import TerminalWait
from .tree_activity import Member, TreeActivity
from .tree_details import TreeDetailReadings

STACK_PROBE = b"trainwatch.core.act.evidence.stack_probe"
"""Module that the runner starts to see stacks, as a word of its command line."""


def tree_of(target: AttemptTarget, processes: Mapping[int, ProcStat]) -> dict[int, ProcStat]:
    """The members among ``processes``: the trainer, its descendants, and all other descendants of the runner.

    Workers whose parent died are children of the runner (a subreaper). The runner itself is not a member, nor is the
    stack probe that it starts: what it reads and computes is no sign of life of the trainer.
    """
    children: dict[int, list[int]] = {}
    for stat in processes.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    trainer, runner = _living(target.trainer, processes), _living(target.runner, processes)
    waiting = deque([trainer] if trainer is not None else [])
    if runner is not None:
        waiting.extend(pid for pid in children.get(runner, ()) if not _is_of_runner(pid, runner))
    members: dict[int, ProcStat] = {}
    while waiting:
        pid = waiting.popleft()
        if pid not in members and pid in processes and pid != runner:
            members[pid] = processes[pid]
            waiting.extend(children.get(pid, ()))
    return members


def _is_of_runner(pid: int, runner: int) -> bool:
    """Whether this child of the runner is its stack probe, also before the probe's program was loaded (``exec``)."""
    words = _command_words(pid)
    return STACK_PROBE in words or (any(words) and words == _command_words(runner))


def _command_words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def tree_pids(target: AttemptTarget) -> frozenset[int]:
    """Pids of the tree now."""
    return frozenset(tree_of(target, read_all()))


def _living(identity: ProcessIdentity | None, processes: Mapping[int, ProcStat]) -> int | None:
    stat = None if identity is None else processes.get(identity.pid)
    if identity is None or stat is None or identity.boot_id != boot_id():
        return None
    return stat.pid if stat.start_ticks == identity.start_ticks else None


class ProcessTree(Sampler):
    """Puts a ``ProcessSample`` every ``interval_s`` while an attempt is followed.

    ``cpu_cores`` is None in the first sample, which has no interval. Bytes are None if the kernel does not count them,
    else cumulative; they never fall when members end, and memory that is read back from the swap does not count.
    ``rss_bytes`` is a sum in which pages that forked workers share with the trainer count for each of them. ``procs``
    and ``states`` include zombies (``Z``).
    """

    name = "process tree"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        interval_s: float,
        details: DetailDesk | None = None,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._desk = details or NoDetails()
        self._rows = TreeDetailReadings()
        self._inbox = inbox
        self._clock = clock
        self._followed: AttemptTarget | None = None
        self._activity = TreeActivity()
        self._computing = Computing()
        self._sockets = SocketBytes()
        self._ranks = Ranks()
        self._mounts = MountProbe()
        self._paging = Paging()
        self._read = 0
        self._terminal = TerminalWait()
        self._looked_t: float | None = None

    def sample(self) -> None:
        target = self.target
        if target != self._followed:
            self._followed, self._looked_t, self._read = target, None, 0
            self._activity, self._computing, self._sockets = TreeActivity(), Computing(), SocketBytes()
        if target is None:
            return
        processes = read_all()
        tree = tree_of(target, processes)
        members = {pid: Member(stat, read_io(pid)) for pid, stat in tree.items()}
        t = self._clock.now()
        done = self._activity.update(members)
        read_back = self._paging.read_back()
        self._read += worked_for(done.read_bytes, done.disk_bytes, read_back)
        standing = self._computing.update(tree)
        elapsed = None if self._looked_t is None else t - self._looked_t
        self._looked_t = t
        io_known = any(m.io is not None for m in members.values()) or (not members and self._read > 0)
        self._inbox.put(
            ProcessSample(
                t=t,
                cpu_cores=None
                if elapsed is None or elapsed <= 0
                else min(done.ticks / TICKS_PER_S / elapsed, float(os.cpu_count() or 1)),
                read_bytes=float(self._read) if io_known else None,
                write_bytes=float(self._activity.total.write_bytes) if io_known else None,
                procs=len(tree),
                states=dict(Counter(stat.state for stat in tree.values())),
                rss_bytes=float(sum(stat.rss_bytes for stat in tree.values())),
                net_bytes=self._sockets.look(tree, t),
                silent_mounts=self._mounts.check(tree.values()),
                computing=standing.computing,
                held=standing.held,
                ranks=self._ranks.look(tree),
                asks=self._terminal.check(tree.values()),
            )
        )
        if self._desk.wanted():
            self._desk.put(self._rows.look(members, processes, t))
