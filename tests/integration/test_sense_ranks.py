"""Which processes of a tree are ranks of a distributed training."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from trainwatch.core.processes import Process, all_processes, read_process, variables_of
from trainwatch.core.rank_files import Ranks, RankSeen

WORKER = "import subprocess, sys; child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"


def _rank(name: str, number: int) -> "subprocess.Popen[str]":
    env = {**os.environ, name: str(number)}
    return subprocess.Popen([sys.executable, "-S", "-c", WORKER], env=env, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[str]"]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        for stat in all_processes().values():
            if stat.parent == process.pid:
                os.kill(stat.pid, 9)
        process.kill()
        process.communicate()


def _tree(processes: list["subprocess.Popen[str]"]) -> dict[int, Process]:
    found: dict[int, Process] = {}
    for process in processes:
        assert process.stdout is not None
        for pid in (process.pid, int(process.stdout.readline())):
            stat = read_process(pid)
            assert stat is not None
            found[pid] = stat._replace(state="S")
    return found


@pytest.mark.parametrize("name", ["RANK", "OMPI_COMM_WORLD_RANK"])
def test_ranks_are_known_by_their_environment_and_workers_are_none(
    started: list["subprocess.Popen[str]"], name: str
) -> None:
    started += [_rank(name, 0), _rank(name, 1)]
    tree, ranks = _tree(started), Ranks(variables_of)
    assert ranks.look(tree, 0.0)[0] == []
    assert ranks.look(tree, 0.0)[0] == [RankSeen(n, p.pid, "S") for n, p in enumerate(started)]


def test_a_single_rank_is_none(started: list["subprocess.Popen[str]"]) -> None:
    started.append(_rank("RANK", 0))
    tree, ranks = _tree(started), Ranks(variables_of)
    ranks.look(tree, 0.0)
    assert ranks.look(tree, 0.0)[0] == []


def test_a_process_in_the_midst_of_an_exec_has_its_variables() -> None:
    """Until then the kernel shows none: a lock was taken from a run whose last rank just started a program."""
    for number in range(20):
        with subprocess.Popen(["sleep", "60"], env=os.environ | {"RANK": str(number)}) as process:
            variables = variables_of(process.pid)
            process.kill()
        assert f"RANK={number}".encode() in (variables or ())
