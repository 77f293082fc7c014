"""What a job does on each of its nodes now, as the agents there write it."""

import msgspec

from ..observation import Agent, GpuReading, Rank

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
