"""The queue with real runs on two GPUs of a fake driver: order, placement, a crash, a reboot, and nothing twice."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import TRAINER, World, lives, until
from tests.fakes.nvml.driver import FakeNvml
from tests.tiers import SECOND_TIER
from trainwatch.core import processes
from trainwatch.core.act.launch.launching import find_attempt
from trainwatch.core.act.stopping import members
from trainwatch.core.spool import read_order
from trainwatch.core.store.journal import load_story
from trainwatch.core.store.learned import QueueFile
from trainwatch.core.store.lock import holder_pid

TWO = "gpus = 2\n[gpu *]\nmem_total = 16384\nmem_used = 300\nutil_gpu = 0\n"


@pytest.fixture
def queue(world: World, fake_nvml: FakeNvml) -> Iterator[QueueFile]:
    fake_nvml.show(TWO)
    world.env |= {"LD_LIBRARY_PATH": str(fake_nvml.folder), "FAKE_NVML_STATE": str(fake_nvml.state)}
    made = QueueFile(world.home)
    yield made
    if (pid := holder_pid(made.worker_lock)) is not None:
        os.kill(pid, signal.SIGKILL)


def add(world: World, name: str, *trainer: str) -> None:
    command = [sys.executable, str(TRAINER), "--output-dir", f"out-{name}", "--resume", "{resume}", *trainer]
    done = world.do(
        "queue", "add", "--name", name, "--gpu-memory", "10GB", "--output-dir", f"out-{name}", "--", *command
    )
    assert done.code == 0, done.err


def states(queue: QueueFile) -> dict[str, str]:
    return {entry.name: entry.ending or entry.state for entry in queue.read().entries}


def attempts(world: World) -> dict[str, list[str]]:
    """By run, the GPU of each attempt whose trainer is known."""
    found = {}
    for run in world.runs():
        launched = [folder for folder in sorted(run.attempts.iterdir()) if find_attempt(folder) is not None]
        orders = [read_order(folder) for folder in launched]
        gpus = [order.env["CUDA_VISIBLE_DEVICES"] for order in orders if order is not None]
        found[run.load_spec().name] = gpus
    return found


def kill_all(world: World, queue: QueueFile) -> None:
    """As a reboot does: no process gets a chance to write anything."""
    pids = [holder_pid(queue.worker_lock), *(holder_pid(run.lock) for run in world.runs())]
    for pid in [pid for pid in pids if pid is not None]:
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: not lives(pid), "it is gone")  # type: ignore[misc]
    for run in world.runs():
        for folder in run.attempts.iterdir():
            target = find_attempt(folder)
            if target is None:
                continue
            if target.runner is not None:
                processes.send_signal((target.runner.pid, target.runner.start_ticks), signal.SIGKILL)
            for process in members(target):
                processes.send_signal(process.key, signal.SIGKILL)
            until(lambda target=target: not lives(target.trainer.pid), "its trainer is gone")  # type: ignore[misc]


@SECOND_TIER
def test_four_runs_on_two_gpus_with_a_crash_and_a_reboot(world: World, queue: QueueFile) -> None:
    add(world, "a", "--steps", "60", "--hold-at", "35")
    add(world, "b", "--steps", "60", "--crash-at", "25", "--hold-at", "45")
    add(world, "c", "--steps", "40")
    add(world, "d", "--steps", "40")
    both = {"a": ["0"], "b": ["1", "1"]}
    until(lambda: attempts(world) == both, f"a on GPU 0, b on GPU 1 twice: {states(queue)}")
    # The worker hears of a start when its launch is known to have succeeded; b may have crashed by then.
    until(lambda: states(queue) == {"a": "started", "b": "started", "c": "queued", "d": "queued"}, "two started")

    kill_all(world, queue)
    worker = world.begin("queue", "work")
    again = {"a": ["0", "0"], "b": ["1", "1", "1"]}
    until(lambda: attempts(world) == again, "both go on, each on its GPU")
    for name in "ab":
        Path(world.project, f"out-{name}", "go").touch()
    assert worker.ends(240) == 0

    assert states(queue) == dict.fromkeys("abcd", "finished")
    known = attempts(world)
    assert {name: known[name] for name in "ab"} == again
    assert [len(known[name]) for name in "cd"] == [1, 1]
    began = {run.load_spec().name: load_story(run.journal).attempts[0].wall for run in world.runs()}
    assert began["c"] < began["d"]
    assert len(world.runs()) == 4
    assert not any(world.project.glob("out-*/twice.txt"))
    assert not any(entry.environ for entry in queue.read().entries)


@SECOND_TIER
def test_a_run_waits_while_somebody_else_holds_the_gpus(world: World, queue: QueueFile, fake_nvml: FakeNvml) -> None:
    busy = f"{TWO}mem_used = 3000\nproc = {os.getpid()} 2700 C 0 0\n"
    fake_nvml.show(busy)
    add(world, "a", "--steps", "20")
    until(lambda: "did not start" in queue.read().entries[0].why, "it says what it waits for")
    shown = world.asks("runs", "--json").json["queued"]
    assert [(each["name"], each["place"]) for each in shown] == [("a", 1)]
    assert world.asks("queue", "list", "--json").json["worker"]["alive"]
    fake_nvml.show(TWO)
    until(lambda: states(queue) == {"a": "finished"}, "it was started when they were free")
