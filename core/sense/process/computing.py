"""Which processes of a tree compute, and how many of them are stopped (state T). Pure.

A stopped helper (a ``sleep``, a shell) says nothing about the training; a stopped trainer is a pause; one stopped rank
of several leaves the others waiting. So a process counts by the CPU time that it used lately, compared with the busiest
one. Workers of a stopped process wait for it and count as stopped, too.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from .proc_stat import TICKS_PER_S, ProcStat

SHARE = 0.1
"""Share of the busiest process's CPU time from which a process computes."""
PARENT_SHARE = 0.5
"""The same for a parent of a stopped process: a launcher used some CPU time for its imports and then only waits."""
MEMORY_S = 300.0
"""CPU seconds of the busiest process after which earlier time hardly counts. Nothing is forgotten while all wait."""
STOPPED = frozenset("T")
ENDED = frozenset("ZXx")


class Standing(NamedTuple):
    """``computing``: processes that compute; ``held``: those of them that are stopped, or wait for a stopped parent."""

    computing: int
    held: int


class Computing:
    """Follows the CPU time of each process of the tree."""

    def __init__(self) -> None:
        self._ticks: dict[tuple[int, int], int] = {}
        self._weight: dict[tuple[int, int], float] = {}

    def update(self, tree: Mapping[int, ProcStat]) -> Standing:
        """Take the tree as it is now."""
        grown = {
            (s.pid, s.start_ticks): s.own_ticks - self._ticks.get((s.pid, s.start_ticks), 0) for s in tree.values()
        }
        fade = math.exp(-max(grown.values(), default=0) / (MEMORY_S * TICKS_PER_S))
        self._ticks = {(s.pid, s.start_ticks): s.own_ticks for s in tree.values()}
        self._weight = {key: self._weight.get(key, 0.0) * fade + max(0, ticks) for key, ticks in grown.items()}
        living = {s.pid: self._weight[s.pid, s.start_ticks] for s in tree.values() if s.state not in ENDED}
        most = max(living.values(), default=0.0)
        if most <= 0.0:
            return Standing(0, 0)
        computing = {pid for pid, weight in living.items() if weight >= SHARE * most}
        held = {pid for pid in computing if _is_held(pid, tree, computing)}
        parents = {parent for pid in held for parent in _parents(pid, tree)}
        waiting = {pid for pid in computing - held if pid not in parents or living[pid] >= PARENT_SHARE * most}
        return Standing(len(held) + len(waiting), len(held))


def _is_held(pid: int, tree: Mapping[int, ProcStat], computing: set[int]) -> bool:
    """Whether it, or a computing process above it, is stopped."""
    line = (pid, *(parent for parent in _parents(pid, tree) if parent in computing))
    return any(tree[each].state in STOPPED for each in line)


def _parents(pid: int, tree: Mapping[int, ProcStat]) -> tuple[int, ...]:
    """The members of the tree above a process, the nearest first."""
    found: list[int] = []
    parent = tree[pid].parent
    while parent in tree and parent not in found:
        found.append(parent)
        parent = tree[parent].parent
    return tuple(found)
