"""The ranks of a distributed training among the processes of a tree, by the environment that their launcher gave them.

Loader workers inherit the environment of their rank: only the topmost process with a rank stands for it. An agent of
torchrun is the parent of a rank whose environment names an error file; it may outlive its workers.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...model.observation import Agent, Rank, RankEnded
from ...rank_files import Called, RankFiles, torchrun_in
from .proc_stat import ProcStat

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
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
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
