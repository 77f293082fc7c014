"""The sensor of the trainer's process tree: CPU, memory, bytes, states."""

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple, Unpack

from ...model.machine_details import TreeDetails, TreeProcess
from ...model.observation import Agent, ProcessSample, Rank, RankEnded
from ...model.ports import AttemptTarget, DetailDesk
from ...processes import TICKS_PER_S, Process, ProcessIo, age_s, all_processes, ancestors, read_io, variables_of
from ...rank_files import Ranks
from ..sampler import Common, Sampler
from .run_tree import Rates, RunTree, UserNames, command_of
from .signs import MountProbe, Paging, SocketBytes, TerminalWait, worked_for


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
        interval_s: float,
        details: DetailDesk | None = None,
        tree: RunTree | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._desk = details
        self._rows = TreeDetailReadings()
        self._tree = tree or RunTree()
        self._followed: AttemptTarget | None = None
        self._activity = TreeActivity()
        self._computing = Computing()
        self._sockets = SocketBytes()
        self._ranks = Ranks(variables_of)
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
            self._ranks = Ranks(variables_of)
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
        ranks, agents = self._ranks.look(tree, t)
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
                ranks=tuple(Rank(**each._asdict()) for each in ranks),
                agents=tuple(Agent(**each._asdict()) for each in agents),
                asks=self._terminal.check(tree.values()),
            )
        )
        for left in self._ranks.ended(t, over=not tree):
            self._inbox.put(RankEnded(t=t, **left._asdict()))
        if self._desk is not None and self._desk.wanted():
            self._desk.put(self._rows.look(members, all_processes(), t))


# CPU time and bytes of a process tree since the last sample, each counted once although members come and go. Pure.
#
# The kernel adds the CPU time and bytes of a child to the parent that waits for it. A sum over live processes
# therefore jumps (a loader that worked for ten minutes ends: ten minutes of CPU in one second) or falls. Here each
# member's own growth counts, and what a parent inherits is subtracted if it was already counted for the child.

INHERITANCE_SAMPLES = 2
"""Samples in which a parent may still inherit from a child that vanished. A longer time would hide work of a parent
that ignores SIGCHLD and inherits nothing."""


class Member(NamedTuple):
    """One process of the tree in one sample. ``io`` None: not readable."""

    stat: Process
    io: ProcessIo | None


class Work(NamedTuple):
    """CPU ticks (own, and of children that were waited for) and bytes (the kernel does not separate the two)."""

    own_ticks: int = 0
    children_ticks: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    disk_bytes: int = 0

    @property
    def ticks(self) -> int:
        return self.own_ticks + self.children_ticks

    def plus(self, other: "Work") -> "Work":
        return Work(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: "Work") -> "Work":
        """Difference; each part is at least zero."""
        return Work(*(max(0, a - b) for a, b in zip(self, other, strict=True)))


def work_of(member: Member) -> Work:
    """All work of one process, with inherited parts."""
    io = member.io or ProcessIo(0, 0)
    return Work(member.stat.own_ticks, member.stat.children_ticks, io.read_bytes, io.write_bytes, io.disk_bytes)


class TreeActivity:
    """Adds up the work between samples. ``total`` never decreases."""

    def __init__(self) -> None:
        self.total = Work()
        self._members: dict[tuple[int, int], Member] = {}
        self._inherited: dict[int, tuple[Work, int]] = {}
        """Parent pid → (counted work of vanished children that it may still inherit, samples left)."""

    def update(self, members: Mapping[int, Member]) -> Work:
        """Return the work since the last sample (all of it for the first one). ``members``: the tree now."""
        now = {m.stat.key: m for m in members.values()}
        for key, before in self._members.items():
            if key in now and now[key].io is None:  # that of a zombie cannot be read
                now[key] = now[key]._replace(io=before.io)
            elif key not in now:
                known, _ = self._inherited.get(before.stat.parent, (Work(), 0))
                expected = work_of(before)._replace(own_ticks=0, children_ticks=work_of(before).ticks)
                self._inherited[before.stat.parent] = (known.plus(expected), INHERITANCE_SAMPLES)
        done = Work()
        for key, member in now.items():
            grown = work_of(member).minus(work_of(self._members[key]) if key in self._members else Work())
            if member.stat.pid in self._inherited:
                known, left = self._inherited[member.stat.pid]
                self._inherited[member.stat.pid] = (known.minus(grown), left)
                grown = grown.minus(known)
            done = done.plus(grown)
        self._members = now
        self._inherited = {pid: (work, left - 1) for pid, (work, left) in self._inherited.items() if left > 1}
        self.total = self.total.plus(done)
        return done


# The processes of the run, one row each, parents before children, as the host page shows them.

OTHERS = 12
"""Other processes that are listed for their CPU, and as many for their memory."""


