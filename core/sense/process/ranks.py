"""The ranks of a distributed training, here and on the nodes of a job, and trainers beside it."""

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Unpack

import msgspec

from ...model import observation as observations
from ...model.ports import AttemptTarget
from ...model.run import JobAnswer
from ...processes import all_processes, is_alive, status_of
from ...spool import read_job
from ..log.burst_reduction import AT_FIRST, Told, told_as_lines
from ..sampler import Common, Sampler
from .run_tree import RunTree

# The sensor of trainers that begin beside a live attempt and write where it writes.

LOOK_S = 30.0
"""Period of the looks: a rival is told of within a minute, before it saves for the first time as a rule. One takes
about 30 microseconds for each process of the machine."""

Examine = Callable[[AttemptTarget, Collection[int], Collection[int]], tuple[observations.OtherTrainer, ...]]
"""Tells which of these processes (second) are other trainers beside the attempt. Third: pids of those that are known,
whose descendants are not named again."""


class OtherTrainers(Sampler):
    """Puts an ``OtherTrainersSeen`` at the first look of an attempt, and whenever they changed.

    One that has a file open there is not examined again while it lives. To read of a process that hangs in the kernel
    may block.
    """

    name = "other trainers"

    def __init__(
        self,
        *,
        examine: Examine,
        tree: RunTree,
        interval_s: float = LOOK_S,
        pids: Callable[[], Collection[int]] = all_processes,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._examine, self._tree, self._pids = examine, tree, pids
        self._followed: AttemptTarget | None = None
        self._own: set[int] = set()
        self._known: dict[int, observations.OtherTrainer] = {}
        self._told: tuple[observations.OtherTrainer, ...] | None = None

    def sample(self) -> None:
        target = self.target
        if target != self._followed:
            # what runs at the launch was looked at before it: the first look is one period later
            self._followed, self._own, self._known, self._told = target, set(), {}, None
            return
        if target is None:
            return
        there = set(self._pids())
        runner = () if target.runner is None else (target.runner.pid,)
        own = {*self._tree.look(target, max_age_s=self._interval_s), *runner, os.getpid()}
        self._own = (self._own & there) | own  # what was once a member stays its own, also without its parent
        self._known = {pid: each for pid, each in self._known.items() if pid in there and is_alive(each.key)}
        sure = {pid for pid, each in self._known.items() if each.files}
        self._known |= {each.pid: each for each in self._examine(target, there - self._own - sure, sure)}
        trainers = tuple(self._known[pid] for pid in sorted(self._known))
        if trainers != self._told:
            self._told = trainers
            self._inbox.put(observations.OtherTrainersSeen(t=self._clock.now(), trainers=trainers))


# The sensor of a job's nodes: the lines that the agents on them write into the attempt's directory.
#
# An agent that writes no more says nothing: a sample is put only when every node of the job has written a new line
# since the last one. Lines are counted; the clocks of other machines are not compared with this one's.

FOLDER = "nodes"
FILE = "nodes.json"
TAIL_BYTES = 1 << 20
"""The most that is read at once: a node with 16 GPUs and 64 ranks writes about 30 kB a line, and a network disk may
show several lines at once."""


class LeftByRank(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank left about its end, as of ``RankEnded``."""

    rank: int
    pid: int
    text: str
    wall: float | None = None


class NodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an agent. ``n``: its number. ``gpus`` None: they cannot be read there."""

    n: int
    node: str
    wall: float = 0.0
    process: observations.NodeProcesses = observations.NodeProcesses()
    gpus: tuple[observations.GpuReading, ...] | None = None
    beat: dict[str, int | float | str] | None = None
    """What the training told by ``trainbeat`` on this node."""
    ended: tuple[LeftByRank, ...] = ()
    """Of ranks that ended since the line before."""


class NodeSamples(Sampler):
    """Puts a ``ProcessSample`` and, if GPUs can be read, a ``GpuSample`` of all nodes of the job together.

    GPUs are numbered over the nodes in the order of their names. ``keep`` gets what each node does whenever one of
    them has written, and the path of the file for it; it may raise OSError. ``line_s``: how often an agent writes.
    """

    name = "nodes"

    def __init__(
        self,
        *,
        interval_s: float,
        line_s: float = 10.0,
        keep: Callable[[Path, observations.Nodes], None] = lambda _path, _nodes: None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._line_s = line_s
        self._keep = keep
        self._kept_t: float | None = None
        self._folder = ""
        self._known: dict[str, tuple[int, observations.Node]] = {}
        """Size of the file and newest line by the name of the node."""
        self._taken: dict[str, int] = {}
        self._told: Told = AT_FIRST

    def sample(self) -> None:
        target = self.target
        if target is None:
            return
        record = read_job(target.directory)
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
                self._keep(
                    Path(target.directory, FILE), observations.Nodes(t=t, interval_s=self._line_s, nodes=tuple(nodes))
                )
        if not all(self._taken.get(node.node) != node.n for node in nodes):
            return
        self._taken = {node.node: node.n for node in nodes}
        self._inbox.put(processes_of(nodes, t))
        gpus = [gpu for node in nodes for gpu in node.gpus or ()]
        if gpus and all(node.gpus is not None for node in nodes):  # every node knows its own
            numbered = tuple(msgspec.structs.replace(gpu, index=index) for index, gpu in enumerate(gpus))
            self._inbox.put(observations.GpuSample(t=t, gpus=numbered))

    def _look(self, t: float) -> bool:
        """Read what has grown. Returns whether a line is new."""
        grown = False
        ended: list[observations.RankEnded] = []
        for path in sorted(Path(self._folder, FOLDER).glob("*.jsonl")):
            size, known = self._known.get(path.stem, (0, None))
            now = status_of(path)
            if now is None or now.st_size == size:
                continue
            lines, read = new_lines(path, size if now.st_size > size else 0)
            fresh = [line for line in lines if known is None or line.n != known.n]
            if not fresh:
                continue
            grown = True
            self._known[path.stem] = (read, _node(path.stem, fresh[-1], t))
            if known is not None:  # else this supervisor is new, and what ended before was told
                ended += [
                    observations.RankEnded(t=t, node=path.stem, **msgspec.structs.asdict(each))
                    for line in fresh
                    for each in line.ended
                ]
            beat = fresh[-1].beat
            if beat is not None:
                text, self._told = told_as_lines(beat, self._told)
                if text:
                    self._inbox.put(observations.LogChunk(t=t, text=text, source=observations.HEARTBEAT))
        for left in sorted(ended, key=lambda each: (each.wall is None, each.wall or 0.0)):
            self._inbox.put(left)
        return grown


def _node(name: str, line: NodeLine, t: float) -> observations.Node:
    """What a line tells. Ranks and their launchers get the name of their node."""
    there = msgspec.structs.replace(
        line.process,
        ranks=tuple(msgspec.structs.replace(rank, node=name) for rank in line.process.ranks),
        agents=tuple(msgspec.structs.replace(agent, node=name) for agent in line.process.agents),
    )
    return observations.Node(node=name, n=line.n, grew_t=t, process=there, gpus=line.gpus)


def processes_of(nodes: list[observations.Node], t: float) -> observations.ProcessSample:
    """All nodes together; a value that one of them does not know is not known."""
    states: Counter[str] = Counter()
    for node in nodes:
        states.update(node.process.states)
    return observations.ProcessSample(
        t=t,
        cpu_cores=_sum([node.process.cpu for node in nodes]),
        read_bytes=_sum([node.process.read_bytes for node in nodes]),
        write_bytes=_sum([node.process.write_bytes for node in nodes]),
        procs=sum(node.process.procs for node in nodes),
        states=dict(states),
        ranks=ranks_of(nodes, t),
        agents=tuple(agent for node in nodes for agent in node.process.agents),
    )


def ranks_of(nodes: Iterable[observations.Node], t: float) -> tuple[observations.Rank, ...]:
    """The ranks of all nodes, lowest first, each with how long ago its node wrote of it."""
    found = [
        msgspec.structs.replace(rank, seen_s=max(0.0, t - node.grew_t)) for node in nodes for rank in node.process.ranks
    ]
    return tuple(sorted(found, key=lambda each: each.rank))


def new_lines(path: Path, offset: int) -> tuple[list[NodeLine], int]:
    """The whole lines from ``offset`` on, the last ones if they are many, and where the next one begins.

    A line that cannot be read is left out.
    """
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            begin = max(offset, end - TAIL_BYTES)
            file.seek(begin)
            data = file.read(end - begin)
    except OSError:
        return [], offset
    whole, newline, _ = data.rpartition(b"\n")
    found = []
    for text in whole.split(b"\n"):
        with contextlib.suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(text, type=NodeLine))
    return found, begin + len(whole) + len(newline)


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


# The sensor of the job that an attempt runs as: ``job.json``, which the process that follows the job writes.

MOVED_S = 60.0
"""A time limit that moves by more was changed by somebody: Slurm tells it in whole seconds, and late."""


class JobRecords(Sampler):
    """Puts a ``JobSeen`` whenever something of the job has changed, or when its time limit has."""

    name = "job"

    def __init__(self, *, interval_s: float, **common: Unpack[Common]) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._told: observations.JobSeen | None = None
        self._limit: float | None = None

    def sample(self) -> None:
        record = None if self.target is None else read_job(self.target.directory)
        if record is None:
            return
        answer = {name: getattr(record, name) for name in JobAnswer.__struct_fields__ if name != "left_s"}
        seen = observations.JobSeen(t=0.0, job=record.handle.id, **answer)
        limit = None if record.left_s is None else record.wall + record.left_s
        moved = (limit is None) != (self._limit is None) or abs((limit or 0.0) - (self._limit or 0.0)) > MOVED_S
        if seen != self._told or moved:
            self._told, self._limit = seen, limit
            left_s = None if limit is None else max(0.0, limit - self._clock.wall())
            self._inbox.put(msgspec.structs.replace(seen, t=self._clock.now(), left_s=left_s))
