"""Signs of a process tree beyond CPU and bytes: sockets, blocked mounts, paging, a question at its terminal."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ...bound_process import bound
from ...mounts import mount_points
from ...processes import PAGE_BYTES, Process, file_text, link_of
from ..host.host_sensor import value_in

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
                link = link_of(f"{folder}/{name}")
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


# Whether the mounts that a blocked process uses answer, asked by a child: the question may block, too.
#
# A process in state D waits in the kernel, mostly for a network mount. ``statvfs`` of a dead one blocks for ever, so a
# child asks, and nobody waits for the child: one that does not answer in time stays until its mount comes back, and no
# second one is started for the same mount.

AFTER_S = 8.0
"""A process that is blocked for less only waits for a disk."""
LIMIT_S = 5.0
"""A mount that takes longer than this counts as one that does not answer."""
AGAIN_S = 15.0
"""Period of the questions."""
MOST_MOUNTS = 8
OPEN_FILES = 256
"""Open files that are looked at for each blocked process, at most."""
QUESTION = "import os, sys; os.statvfs(sys.argv[1])"


class _Question:
    def __init__(self, mount: str, question: str, limit_s: float) -> None:
        self._limit_s = limit_s
        self.asked_t = time.monotonic()
        self.answered = False
        self.child = subprocess.Popen(
            bound([sys.executable, "-I", "-S", "-c", question, mount]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def poll(self) -> bool | None:
        """True: it answered; False: not in time; None: it is too early to tell."""
        if not self.answered and self.child.poll() is not None:
            self.answered = True  # an error (a stale handle) is an answer, too: nothing blocks
        late = time.monotonic() - self.asked_t > self._limit_s
        return True if self.answered else False if late else None


class MountProbe:
    """Asks while a process is blocked. ``check`` never blocks."""

    def __init__(
        self, proc: str = "/proc", *, after_s: float = AFTER_S, limit_s: float = LIMIT_S, question: str = QUESTION
    ) -> None:
        self._proc = proc
        self._after_s, self._limit_s, self._question = after_s, limit_s, question
        self._blocked_t: dict[tuple[int, int], float] = {}
        self._questions: dict[str, _Question] = {}

    def check(self, tree: Iterable[Process]) -> tuple[str, ...] | None:
        """The mounts that do not answer; () if all do. None if no process is blocked for long, or it is not known."""
        now = time.monotonic()
        blocked = [stat for stat in tree if stat.state == "D"]
        self._blocked_t = {(s.pid, s.start_ticks): self._blocked_t.get((s.pid, s.start_ticks), now) for s in blocked}
        stuck = [s for s in blocked if now - self._blocked_t[s.pid, s.start_ticks] >= self._after_s]
        if not stuck:
            self._questions = {mount: q for mount, q in self._questions.items() if not q.poll()}
            return None
        mounts = self._mounts(stuck)
        for mount in mounts:
            known = self._questions.get(mount)
            if known is None or (known.poll() and now - known.asked_t >= AGAIN_S):
                try:
                    self._questions[mount] = _Question(mount, self._question, self._limit_s)
                except OSError:
                    return None
        answers = {mount: self._questions[mount].poll() for mount in mounts}
        silent = tuple(sorted(mount for mount, answer in answers.items() if answer is False))
        if silent:
            return silent
        return () if answers and all(answers.values()) else None

    def _mounts(self, stuck: list[Process]) -> list[str]:
        points = [each.point for each in mount_points(file_text(f"{self._proc}/self/mountinfo"))]
        found: dict[str, None] = {}
        for place in (f"{self._proc}/{stat.pid}" for stat in stuck):
            # Working folder and open files, as the kernel names them; no file is touched.
            links = [f"{place}/cwd", f"{place}/exe"]
            with contextlib.suppress(OSError):
                links += [f"{place}/fd/{number}" for number in os.listdir(f"{place}/fd")[:OPEN_FILES]]  # noqa: PTH208
            for path in map(link_of, links):
                if not path.startswith("/") or path.startswith(("/dev/", "/proc/", "/memfd:")):
                    continue
                inside = [p for p in points if path == p or path.startswith(p.rstrip("/") + "/")]
                if inside and len(found) < MOST_MOUNTS:
                    found[max(inside, key=len)] = None
        return list(found)


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
        table = file_text(self._path)
        if not table:
            return 0
        now = sum(value_in(table, name) or 0 for name in PAGING_COUNTERS)
        before, self._before = self._before, now
        return 0 if before is None else max(0, now - before) * PAGE_BYTES


def worked_for(requested: int, from_disk: int, read_back: int) -> int:
    """Bytes read on purpose: what was requested, and what a mapped file brought beyond that and beyond paging."""
    return requested + max(0, from_disk - requested - read_back)


# Whether a process waits for input at its terminal (proc(5): ``fd``, ``syscall``, ``wchan``).
#
# ``syscall`` is reliable but readable only if Yama allows it. ``wchan`` names a function in which sockets wait, too.

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

    def check(self, tree: Iterable[Process]) -> Wait | None:
        """Whether a sleeping process waits for input: "yes", "maybe", or None if none does."""
        known = {(stat.pid, stat.start_ticks): stat for stat in tree}
        self._terminal = {key: held for key, held in self._terminal.items() if key in known}
        found: Wait | None = None
        checked = 0
        for key, stat in sorted(known.items()):
            if key not in self._terminal:
                self._terminal[key] = link_of(f"{self._proc}/{stat.pid}/fd/0").startswith(TERMINALS)
            if not self._terminal[key] or stat.state != "S" or checked == CHECKED_PROCESSES:
                continue
            checked += 1
            waits = self._waits(stat.pid)
            if waits == "yes":
                return "yes"
            found = waits or found
        return found

    def _waits(self, pid: int) -> Wait | None:
        call = file_text(f"{self._proc}/{pid}/syscall").split()
        if len(call) > 1:
            try:
                number, first = int(call[0]), int(call[1], 16)
            except ValueError:
                return None
            reads = number == READ.get(self._machine) and first == 0
            return "yes" if reads or (first == 1 and number in SELECTS.get(self._machine, ())) else None
        if call:  # "running"
            return None
        return "maybe" if file_text(f"{self._proc}/{pid}/wchan").strip() in WAITING_IN else None
