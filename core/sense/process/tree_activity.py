"""CPU time and bytes of a process tree since the last sample, each counted once although members come and go. Pure.

The kernel adds the CPU time and bytes of a child to the parent that waits for it. A sum over live processes therefore
jumps (a loader that worked for ten minutes ends: ten minutes of CPU in one second) or falls. Here each member's own
growth counts, and what a parent inherits is subtracted if it was already counted for the child.
"""

from collections.abc import Mapping
from typing import NamedTuple

from .proc_stat import ProcIo, ProcStat

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
