"""What a job does on each of its nodes now, as the agents there write it; the ranks of a training over all nodes."""

from typing import Literal

import msgspec

from .observation import Agent, GpuReading, Rank

STALE_AFTER = 4
"""Intervals without a new line after which a node is silent. Why: a network disk shows lines up to a minute late."""


class NodeProcesses(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job's processes on one node. ``cpu``: cores in use; bytes are cumulative."""

    cpu: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    procs: int = 0
    states: dict[str, int] = {}
    ranks: tuple[Rank, ...] = ()
    agents: tuple[Agent, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. ``n``: lines that its agent wrote. ``grew_t``: run seconds at which the newest one was first seen here.

    ``gpus`` None: they cannot be read there. Their indexes are the node's own.
    """

    node: str
    n: int
    grew_t: float
    process: NodeProcesses = NodeProcesses()
    gpus: tuple[GpuReading, ...] | None = None


class Nodes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``nodes.json`` in the attempt's folder: all nodes at ``t`` run seconds, by name.

    ``interval_s``: how often an agent writes a line.
    """

    version: int = 1
    t: float
    interval_s: float
    nodes: tuple[Node, ...] = ()

    def silent_s(self, node: Node, t: float) -> float | None:
        """Seconds without a new line at ``t``, if that is longer than its agent needs for several; else None.

        Judged by lines that came, never by the clock of another machine.
        """
        age = t - node.grew_t
        return age if age > STALE_AFTER * self.interval_s else None


Standing = Literal["stopped", "ended", "silent", "behind", "slowest"]
"""What sets a rank apart from the others, the worst first. ``stopped``: state T. ``silent``: its newest line is older
than those of the others."""


class RankNow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank. ``node`` None: this machine. Ages are of the sample's time. None = not known.

    ``seen_age_s``: since it was looked at, on its node: what it did after that is not known.
    """

    rank: int
    pid: int | None = None
    node: str | None = None
    state: str | None = None
    step: int | None = None
    sec_per_step: float | None = None
    last_line: str | None = None
    last_line_age_s: float | None = None
    seen_age_s: float = 0.0
    standing: Standing | None = None


class RankTable(msgspec.Struct, frozen=True, kw_only=True):
    """``t``: run seconds of the ranks, None = no sample. ``nodes``: of its job, None = it runs as none."""

    t: float | None = None
    ranks: tuple[RankNow, ...] = ()
    nodes: Nodes | None = None
