"""The sensor of the trainer's process tree: CPU, memory, bytes, states."""

import os
from collections import Counter

from ...model.observation import ProcessSample
from ...model.ports.supervision import AttemptTarget, Clock, DetailDesk, Inbox, NoDetails
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem
from .computing import Computing
from .mount_probe import MountProbe
from .paging import Paging, worked_for
from .proc_stat import TICKS_PER_S, read_all, read_io
from .ranks import Ranks
from .run_tree import RunTree
from .socket_bytes import SocketBytes
from .terminal_wait import TerminalWait
from .tree_activity import Member, TreeActivity
from .tree_details import TreeDetailReadings


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
        tree: RunTree | None = None,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._desk = details or NoDetails()
        self._rows = TreeDetailReadings()
        self._tree = tree or RunTree()
        self._inbox = inbox
        self._clock = clock
        self._followed: AttemptTarget | None = None
        self._activity = TreeActivity()
        self._computing = Computing()
        self._sockets = SocketBytes()
        self._ranks = Ranks()
        self._mounts = MountProbe()
        self._paging = Paging()
        self._cpus = float(os.cpu_count() or 1)
        self._read = 0
        self._terminal = TerminalWait()
        self._looked_t: float | None = None

    def sample(self) -> None:
        target = self.target
        if target != self._followed:
            self._followed, self._looked_t, self._read = target, None, 0
            self._activity, self._computing, self._sockets = TreeActivity(), Computing(), SocketBytes()
            self._ranks = Ranks()
        if target is None:
            return
        tree = self._tree.look(target)
        members = {pid: Member(stat, read_io(pid)) for pid, stat in tree.items()}
        t = self._clock.now()
        done = self._activity.update(members)
        read_back = self._paging.read_back()
        self._read += worked_for(done.read_bytes, done.disk_bytes, read_back)
        standing = self._computing.update(tree)
        elapsed = None if self._looked_t is None else t - self._looked_t
        self._looked_t = t
        ranks = self._ranks.look(tree, t)
        io_known = any(m.io is not None for m in members.values()) or (not members and self._read > 0)
        self._inbox.put(
            ProcessSample(
                t=t,
                cpu_cores=None
                if elapsed is None or elapsed <= 0
                else min(done.ticks / TICKS_PER_S / elapsed, self._cpus),
                read_bytes=float(self._read) if io_known else None,
                write_bytes=float(self._activity.total.write_bytes) if io_known else None,
                procs=len(tree),
                states=dict(Counter(stat.state for stat in tree.values())),
                rss_bytes=float(sum(stat.rss_bytes for stat in tree.values())),
                net_bytes=self._sockets.look(tree, t),
                silent_mounts=self._mounts.check(tree.values()),
                computing=standing.computing,
                held=standing.held,
                ranks=ranks.ranks,
                agents=ranks.agents,
                asks=self._terminal.check(tree.values()),
            )
        )
        for ended in ranks.ended:
            self._inbox.put(ended)
        if self._desk.wanted():
            self._desk.put(self._rows.look(members, read_all(), t))
