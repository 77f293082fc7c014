"""The newest half hour of a trace, in files in memory: they outlive a killed supervisor, and no disk is written.

What leaves it is written to the disk: as it is if an incident was near, else thinned.
"""

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from .atomic import write_all
from .home import make_private, runtime_folder

NEAR_S = 1800.0
"""Before and after an incident all observations are kept."""
RECENT_BYTES = 2 << 20
"""Most bytes in memory; a flood of log leaves them earlier, as it is."""
THIN_S = 10.0
"""Least time between two samples of one kind in a thinned trace."""
SAMPLES = frozenset({"gpu", "host", "process"})


class _Head(msgspec.Struct):
    """What thinning needs of an observation."""

    kind: str = ""
    t: float = 0.0


class Member(NamedTuple):
    """A compressed piece of the trace: ``last_t`` is the time of its newest observation."""

    path: Path
    last_t: float
    size: int


def recent_trace_folder(trace: Path, environ: Mapping[str, str] | None = None) -> Path | None:
    """Where the newest pieces of a trace are; None if this machine has no private folder in memory."""
    place = runtime_folder(os.environ if environ is None else environ)
    name = sha256(os.fsencode(os.path.abspath(trace))).hexdigest()[:16]  # noqa: PTH100  no file is touched
    return None if place is None else place / "trace" / name


class RecentTrace:
    """Pieces in their order. Raises OSError if the folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._members: deque[Member] = deque(_members_in(folder))
        self._number = 1 + max((int(member.path.name.partition("-")[0]) for member in self._members), default=0)

    def add(self, data: bytes, last_t: float) -> None:
        make_private(self._folder)
        path = self._folder / f"{self._number:08d}-{last_t:.3f}.gz"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
        self._number += 1
        self._members.append(Member(path, last_t, len(data)))

    def old(self, before_t: float) -> Iterator[Member]:
        """The oldest piece again and again, until none is older and all have room. Remove each with ``remove``."""
        while self._members:
            if self._members[0].last_t >= before_t and sum(m.size for m in self._members) <= RECENT_BYTES:
                return
            yield self._members[0]

    def remove(self, member: Member) -> None:
        """Forget the oldest piece: it is on the disk."""
        assert member is self._members[0]
        self._members.popleft()
        member.path.unlink(missing_ok=True)
        if not self._members:
            with contextlib.suppress(OSError):
                self._folder.rmdir()


def recent_pieces(folder: Path | None) -> Iterator[bytes]:
    """What a supervisor that was killed has left there, oldest first."""
    for member in () if folder is None else _members_in(folder):
        with contextlib.suppress(OSError):
            yield member.path.read_bytes()


def _members_in(folder: Path) -> list[Member]:
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            number, _, last = path.name.removesuffix(".gz").partition("-")
            with contextlib.suppress(ValueError, OSError):
                int(number)
                found.append(Member(path, float(last), path.stat().st_size))
    return found


class Thinning:
    """Leaves out ticks and most samples; all else, and the order, stays."""

    def __init__(self) -> None:
        self._kept: dict[str, float] = {}
        self._decode = msgspec.json.Decoder(_Head).decode

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            try:
                head = self._decode(line)
            except msgspec.MsgspecError:
                yield line
                continue
            if head.kind == "tick":
                continue
            if head.kind in SAMPLES:
                if head.t - self._kept.get(head.kind, float("-inf")) < THIN_S:
                    continue
                self._kept[head.kind] = head.t
            yield line