class TreeDetailReadings:
    """Makes a TreeDetails of the members of a tree; rates need two calls of ``look``."""

    def __init__(self) -> None:
        self._names = UserNames()
        self._shares = Rates()
        self._bytes = Rates()

    def look(self, members: Mapping[int, Member], processes: Mapping[int, Process], t: float) -> TreeDetails:
        """The rows at ``t`` run seconds. ``processes``: all of the machine."""
        self._shares.begin()
        self._bytes.begin()
        others = [stat for pid, stat in processes.items() if pid not in members]
        shares = {stat.pid: self._shares.cpu_pct(stat, t) for stat in (*others, *(m.stat for m in members.values()))}

        def busy(stat: Process) -> tuple[float, int]:
            return -(shares[stat.pid] or 0.0), -stat.rss_bytes

        def row(member: Member, depth: int) -> TreeProcess:
            stat, io = member
            rates = None if io is None else self._bytes.of(stat, (io.read_bytes, io.write_bytes), t)
            read, written = rates or (None, None)
            return TreeProcess(
                pid=stat.pid,
                depth=depth,
                state=stat.state,
                threads=stat.threads,
                cpu_pct=shares[stat.pid],
                rss_bytes=float(stat.rss_bytes),
                read=read,
                written=written,
                age_s=age_s(stat.start_ticks),
                user=self._names.of(stat.pid),
                command=command_of(stat.pid),
            )

        most = {*sorted(others, key=busy)[:OTHERS], *sorted(others, key=lambda stat: -stat.rss_bytes)[:OTHERS]}
        return TreeDetails(
            t=t,
            processes=tuple(row(member, depth) for member, depth in _parents_first(members)),
            others=tuple(row(Member(stat, None), 0) for stat in sorted(most, key=busy)),
        )


def _parents_first(members: Mapping[int, Member]) -> Iterator[tuple[Member, int]]:
    children: dict[int, list[Member]] = {}
    for member in members.values():
        children.setdefault(member.stat.parent, []).append(member)

    def below(member: Member, depth: int) -> Iterator[tuple[Member, int]]:
        yield member, depth
        for child in sorted(children.get(member.stat.pid, ()), key=_age_order):
            yield from below(child, depth + 1)

    for member in sorted(members.values(), key=_age_order):
        if member.stat.parent not in members:
            yield from below(member, 0)


_age_order = attrgetter("stat.start_ticks", "stat.pid")


# Which processes of a tree compute, and how many of them are stopped (state T). Pure.
#
# A stopped helper (a ``sleep``, a shell) says nothing about the training; a stopped trainer is a pause; one stopped
# rank of several leaves the others waiting. So a process counts by the CPU time that it used lately, compared with the
# busiest one. Workers of a stopped process wait for it and count as stopped, too.

SHARE = 0.1
"""Share of the busiest process's CPU time from which a process computes."""
PARENT_SHARE = 0.5
"""The same for a parent of a stopped process: a launcher used some CPU time for its imports and then only waits."""
MEMORY_S = 300.0
"""CPU seconds of the busiest process after which earlier time hardly counts. Nothing is forgotten while all wait."""
STOPPED = frozenset("T")
ENDED = frozenset("ZXx")


class Standing(NamedTuple):
    """``computing``: processes that compute; ``held``: those of them that are stopped, or wait for a stopped parent."""

    computing: int
    held: int


class Computing:
    """Follows the CPU time of each process of the tree."""

    def __init__(self) -> None:
        self._ticks: dict[tuple[int, int], int] = {}
        self._weight: dict[tuple[int, int], float] = {}

    def update(self, tree: Mapping[int, Process]) -> Standing:
        grown = {s.key: s.own_ticks - self._ticks.get(s.key, 0) for s in tree.values()}
        fade = math.exp(-max(grown.values(), default=0) / (MEMORY_S * TICKS_PER_S))
        self._ticks = {s.key: s.own_ticks for s in tree.values()}
        self._weight = {key: self._weight.get(key, 0.0) * fade + max(0, ticks) for key, ticks in grown.items()}
        living = {s.pid: self._weight[s.key] for s in tree.values() if s.state not in ENDED}
        most = max(living.values(), default=0.0)
        if most <= 0.0:
            return Standing(0, 0)
        computing = {pid for pid, weight in living.items() if weight >= SHARE * most}
        above = {pid: set(ancestors(pid, tree)) - {pid} for pid in computing}
        held = {pid for pid in computing if any(tree[n].state in STOPPED for n in (pid, *(above[pid] & computing)))}
        parents = {parent for pid in held for parent in above[pid]}
        waiting = {pid for pid in computing - held if pid not in parents or living[pid] >= PARENT_SHARE * most}
        return Standing(len(held) + len(waiting), len(held))
