"""The sensor of a job's nodes: the lines that the agents on them write into the attempt's directory.

An agent that writes no more says nothing: a sample is put only when every node of the job has written a new line since
the last one. Lines are counted; the clocks of other machines are not compared with this one's.
"""

from pathlib import Path

import msgspec

from ...model.observation import GpuReading, GpuSample, ProcessSample, Rank
from ...model.ports.supervision import Clock, Inbox
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem

FOLDER = "nodes"
TAIL_BYTES = 65536
"""The last line lies in it: a node with 16 GPUs and 64 ranks writes about 8 kB."""


class NodeProcesses(msgspec.Struct, frozen=True, kw_only=True):
    """The job's processes on one node, as the agent counts them."""

    cpu: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    procs: int = 0
    states: dict[str, int] = {}
    ranks: tuple[Rank, ...] = ()


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an agent. ``n``: its number. ``gpus`` None: they cannot be read there."""

    n: int
    node: str
    wall: float = 0.0
    process: NodeProcesses = NodeProcesses()
    gpus: tuple[GpuReading, ...] | None = None


class NodeSamples(Sampler):
    """Puts a ``ProcessSample`` and, if GPUs can be read, a ``GpuSample`` of all nodes of the job together.

    GPUs are numbered over the nodes in the order of their names.
    """

    name = "nodes"

    def __init__(
        self, *, inbox: Inbox, clock: Clock, interval_s: float, on_problem: OnProblem = ignore_problem
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._taken: dict[str, int] = {}

    def sample(self) -> None:
        """Put a sample if all nodes have written."""
        target = self.target
        if target is None:
            return
        lines = {path.stem: line for path in _files(target.directory) if (line := last_line(path)) is not None}
        new = {f"{target.directory}/{node}": line.n for node, line in lines.items()}
        if not lines or any(self._taken.get(node) == number for node, number in new.items()):
            return
        self._taken = new
        t = self._clock.now()
        nodes = [lines[node] for node in sorted(lines)]
        self._inbox.put(processes_of(nodes, t))
        gpus = gpus_of(nodes)
        if gpus:
            self._inbox.put(GpuSample(t=t, gpus=gpus))


def processes_of(nodes: list[NodeLine], t: float) -> ProcessSample:
    """All nodes together; a value that one of them does not know is not known."""
    states: dict[str, int] = {}
    for node in nodes:
        for state, count in node.process.states.items():
            states[state] = states.get(state, 0) + count
    return ProcessSample(
        t=t,
        cpu_cores=_sum([node.process.cpu for node in nodes]),
        read_bytes=_sum([node.process.read_bytes for node in nodes]),
        write_bytes=_sum([node.process.write_bytes for node in nodes]),
        procs=sum(node.process.procs for node in nodes),
        states=states,
        ranks=tuple(sorted((rank for node in nodes for rank in node.process.ranks), key=lambda each: each.rank)),
    )


def gpus_of(nodes: list[NodeLine]) -> tuple[GpuReading, ...]:
    """The GPUs of all nodes; none unless every node knows its own."""
    if any(node.gpus is None for node in nodes):
        return ()
    found = [gpu for node in nodes for gpu in node.gpus or ()]
    return tuple(msgspec.structs.replace(gpu, index=index) for index, gpu in enumerate(found))


def last_line(path: Path) -> NodeLine | None:
    """The last whole line; None if there is none that can be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            lines = file.read().split(b"\n")
        return msgspec.json.decode(lines[-2], type=NodeLine) if len(lines) > 1 else None
    except (OSError, msgspec.MsgspecError):
        return None


def _files(directory: str) -> list[Path]:
    return sorted(Path(directory, FOLDER).glob("*.jsonl"))


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
