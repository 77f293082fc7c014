"""The sensor of a job's nodes: the lines that the agents on them write into the attempt's directory.

An agent that writes no more says nothing: a sample is put only when every node of the job has written a new line since
the last one. Lines are counted; the clocks of other machines are not compared with this one's.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...model.launch.nodes import Node, NodeProcesses, Nodes
from ...model.observation import HEARTBEAT, GpuReading, GpuSample, LogChunk, ProcessSample
from ...model.ports.supervision import Clock, Inbox
from ..log.heartbeat_lines import AT_FIRST, Told, told_as_lines
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem
from .job_record import read_job

FOLDER = "nodes"
FILE = "nodes.json"
TAIL_BYTES = 65536
"""The last line lies in it: a node with 16 GPUs and 64 ranks writes about 8 kB."""


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an agent. ``n``: its number. ``gpus`` None: they cannot be read there."""

    n: int
    node: str
    wall: float = 0.0
    process: NodeProcesses = NodeProcesses()
    gpus: tuple[GpuReading, ...] | None = None
    beat: dict[str, int | float | str] | None = None
    """What the training told by ``trainwatch.heartbeat`` on this node."""


class NodeSamples(Sampler):
    """Puts a ``ProcessSample`` and, if GPUs can be read, a ``GpuSample`` of all nodes of the job together.

    GPUs are numbered over the nodes in the order of their names. ``keep`` gets what each node does whenever one of
    them has written, and the path of the file for it; it may raise OSError. ``line_s``: how often an agent writes.
    """

    name = "nodes"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        interval_s: float,
        line_s: float = 10.0,
        keep: Callable[[Path, Nodes], None] = lambda _path, _nodes: None,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._line_s = line_s
        self._keep = keep
        self._kept_t: float | None = None
        self._folder = ""
        self._known: dict[str, tuple[int, Node]] = {}
        """Size of the file and newest line by the name of the node."""
        self._taken: dict[str, int] = {}
        self._told: Told = AT_FIRST

    def sample(self) -> None:
        """Put a sample if all nodes have written."""
        target = self.target
        if target is None:
            return
        record = read_job(target)
        folder = target.directory if record is None else record.attempt_directory or target.directory
        if folder != self._folder:
            self._folder, self._known, self._taken, self._kept_t, self._told = folder, {}, {}, None, AT_FIRST
        t = self._clock.now()
        grown = self._look(t)
        if not self._known:
            return
        nodes = [self._known[name][1] for name in sorted(self._known)]
        if grown or self._kept_t is None or t - self._kept_t >= self._line_s:
            self._kept_t = t
            with contextlib.suppress(OSError):  # people see it later
                self._keep(Path(target.directory, FILE), Nodes(t=t, interval_s=self._line_s, nodes=tuple(nodes)))
        if not all(self._taken.get(node.node) != node.n for node in nodes):
            return
        self._taken = {node.node: node.n for node in nodes}
        self._inbox.put(processes_of(nodes, t))
        gpus = gpus_of(nodes)
        if gpus:
            self._inbox.put(GpuSample(t=t, gpus=gpus))

    def _look(self, t: float) -> bool:
        """Read what has grown. Returns whether a line is new."""
        grown = False
        for path in _files(self._folder):
            size, known = self._known.get(path.stem, (-1, None))
            now = _size(path)
            if now is None or now == size:
                continue
            line = last_line(path)
            if line is None or (known is not None and known.n == line.n):
                continue
            node = Node(node=path.stem, n=line.n, grew_t=t, process=line.process, gpus=line.gpus)
            self._known[path.stem] = (now, node)
            grown = True
            if line.beat is not None:
                text, self._told = told_as_lines(line.beat, self._told)
                if text:
                    self._inbox.put(LogChunk(t=t, text=text, source=HEARTBEAT))
        return grown


def processes_of(nodes: list[Node], t: float) -> ProcessSample:
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


def gpus_of(nodes: list[Node]) -> tuple[GpuReading, ...]:
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


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _files(directory: str) -> list[Path]:
    return sorted(Path(directory, FOLDER).glob("*.jsonl"))


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
