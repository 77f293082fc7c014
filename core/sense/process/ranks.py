"""The ranks of a distributed training among the processes of a tree, by the environment that their launcher gave them.

Loader workers inherit the environment of their rank: only the topmost process with a rank stands for it.
"""

from collections.abc import Mapping
from pathlib import Path

from ...model.observation import Rank
from .proc_stat import ProcStat

VARIABLES = (b"RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"LOCAL_RANK=")
"""torchrun and accelerate, Open MPI, MPICH; the first that is set."""
_Key = tuple[int, int]


class Ranks:
    """Knows the rank of each process, read once: a process's environment does not change after its exec."""

    def __init__(self) -> None:
        self._known: dict[_Key, int | None] = {}
        self._seen: set[_Key] = set()

    def look(self, tree: Mapping[int, ProcStat]) -> tuple[Rank, ...]:
        """Return the ranks now, lowest first; none if there are fewer than two."""
        keys = {(stat.pid, stat.start_ticks) for stat in tree.values()}
        self._known = {key: rank for key, rank in self._known.items() if key in keys}
        # between fork and exec a process has the environment of its parent: it is read at the second look
        for key in keys & self._seen - self._known.keys():
            self._known[key] = _rank(key[0])
        self._seen = keys
        ranks = {stat.pid: self._known.get((stat.pid, stat.start_ticks)) for stat in tree.values()}
        found = [
            Rank(rank=rank, pid=stat.pid, state=stat.state)
            for stat in tree.values()
            if (rank := ranks[stat.pid]) is not None and ranks.get(stat.parent) != rank
        ]
        return tuple(sorted(found, key=lambda each: (each.rank, each.pid))) if len(found) > 1 else ()


def _rank(pid: int) -> int | None:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for variable in VARIABLES:
        for entry in entries:
            if entry.startswith(variable) and entry[len(variable) :].isdigit():
                return int(entry[len(variable) :])
    return None
