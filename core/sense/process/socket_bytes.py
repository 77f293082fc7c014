"""Bytes over the TCP sockets of a process tree, loopback left out (sock_diag(7), ``tcp_info``). No root is needed.

An upload moves no I/O counter of a process, and its CPU stays near zero. The kernel lists the sockets of this network
namespace with their inode; the tree's sockets are those that its descriptors name. Not seen: UDP (QUIC), RDMA, sockets
that open and close between two looks, and a trainer in another network namespace (None then).
"""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

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
