"""The sensor of the trainer's process tree: CPU, memory, bytes, states."""

import math
import os
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ...model.machine_details import TreeDetails, TreeProcess
from ...model.observation import ProcessSample
from ...model.supervision_ports import AttemptTarget, Clock, DetailDesk, Inbox, NoDetails
from ..sampler import OnProblem, Sampler, ignore_problem
from .mount_probe import MountProbe
from .proc_stat import PAGE_BYTES, TICKS_PER_S, ProcIo, ProcStat, kernel_text, read_all, read_io
from .ranks import Ranks, TerminalWait
from .run_tree import CpuShares, RunTree, UserNames, age_of, command_of


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

    stat: ProcStat
    io: ProcIo | None


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
    io = member.io or ProcIo(0, 0)
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
        now = {(m.stat.pid, m.stat.start_ticks): self._with_last_io(m) for m in members.values()}
        self._expect_inheritance(now)
        done = Work()
        for key, member in now.items():
            before = self._members.get(key)
            grown = work_of(member) if before is None else work_of(member).minus(work_of(before))
            done = done.plus(self._without_inheritance(member.stat.pid, grown))
        self._members = now
        self._inherited = {pid: (work, left - 1) for pid, (work, left) in self._inherited.items() if left > 1}
        self.total = self.total.plus(done)
        return done

    def _with_last_io(self, member: Member) -> Member:
        """The member with its last known ``io``: that of a zombie cannot be read."""
        before = self._members.get((member.stat.pid, member.stat.start_ticks))
        return member if member.io is not None or before is None else member._replace(io=before.io)

    def _expect_inheritance(self, now: Mapping[tuple[int, int], Member]) -> None:
        for key, member in self._members.items():
            if key not in now:
                known, _ = self._inherited.get(member.stat.parent, (Work(), 0))
                left = work_of(member)
                expected = Work(0, left.ticks, left.read_bytes, left.write_bytes, left.disk_bytes)
                self._inherited[member.stat.parent] = (known.plus(expected), INHERITANCE_SAMPLES)

    def _without_inheritance(self, pid: int, grown: Work) -> Work:
        if pid not in self._inherited:
            return grown
        known, left = self._inherited[pid]
        self._inherited[pid] = (known.minus(grown), left)
        return grown.minus(known)


# The processes of the run, one row each, parents before children, as the host page shows them.

OTHERS = 12
"""Other processes that are listed for their CPU, and as many for their memory."""
LONGEST_S = 10.0
"""No rate is shown over a longer time, in which the page was closed: it would not be the present one."""


