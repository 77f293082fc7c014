"""The processes of the run, one row each, parents before children, as the host page shows them."""

from collections.abc import Iterator, Mapping

from ...model.machine_details import TreeDetails, TreeProcess
from .proc_stat import ProcIo, ProcStat
from .process_words import CpuShares, UserNames, age_of, command_of
from .tree_activity import Member

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
