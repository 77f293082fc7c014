"""The ranks of a distributed training among the processes of a tree, by the environment that their launcher gave them.

Loader workers inherit the environment of their rank: only the topmost process with a rank stands for it. An agent of
torchrun is the parent of a rank whose environment names an error file; it may outlive its workers.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Unpack

from ...model.observation import Agent, OtherTrainer, OtherTrainersSeen, Rank, RankEnded
from ...model.supervision_ports import AttemptTarget
from ...rank_files import Called, RankFiles, torchrun_in
from ..sampler import Common, Sampler
from .proc_stat import ProcStat, environ_of, read_all, read_stat
from .run_tree import RunTree

VARIABLES = (b"RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"LOCAL_RANK=")
"""torchrun and accelerate, Open MPI, MPICH; the first that is set."""
ERROR_FILE = b"TORCHELASTIC_ERROR_FILE="
MAX_RESTARTS = b"TORCHELASTIC_MAX_RESTARTS="
WORLD_SIZE = b"WORLD_SIZE="
_Key = tuple[int, int]


class Place(NamedTuple):
    """What the environment of a rank tells. ``folder``: of its log and error files, None = there is none."""

    rank: int
    folder: str | None = None
    max_restarts: int | None = None
    world: int = 1


class Look(NamedTuple):
    """``ended``: those that left something about their end since the last look."""

    ranks: tuple[Rank, ...]
    agents: tuple[Agent, ...]
    ended: tuple[RankEnded, ...]


class Ranks:
    """Knows the rank of each process, read once: a process's environment does not change after its exec."""

    def __init__(self) -> None:
        self._known: dict[_Key, Place | None] = {}
        self._seen: set[_Key] = set()
        self._several = False
        self._agents: dict[_Key, Called] = {}
        self._files = RankFiles()

    def look(self, tree: Mapping[int, ProcStat], t: float = 0.0) -> Look:
        """Return the ranks now, lowest first; none if there never were two. ``t``: run seconds."""
        keys = {(stat.pid, stat.start_ticks) for stat in tree.values()}
        self._known = {key: place for key, place in self._known.items() if key in keys}
        # between fork and exec a process has the environment of its parent: it is read at the second look
        for key in keys & self._seen - self._known.keys():
            self._known[key] = place = place_in(key[0])
            called = torchrun_in(key[0]) if place is None else None
            if called is not None:
                self._agents[key] = called
        self._seen = keys
        places = {stat.pid: self._known.get((stat.pid, stat.start_ticks)) for stat in tree.values()}
        top = [
            (stat, place)
            for stat in tree.values()
            if (place := places[stat.pid]) is not None
            and ((above := places.get(stat.parent)) is None or above.rank != place.rank)
        ]
        self._several = self._several or bool(self._agents) or len(top) > 1 or any(place.world > 1 for _, place in top)
        if not self._several:
            return Look((), (), ())
        told = [self._rank(stat, place, t) for stat, place in top]
        ranks = tuple(sorted(told, key=lambda each: (each.rank, each.pid)))
        return Look(ranks, self._look_at_agents(tree, top), tuple(self._ended(t, over=not tree)))

    def _ended(self, t: float, *, over: bool) -> Iterator[RankEnded]:
        for left in self._files.ended(t, over=over):
            yield RankEnded(t=t, rank=left.rank, pid=left.pid, text=left.text, wall=left.wall)

    def _rank(self, stat: ProcStat, place: Place, t: float) -> Rank:
        if place.folder is None:
            return Rank(rank=place.rank, pid=stat.pid, state=stat.state)
        told = self._files.look(place.folder, place.rank, stat.pid, t)
        return Rank(
            rank=place.rank,
            pid=stat.pid,
            state=stat.state,
            line=told.line,
            line_age_s=told.line_age_s,
            earlier=told.earlier,
            earlier_age_s=told.earlier_age_s,
        )

    def _look_at_agents(self, tree: Mapping[int, ProcStat], top: list[tuple[ProcStat, Place]]) -> tuple[Agent, ...]:
        for stat, place in top:
            above = tree.get(stat.parent)
            if place.folder is not None and above is not None:
                key = (above.pid, above.start_ticks)
                known = self._agents.get(key)
                self._agents[key] = Called(place.max_restarts, None if known is None else known.join_s)
        found = {(stat.pid, stat.start_ticks) for stat in tree.values() if stat.state not in "ZX"}
        living = {key: called for key, called in self._agents.items() if key in found}
        self._agents = living
        workers = [stat.parent for stat, _ in top if stat.state not in "ZX"]
        return tuple(
            Agent(pid=key[0], workers=workers.count(key[0]), max_restarts=called.most, join_s=called.join_s)
            for key, called in sorted(living.items())
        )


def place_in(pid: int) -> Place | None:
    """The rank that the environment of this process names; None = none, or it cannot be read."""
    entries = environ_of(pid)
    for variable in VARIABLES:
        number = _number(entries, variable)
        if number is not None:
            error = next((each[len(ERROR_FILE) :] for each in entries if each.startswith(ERROR_FILE)), b"")
            folder = str(Path(error.decode(errors="surrogateescape")).parent) if error else None
            return Place(number, folder, _number(entries, MAX_RESTARTS), _number(entries, WORLD_SIZE) or 1)
    return None


def _number(entries: list[bytes], variable: bytes) -> int | None:
    for entry in entries:
        if entry.startswith(variable) and entry[len(variable) :].isdigit():
            return int(entry[len(variable) :])
    return None


# The sensor of trainers that begin beside a live attempt and write where it writes.

LOOK_S = 30.0
"""Period of the looks: a rival is told of within a minute, before it saves for the first time as a rule. One takes
about 30 microseconds for each process of the machine."""

Examine = Callable[[AttemptTarget, Collection[int], Collection[int]], tuple[OtherTrainer, ...]]
"""Tells which of these processes (second) are other trainers beside the attempt. Third: pids of those that are known,
whose descendants are not named again."""


class OtherTrainers(Sampler):
    """Puts an ``OtherTrainersSeen`` at the first look of an attempt, and whenever they changed.

    One that has a file open there is not examined again while it lives. It has a thread of its own: to read of a
    process that hangs in the kernel may block.
    """

    name = "other trainers"

    def __init__(
        self,
        *,
        examine: Examine,
        tree: RunTree,
        interval_s: float = LOOK_S,
        pids: Callable[[], Collection[int]] = read_all,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._examine, self._tree, self._pids = examine, tree, pids
        self._followed: AttemptTarget | None = None
        self._own: set[int] = set()
        self._known: dict[int, OtherTrainer] = {}
        self._told: tuple[OtherTrainer, ...] | None = None

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
        self._known = {pid: each for pid, each in self._known.items() if pid in there and _lives(each)}
        sure = {pid for pid, each in self._known.items() if each.files}
        self._known |= {each.pid: each for each in self._examine(target, there - self._own - sure, sure)}
        trainers = tuple(self._known[pid] for pid in sorted(self._known))
        if trainers != self._told:
            self._told = trainers
            self._inbox.put(OtherTrainersSeen(t=self._clock.now(), trainers=trainers))


def _lives(trainer: OtherTrainer) -> bool:
    stat = read_stat(trainer.pid)
    return stat is not None and stat.start_ticks == trainer.start_ticks and stat.state not in "ZXx"