class TreeDetailReadings:
    """Makes a TreeDetails of the members of a tree; rates need two calls of ``look``."""

    def __init__(self) -> None:
        self._names = UserNames()
        self._shares = CpuShares()
        self._io: dict[tuple[int, int], tuple[ProcIo, float]] = {}

    def look(self, members: Mapping[int, Member], processes: Mapping[int, ProcStat], t: float) -> TreeDetails:
        """The rows at ``t`` run seconds. ``processes``: all of the machine."""
        self._shares.begin()
        before, self._io = self._io, {}
        return TreeDetails(
            t=t,
            processes=tuple(self._row(member, depth, before, t) for member, depth in _parents_first(members)),
            others=self._others([stat for pid, stat in processes.items() if pid not in members], t),
        )

    def _others(self, stats: list[ProcStat], t: float) -> tuple[TreeProcess, ...]:
        """Those that use most CPU or memory, the busiest first. Their bytes are not read."""
        shares = {stat.pid: self._shares.of(stat, t) for stat in stats}

        def busy(stat: ProcStat) -> tuple[float, int]:
            return -(shares[stat.pid] or 0.0), -stat.rss_bytes

        chosen = {s.pid: s for s in sorted(stats, key=busy)[:OTHERS]}
        chosen |= {s.pid: s for s in sorted(stats, key=lambda s: -s.rss_bytes)[:OTHERS]}
        return tuple(self._told(stat, 0, shares[stat.pid], None, None) for stat in sorted(chosen.values(), key=busy))

    def _row(
        self, member: Member, depth: int, before: Mapping[tuple[int, int], tuple[ProcIo, float]], t: float
    ) -> TreeProcess:
        stat, io = member.stat, member.io
        key = (stat.pid, stat.start_ticks)
        read = written = None
        if io is not None:
            self._io[key] = (io, t)
            known = before.get(key)
            if known is not None and 0 < t - known[1] <= LONGEST_S:
                seconds = t - known[1]
                read = max(0, io.read_bytes - known[0].read_bytes) / seconds
                written = max(0, io.write_bytes - known[0].write_bytes) / seconds
        return self._told(stat, depth, self._shares.of(stat, t), read, written)

    def _told(
        self, stat: ProcStat, depth: int, cpu_pct: float | None, read: float | None, written: float | None
    ) -> TreeProcess:
        return TreeProcess(
            pid=stat.pid,
            depth=depth,
            state=stat.state,
            threads=stat.threads,
            cpu_pct=cpu_pct,
            rss_bytes=float(stat.rss_bytes),
            read=read,
            written=written,
            age_s=age_of(stat),
            user=self._names.of(stat.pid),
            command=command_of(stat.pid),
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


def _age_order(member: Member) -> tuple[int, int]:
    stat: ProcStat = member.stat
    return stat.start_ticks, stat.pid


# Bytes over the TCP sockets of a process tree, loopback left out (sock_diag(7), ``tcp_info``). No root is needed.
#
# An upload moves no I/O counter of a process, and its CPU stays near zero. The kernel lists the sockets of this
# network namespace with their inode; the tree's sockets are those that its descriptors name. Not seen: UDP (QUIC),
# RDMA, sockets that open and close between two looks, and a trainer in another network namespace (None then).

SOCK_DIAG = 4
"""``NETLINK_SOCK_DIAG``."""
SOCK_DIAG_BY_FAMILY = 20
REQUEST_DUMP = 0x301
"""``NLM_F_REQUEST | NLM_F_DUMP``."""
DONE, ERROR = 3, 2
WITH_INFO = 1 << (2 - 1)
"""Bit of ``INET_DIAG_INFO`` in the request."""
INFO = 2
STATES = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
"""Established, and those of a connection that is being closed."""
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI48s")
MESSAGE_BYTES = 72
ADDRESSES = struct.Struct("=4x4x16s16s")
INODE = struct.Struct("=68xI")
ATTRIBUTE = struct.Struct("=HH")
ACKED_AT = 120
"""Offset of ``tcpi_bytes_acked`` in ``tcp_info``; ``tcpi_bytes_received`` follows."""
COUNTERS = struct.Struct("=QQ")
LOOKS_S = 5.0
"""Period of the looks: with 30 processes of 40 descriptors one takes about 6 ms."""
TIMEOUT_S = 1.0
MOST_DESCRIPTORS = 20_000
"""Most descriptors of the tree that one look reads; with more of them the answer is unknown."""


class Traffic(NamedTuple):
    """``inode`` of the socket; ``moved``: bytes acknowledged by the other side and received."""

    inode: int
    moved: int


class SocketBytes:
    """Adds up the traffic of the tree's sockets. ``total`` never falls."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._known: dict[int, int] | None = None
        self._total = 0
        self._looked_t = float("-inf")

    def look(self, pids: Iterable[int], t: float) -> float | None:
        """Bytes so far, cumulative; None if it is not time for a look, or they cannot be read."""
        if t - self._looked_t < LOOKS_S:
            return None
        self._looked_t = t
        try:
            mine = self._inodes(pids)
            if mine is None:
                return None
            now = {each.inode: each.moved for each in established() if each.inode in mine} if mine else {}
        except OSError:
            return None
        if self._known is not None:
            for inode, moved in now.items():
                before = self._known.get(inode, 0)
                self._total += moved - before if moved >= before else moved
        self._known = now
        return float(self._total)

    def _inodes(self, pids: Iterable[int]) -> set[int] | None:
        """Inodes of the sockets that the processes have open; None if some live elsewhere or have too many."""
        here = os.readlink(f"{self._proc}/self/ns/net")  # noqa: PTH115
        found: set[int] = set()
        left = MOST_DESCRIPTORS
        for pid in pids:
            folder = f"{self._proc}/{pid}/fd"
            try:
                if os.readlink(f"{self._proc}/{pid}/ns/net") != here:  # noqa: PTH115
                    return None
                names = os.listdir(folder)  # noqa: PTH208
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                return None
            left -= len(names)
            if left < 0:
                return None
            for name in names:
                try:
                    link = os.readlink(f"{folder}/{name}")  # noqa: PTH115
                except OSError:
                    continue
                if link.startswith("socket:["):
                    found.add(int(link[8:-1]))
        return found


def established() -> list[Traffic]:
    """All TCP sockets of this network namespace but those on loopback. Raises OSError."""
    found: list[Traffic] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, SOCK_DIAG) as kernel:
        kernel.settimeout(TIMEOUT_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            body = REQUEST.pack(family, socket.IPPROTO_TCP, WITH_INFO, 0, STATES, bytes(48))
            kernel.send(HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 0, 0) + body)
            found.extend(_answers(kernel))
    return found


def _answers(kernel: socket.socket) -> Iterator[Traffic]:
    while True:
        data = kernel.recv(1 << 16)
        at = 0
        while at + HEADER.size <= len(data):
            length, kind, _, _, _ = HEADER.unpack_from(data, at)
            if kind == DONE:
                return
            if kind == ERROR or length < HEADER.size:
                raise OSError("sock_diag refused the request")
            if (one := parse_message(data[at + HEADER.size : at + length])) is not None:
                yield one
            at += (length + 3) & ~3


def parse_message(message: bytes) -> Traffic | None:
    """Read one ``inet_diag_msg`` with its attributes; None for loopback, or if it has no ``tcp_info``."""
    if len(message) < MESSAGE_BYTES:
        return None
    source, target = ADDRESSES.unpack_from(message)
    family = message[0]
    if source == target or _is_loopback(family, target):
        return None
    (inode,) = INODE.unpack_from(message)
    at = MESSAGE_BYTES
    while at + ATTRIBUTE.size <= len(message):
        length, kind = ATTRIBUTE.unpack_from(message, at)
        if length < ATTRIBUTE.size:
            return None
        if kind == INFO and length >= ATTRIBUTE.size + ACKED_AT + COUNTERS.size:
            acked, received = COUNTERS.unpack_from(message, at + ATTRIBUTE.size + ACKED_AT)
            return Traffic(inode, acked + received)
        at += (length + 3) & ~3
    return None


def _is_loopback(family: int, address: bytes) -> bool:
    if family == socket.AF_INET:
        return address[0] == 127
    mapped = address[:12] == bytes(10) + b"\xff\xff"
    return address == bytes(15) + b"\x01" or (mapped and address[12] == 127)


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

    def update(self, tree: Mapping[int, ProcStat]) -> Standing:
        """Take the tree as it is now."""
        grown = {
            (s.pid, s.start_ticks): s.own_ticks - self._ticks.get((s.pid, s.start_ticks), 0) for s in tree.values()
        }
        fade = math.exp(-max(grown.values(), default=0) / (MEMORY_S * TICKS_PER_S))
        self._ticks = {(s.pid, s.start_ticks): s.own_ticks for s in tree.values()}
        self._weight = {key: self._weight.get(key, 0.0) * fade + max(0, ticks) for key, ticks in grown.items()}
        living = {s.pid: self._weight[s.pid, s.start_ticks] for s in tree.values() if s.state not in ENDED}
        most = max(living.values(), default=0.0)
        if most <= 0.0:
            return Standing(0, 0)
        computing = {pid for pid, weight in living.items() if weight >= SHARE * most}
        held = {pid for pid in computing if _is_held(pid, tree, computing)}
        parents = {parent for pid in held for parent in _parents(pid, tree)}
        waiting = {pid for pid in computing - held if pid not in parents or living[pid] >= PARENT_SHARE * most}
        return Standing(len(held) + len(waiting), len(held))


def _is_held(pid: int, tree: Mapping[int, ProcStat], computing: set[int]) -> bool:
    """Whether it, or a computing process above it, is stopped."""
    line = (pid, *(parent for parent in _parents(pid, tree) if parent in computing))
    return any(tree[each].state in STOPPED for each in line)


def _parents(pid: int, tree: Mapping[int, ProcStat]) -> tuple[int, ...]:
    """The members of the tree above a process, the nearest first."""
    found: list[int] = []
    parent = tree[pid].parent
    while parent in tree and parent not in found:
        found.append(parent)
        parent = tree[parent].parent
    return tuple(found)


# Bytes that the machine read back because it had dropped them for want of memory (``/proc/vmstat``).
#
# In a swap storm the kernel reads a trainer's own memory back from the disk, and counts it as read by the trainer.
# That is no work. A file that is mapped and read for the first time is; the kernel's counters tell the two apart.

PAGING_COUNTERS = ("pswpin", "workingset_refault_file")
"""Pages read back from the swap, and pages of files read again soon after they were dropped."""


class Paging:
    """Pages read back between two looks. System-wide: the kernel has no such count for one process."""

    def __init__(self, path: str = "/proc/vmstat") -> None:
        self._path = path
        self._before: int | None = None

    def read_back(self) -> int:
        """Bytes since the last look; 0 for the first one, or if it cannot be read."""
        table = kernel_text(self._path)
        try:
            now = pages(table)
        except ValueError:
            return 0
        if not table:
            return 0
        before, self._before = self._before, now
        return 0 if before is None else max(0, now - before) * PAGE_BYTES


def pages(text: str) -> int:
    """Add the counters up. Raises ValueError if one is no number."""
    found = (f"\n{text}".partition(f"\n{name} ")[2].partition("\n")[0] for name in PAGING_COUNTERS)
    return sum(int(number) for number in found if number)


def worked_for(requested: int, from_disk: int, read_back: int) -> int:
    """Bytes read on purpose: what was requested, and what a mapped file brought beyond that and beyond paging."""
    return requested + max(0, from_disk - requested - read_back)
