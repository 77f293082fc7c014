"""Which processes of a tree compute, and whether they are stopped."""

import pytest

from trainwatch.core.processes import Process
from trainwatch.core.sense.process.process_tree import Computing, Standing

SHELL, LAUNCHER, RANK_0, RANK_1, WORKER, OTHER_WORKER, SLEEP = 10, 11, 12, 13, 14, 15, 16
S = 100
"""Ticks in a second."""


def stat(pid: int, parent: int, seconds: float, state: str = "S") -> Process:
    return Process(pid, 7, parent, 1, 1, state, "python", int(seconds * S))


def standing(*tree: Process, before: tuple[Process, ...] = ()) -> Standing:
    computing = Computing()
    if before:
        computing.update({s.pid: s for s in before})
    return computing.update({s.pid: s for s in tree})


def test_stopped_helper_is_not_held() -> None:
    tree = stat(SHELL, 1, 0.1), stat(RANK_0, SHELL, 300), stat(SLEEP, SHELL, 0, "T")
    assert standing(*tree) == Standing(1, 0)


def test_stopped_trainer_holds_its_workers() -> None:
    tree = (
        stat(SHELL, 1, 0.1),
        stat(RANK_0, SHELL, 300, "T"),
        stat(WORKER, RANK_0, 900),
        stat(OTHER_WORKER, RANK_0, 900),
    )
    assert standing(*tree) == Standing(3, 3)


def test_one_stopped_rank_of_two() -> None:
    tree = stat(LAUNCHER, 1, 6), stat(RANK_0, LAUNCHER, 300, "T"), stat(RANK_1, LAUNCHER, 300)
    assert standing(*tree) == Standing(2, 1)


@pytest.mark.parametrize(("launcher_s", "computing"), [(6, 2), (15, 3)])
def test_launcher_of_stopped_ranks_does_not_compute(launcher_s: float, computing: int) -> None:
    tree = stat(LAUNCHER, 1, launcher_s), stat(RANK_0, LAUNCHER, 20, "T"), stat(RANK_1, LAUNCHER, 20, "T")
    assert standing(*tree) == Standing(computing, 2)


def test_stopped_worker_of_a_trainer_that_computes() -> None:
    tree = stat(RANK_0, 1, 300), stat(WORKER, RANK_0, 200, "T")
    assert standing(*tree) == Standing(2, 1)


def test_work_of_long_ago_does_not_count() -> None:
    before = stat(SLEEP, 1, 4000), stat(RANK_0, 1, 10)
    assert standing(stat(SLEEP, 1, 4000), stat(RANK_0, 1, 2000, "T"), before=before) == Standing(1, 1)


def test_nothing_is_forgotten_while_all_wait() -> None:
    tree = stat(LAUNCHER, 1, 6), stat(RANK_0, LAUNCHER, 300, "T"), stat(RANK_1, LAUNCHER, 300)
    computing = Computing()
    found = [computing.update({s.pid: s for s in tree}) for _ in range(2000)]
    assert set(found) == {Standing(2, 1)}


def test_nothing_is_known_of_a_tree_without_cpu_time() -> None:
    assert standing(stat(RANK_0, 1, 0, "T")) == Standing(0, 0)
    assert standing() == Standing(0, 0)


def test_ended_process_does_not_compute() -> None:
    assert standing(stat(RANK_0, 1, 300, "Z"), stat(RANK_1, 1, 100, "T")) == Standing(1, 1)
