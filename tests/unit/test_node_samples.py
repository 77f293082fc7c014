"""Samples of a job's nodes, from the lines of the agents there; and the agent itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import until
from trainwatch.core.act.slurm import node_agent
from trainwatch.core.model.observation import GpuSample, Observation, ProcessSample
from trainwatch.core.model.ports.supervision import AttemptTarget
from trainwatch.core.model.run import ProcessIdentity
from trainwatch.core.sense.process.node_samples import NodeSamples, last_line


class Inbox:
    def __init__(self) -> None:
        self.taken: list[Observation] = []

    def put(self, observation: Observation) -> None:
        self.taken.append(observation)

    def unread(self) -> int:
        return 0


class Clock:
    def now(self) -> float:
        return 5.0

    def wall(self) -> float:
        return 5.0


def write(folder: Path, node: str, n: int, **process: object) -> None:
    (folder / "nodes").mkdir(exist_ok=True)
    gpus = [{"index": 0, "util": 90.0, "own": True}]
    line = {"n": n, "node": node, "wall": 1.0, "process": {"procs": 2, "states": {"S": 2}, **process}, "gpus": gpus}
    with (folder / "nodes" / f"{node}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.fixture
def sensor(tmp_path: Path) -> tuple[NodeSamples, Inbox]:
    inbox = Inbox()
    made = NodeSamples(inbox=inbox, clock=Clock(), interval_s=1.0)
    identity = ProcessIdentity(boot_id="b", pid=1, start_ticks=1)
    made.target = AttemptTarget(number=1, trainer=identity, runner=None, log=None, directory=str(tmp_path))
    return made, inbox


def test_nodes_are_added_up(sensor: tuple[NodeSamples, Inbox], tmp_path: Path) -> None:
    made, inbox = sensor
    write(tmp_path, "n1", 1, cpu=1.5, read_bytes=10.0, write_bytes=1.0, ranks=[{"rank": 1, "pid": 9, "state": "S"}])
    write(tmp_path, "n2", 1, cpu=0.5, read_bytes=20.0, write_bytes=2.0, ranks=[{"rank": 0, "pid": 8, "state": "R"}])
    made.sample()
    processes, gpus = inbox.taken
    assert isinstance(processes, ProcessSample)
    assert (processes.cpu_cores, processes.read_bytes, processes.procs) == (2.0, 30.0, 4)
    assert [rank.rank for rank in processes.ranks] == [0, 1]
    assert isinstance(gpus, GpuSample)
    assert [gpu.index for gpu in gpus.gpus] == [0, 1]


def test_a_node_that_writes_no_more_leaves_all_unknown(sensor: tuple[NodeSamples, Inbox], tmp_path: Path) -> None:
    made, inbox = sensor
    write(tmp_path, "n1", 1, cpu=1.0)
    write(tmp_path, "n2", 1, cpu=1.0)
    made.sample()
    write(tmp_path, "n1", 2, cpu=0.0)
    made.sample()
    assert len(inbox.taken) == 2
    write(tmp_path, "n2", 2)
    made.sample()
    assert isinstance(inbox.taken[2], ProcessSample)
    assert inbox.taken[2].cpu_cores is None


def test_half_a_line_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "n1", 1)
    path = tmp_path / "nodes" / "n1.jsonl"
    with path.open("a") as file:
        file.write('{"n": 2, "node"')
    found = last_line(path)
    assert found is None or found.n == 1
    assert last_line(tmp_path / "none.jsonl") is None


def test_the_agent_counts_the_steps_of_its_job_alone(tmp_path: Path) -> None:
    own = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "1"}
    program = [sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"]
    trainer = subprocess.Popen(program, env=os.environ | own)
    other = subprocess.Popen(program, env=os.environ | own | {"SLURM_JOB_ID": "4712"})
    agent = subprocess.Popen(
        [sys.executable, "-I", node_agent.__file__, str(tmp_path), "0.1"],
        env=os.environ | {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "n9"},
    )
    try:
        path = tmp_path / "nodes" / "n9.jsonl"
        line = until(
            lambda: found if (found := last_line(path)) is not None and found.process.cpu is not None else None,
            "two lines of the agent",
        )
        assert (line.node, line.process.procs) == ("n9", 1)
        assert line.process.cpu is not None
        assert line.process.cpu < 1.0
    finally:
        for process in (agent, trainer, other):
            process.kill()
            process.wait()
