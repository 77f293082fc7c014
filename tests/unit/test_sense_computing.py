"""Which processes of a tree compute, and whether they are stopped."""

import pytest

from trainwatch.core.processes import Process
from trainwatch.core.sense.process.process_tree import Computing, Standing

SHELL, LAUNCHER, RANK_0, RANK_1, WORKER, OTHER_WORKER, SLEEP = 10, 11, 12, 13, 14, 15, 16
S = 100
"""Ticks in a second."""


def stat(pid: int, parent: int, seconds: float, state: str = "S") -> Process:
    return Process(pid, 7, parent, 1, 1, state, "python", int(seconds * S))


def ranks(launcher_s: float, each_s: float = 300, second: str = "S") -> tuple[Process, ...]:
    """A launcher and its two ranks, of which the first is stopped."""
    workers = stat(RANK_0, LAUNCHER, each_s, "T"), stat(RANK_1, LAUNCHER, each_s, second)
    return stat(LAUNCHER, 1, launcher_s), *workers


TRAINER = stat(RANK_0, SHELL, 300, "T")
STANDINGS = {
    "a stopped helper is not held": ((stat(SHELL, 1, 0.1), stat(RANK_0, SHELL, 300), stat(SLEEP, SHELL, 0, "T")), 1, 0),
    "a stopped trainer holds its workers": (
        (stat(SHELL, 1, 0.1), TRAINER, stat(WORKER, RANK_0, 900), stat(OTHER_WORKER, RANK_0, 900)), 3, 3,
    ),
    "one stopped rank of two": (ranks(6), 2, 1),
    "the launcher of stopped ranks does not compute": (ranks(6, 20, "T"), 2, 2),
    "unless it worked": (ranks(15, 20, "T"), 3, 2),
    "a stopped worker of a trainer that computes": ((stat(RANK_0, 1, 300), stat(WORKER, RANK_0, 200, "T")), 2, 1),
    "a tree without CPU time": ((stat(RANK_0, 1, 0, "T"),), 0, 0),
    "no tree": ((), 0, 0),
    "an ended process does not compute": ((stat(RANK_0, 1, 300, "Z"), stat(RANK_1, 1, 100, "T")), 1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "computing", "stopped"), STANDINGS.values(), ids=STANDINGS)
def test_which_processes_compute_and_are_stopped(tree: tuple[Process, ...], computing: int, stopped: int) -> None:
    looks = Computing()
    found = {looks.update({s.pid: s for s in tree}) for _ in range(2000)}
    assert found == {Standing(computing, stopped)}, "nothing is forgotten while all wait"


def test_work_of_long_ago_does_not_count() -> None:
    looks = Computing()
    looks.update({s.pid: s for s in (stat(SLEEP, 1, 4000), stat(RANK_0, 1, 10))})
    now = stat(SLEEP, 1, 4000), stat(RANK_0, 1, 2000, "T")
    assert looks.update({s.pid: s for s in now}) == Standing(1, 1)
