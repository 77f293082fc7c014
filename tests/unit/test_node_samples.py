"""Samples of a job's nodes, from the lines of the agents there; and the agent itself."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import trainbeat
from tests.fakes.e2e_world import until
from tests.integration.sense_world import HandClock, ListInbox, target
from trainwatch.core import processes, rank_files
from trainwatch.core.act.slurm import node_agent
from trainwatch.core.model.observation import GpuSample, LogChunk, Nodes, ProcessSample, RankEnded
from trainwatch.core.model.run import JobHandle, JobRecord, ProcessIdentity
from trainwatch.core.sense.process.ranks import NodeLine, NodeSamples, new_lines


def write(folder: Path, node: str, n: int, **process: object) -> None:
    (folder / "nodes").mkdir(exist_ok=True)
    gpus = [{"index": 0, "util": 90.0, "own": True}]
    line = {"n": n, "node": node, "wall": 1.0, "process": {"procs": 2, "states": {"S": 2}, **process}, "gpus": gpus}
    with (folder / "nodes" / f"{node}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


TRAINER = ProcessIdentity(boot_id="b", pid=1, start_ticks=1)
Sensor = tuple[NodeSamples, ListInbox]


@pytest.fixture
def sensor(tmp_path: Path) -> Sensor:
    inbox = ListInbox()
    made = NodeSamples(inbox=inbox, clock=HandClock(), interval_s=1.0)
    made.target = target(TRAINER, directory=str(tmp_path))
    return made, inbox


def test_nodes_are_added_up(sensor: Sensor, tmp_path: Path) -> None:
    made, inbox = sensor
    write(tmp_path, "n1", 1, cpu=1.5, read_bytes=10.0, write_bytes=1.0, ranks=[{"rank": 1, "pid": 9, "state": "S"}])
    write(tmp_path, "n2", 1, cpu=0.5, read_bytes=20.0, write_bytes=2.0, ranks=[{"rank": 0, "pid": 8, "state": "R"}])
    made.sample()
    (processes,), (gpus,) = inbox.of(ProcessSample), inbox.of(GpuSample)
    assert (processes.cpu_cores, processes.read_bytes, processes.procs) == (2.0, 30.0, 4)
    assert [rank.rank for rank in processes.ranks] == [0, 1]
    assert [gpu.index for gpu in gpus.gpus] == [0, 1]


def test_a_node_that_writes_no_more_leaves_all_unknown(sensor: Sensor, tmp_path: Path) -> None:
    made, inbox = sensor
    write(tmp_path, "n1", 1, cpu=1.0)
    write(tmp_path, "n2", 1, cpu=1.0)
    made.sample()
    write(tmp_path, "n1", 2, cpu=0.0)
    made.sample()
    assert len(inbox.of(ProcessSample)) == 1
    write(tmp_path, "n2", 2)
    made.sample()
    assert [each.cpu_cores for each in inbox.of(ProcessSample)] == [2.0, None]


def test_each_node_is_kept_with_the_age_of_its_newest_line(tmp_path: Path) -> None:
    kept: list[Nodes] = []
    clock = HandClock()
    clock.t = 5.0
    made = NodeSamples(
        inbox=ListInbox(), clock=clock, interval_s=1.0, line_s=10.0, keep=lambda _path, nodes: kept.append(nodes)
    )
    made.target = target(TRAINER, directory=str(tmp_path))
    write(tmp_path, "n1", 1)
    write(tmp_path, "n2", 1)
    made.sample()
    for second in range(1, 100):
        clock.t = 5.0 + second
        if second % 10 == 0:
            write(tmp_path, "n2", 1 + second)
        made.sample()
    first, second_node = kept[-1].nodes
    assert (first.node, second_node.node) == ("n1", "n2")
    assert (first.grew_t, second_node.grew_t) == (5.0, 95.0)
    assert kept[-1].silent_s(first, kept[-1].t) is not None
    assert kept[-1].silent_s(second_node, kept[-1].t) is None
    assert first.gpus is not None
    assert first.gpus[0].util_pct == 90.0
    assert len(kept) < 30


def test_the_nodes_of_a_job_that_an_earlier_attempt_submitted_are_read_there(sensor: Sensor, tmp_path: Path) -> None:
    made, inbox = sensor
    earlier = tmp_path / "0001"
    earlier.mkdir()
    write(earlier, "n1", 1)
    record = JobRecord(handle=JobHandle(cluster="c", id="7"), phase="running", attempt_directory=str(earlier))
    (tmp_path / "job.json").write_bytes(msgspec.json.encode(record))
    made.sample()
    assert len(inbox.of(ProcessSample)) == len(inbox.of(GpuSample)) == 1


def test_what_a_training_tells_by_its_heartbeat_is_read_as_lines(sensor: Sensor, tmp_path: Path) -> None:
    made, inbox = sensor
    for number, beat in enumerate([{"step": 7, "total": 90, "loss": 0.5, "phase": "train"}, {"step": 8}, {"step": 8}]):
        (tmp_path / "nodes").mkdir(exist_ok=True)
        line = {"n": number, "node": "n1", "process": {"procs": 1}, "beat": beat}
        with (tmp_path / "nodes" / "n1.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        made.sample()
    told = [each.text for each in inbox.of(LogChunk)]
    assert told == ["step 7/90 loss=0.5\n", "step 8\n"]


def last_line(path: Path) -> NodeLine | None:
    lines, _ = new_lines(path, 0)
    return lines[-1] if lines else None


def test_ranks_and_their_launchers_have_their_node_and_what_ended_is_told_once(sensor: Sensor, tmp_path: Path) -> None:
    made, inbox = sensor
    rank = {"rank": 3, "pid": 7, "state": "S", "line": "step 9/60", "line_age_s": 2.0}
    agents = [{"pid": 5, "workers": 1, "max_restarts": 3}]
    write(tmp_path, "n1", 1, ranks=[rank], agents=agents)
    made.sample()
    (put,) = inbox.of(ProcessSample)
    told = [(str(each), each.line, each.line_age_s) for each in put.ranks]
    assert told == [("rank 3 (pid 7 on n1)", "step 9/60", 2.0)]
    assert [(each.pid, each.node, each.workers, each.max_restarts) for each in put.agents] == [(5, "n1", 1, 3)]
    path = tmp_path / "nodes" / "n1.jsonl"
    with path.open("a") as file:  # two lines at once, as a network disk shows them
        left = {"rank": 3, "pid": 7, "text": "ValueError: x", "wall": 9.0}
        file.write(json.dumps({"n": 2, "node": "n1", "ended": [left]}) + "\n")
        file.write(json.dumps({"n": 3, "node": "n1"}) + "\n")
    made.sample()
    made.sample()
    (ended,) = inbox.of(RankEnded)
    assert (ended.rank, ended.pid, ended.node, ended.text, ended.wall) == (3, 7, "n1", "ValueError: x", 9.0)


def test_half_a_line_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "n1", 1)
    path = tmp_path / "nodes" / "n1.jsonl"
    with path.open("a") as file:
        file.write('{"n": 2, "node"')
    (found,), at = new_lines(path, 0)
    assert found.n == 1
    with path.open("a") as file:
        file.write(': "n1"}\n')
    assert [line.n for line in new_lines(path, at)[0]] == [2]
    assert new_lines(tmp_path / "none.jsonl", 0) == ([], 0)


OWN = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "1"}


class Node:
    """Node n9 of job 4711 on this machine: its agent's folder and lines, and processes that end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines = folder, folder / "nodes" / "n9.jsonl"
        self.started: list[subprocess.Popen[bytes]] = []
        for module in (processes, rank_files):
            source = Path(str(module.__file__))
            (folder / source.name).write_bytes(source.read_bytes())

    def start(self, *words: str, **env: str) -> "subprocess.Popen[bytes]":
        """A program in Python with this environment, of the job unless it says otherwise."""
        self.started.append(subprocess.Popen([sys.executable, *words], env=os.environ | OWN | env))
        return self.started[-1]

    def agent(self, **env: str) -> "subprocess.Popen[bytes]":
        words = ("-I", node_agent.__file__, str(self.folder), "0.1")
        return self.start(*words, SLURM_STEP_ID="0", SLURMD_NODENAME="n9", **env)

    def line(self, good: Callable[[NodeLine], object], what: str) -> NodeLine:
        """The agent's newest line once it is good."""
        return until(lambda: found if (found := last_line(self.lines)) and good(found) else None, what)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    for process in reversed(made.started):
        process.kill()
        process.wait()


def test_the_agent_counts_the_steps_of_its_job_alone(node: Node) -> None:
    program = ("-c", "import time\nwhile True: time.sleep(0.01)")
    node.start(*program)
    node.start(*program, SLURM_JOB_ID="4712")
    node.agent()
    line = node.line(lambda found: found.process.cpu is not None, "two lines of the agent")
    assert (line.node, line.process.procs) == ("n9", 1)
    assert line.process.cpu is not None
    assert line.process.cpu < 1.0


RANK = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["TORCHELASTIC_ERROR_FILE"]).parent
folder.mkdir(parents=True)
(folder / "stdout.log").write_text("step 1/60 loss 0.5\\n")
while not (folder / "fail").exists(): time.sleep(0.01)
(folder / "error.json").write_text('{"message": {"message": "ValueError: x", "extraInfo": {"timestamp": "9"}}}')
"""
LAUNCHER = """
import os, subprocess, sys, time
ranks = {"RANK": "3", "TORCHELASTIC_ERROR_FILE": sys.argv[1] + "/attempt_0/0/error.json",
         "TORCHELASTIC_MAX_RESTARTS": "2"}
subprocess.Popen([sys.executable, "-c", sys.argv[2]], env={**os.environ, **ranks}).wait()
time.sleep(600)
"""


def test_the_agent_reads_the_logs_of_ranks_their_launcher_and_what_they_left(node: Node, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    launcher = node.start("-c", LAUNCHER, str(logs), RANK)
    agent = node.agent(SLURM_NNODES="2")
    try:
        line = node.line(lambda found: found.process.ranks and found.process.ranks[0].line, "a line of the rank")
        (rank,), (above,) = line.process.ranks, line.process.agents
        assert (rank.rank, rank.line) == (3, "step 1/60 loss 0.5")
        assert rank.line_age_s is not None
        assert (above.pid, above.workers, above.max_restarts) == (launcher.pid, 1, 2)
        (logs / "attempt_0" / "0" / "fail").touch()
        node.line(lambda found: found.process.agents and not found.process.agents[0].workers, "its end")
        agent.terminate()
        agent.wait()
        lines, _ = new_lines(node.lines, 0)
        assert [(each.rank, each.pid, each.text, each.wall) for line in lines for each in line.ended] == [
            (3, rank.pid, "ValueError: x", 9.0)
        ]
    finally:
        (logs / "attempt_0" / "0" / "fail").touch()  # the rank ends


def test_the_agent_sees_a_torchrun_that_waits_for_other_nodes_before_its_first_worker(
    node: Node, tmp_path: Path
) -> None:
    (tmp_path / "torchrun").write_text("import time\ntime.sleep(600)\n")
    waits = node.start(str(tmp_path / "torchrun"), "--nnodes=2", "train.py")
    node.agent(SLURM_NNODES="2")
    line = node.line(lambda found: found.process.agents, "the launcher")
    (seen,) = line.process.agents
    assert (seen.pid, seen.workers, seen.join_s) == (waits.pid, 0, rank_files.JOIN_S)
    assert line.process.ranks == ()


CATCHES = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: open(sys.argv[1], "a").write("saved"))
open(sys.argv[1] + ".ready", "w").close()
while True: time.sleep(0.01)
"""


def test_only_a_process_of_the_job_that_catches_the_signal_is_asked_for_a_checkpoint(
    node: Node, tmp_path: Path
) -> None:
    deaf = node.start("-c", "import time; time.sleep(600)")
    saved = tmp_path / "saved"
    catches = node.start("-c", CATCHES, str(saved))
    until((tmp_path / "saved.ready").exists, "the handler is set")

    def asked(*signal: str) -> str:
        words = [sys.executable, "-I", node_agent.__file__, "--save", str(tmp_path), *signal]
        env = os.environ | OWN | {"SLURM_STEP_ID": "9", "SLURMD_NODENAME": "n9"}
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout

    assert asked("USR1") == f"trainwatch: node n9: SIGUSR1 was sent to {catches.pid}\n"
    until(saved.exists, "it saved")
    assert "SIGUSR2 was not sent" in asked("USR2")
    assert "cannot be asked" in asked()
    assert deaf.poll() is None


def test_a_training_that_uses_the_heartbeat_is_asked_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trainbeat.py").write_bytes(Path(trainbeat.__file__).read_bytes())
    (tmp_path / "job").mkdir()
    page = trainbeat.Page(trainbeat.page_path(str(tmp_path / "job")), make=True)
    try:
        asked = node_agent.Beat(str(tmp_path))
        assert asked.read() is None
        assert not asked.ask(stop=False)
        values = (os.getpid(), 7, 90, 0.5, 1.0, b"train", 0)
        trainbeat.HEAD.pack_into(page.map, 0, trainbeat.MAGIC, 2, *values)
        assert asked.read() == {"step": 7, "total": 90, "loss": 0.5, "phase": "train"}
        assert node_agent.ask_to_save(str(tmp_path), "USR1") == (True, "it was asked for a checkpoint")
        assert page.number(trainbeat.ASKED) == 1
        monkeypatch.setenv("SLURM_NNODES", "2")  # the other node has ranks that know nothing of it
        asked_now, said = node_agent.ask_to_save(str(tmp_path), "")
        assert not asked_now
        assert "would not save at the same step" in said
        assert page.number(trainbeat.ASKED) == 1
        assert node_agent.ask_to_save(str(tmp_path), "", last=True)[0]
        assert node_agent.ask_to_save(str(tmp_path), "", stop=True)[0]
        assert page.number(trainbeat.ASKED) == page.number(trainbeat.ASKED_STOP) == 3
    finally:
        Path(page.path).unlink()
