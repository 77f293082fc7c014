import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.integration.sense_world import (
    HandClock,
    ListInbox,
    RunClock,
    identity,
    python,
    running,
    said,
    target,
    wait_until,
)
from trainwatch.core.model.observation import ProcessSample
from trainwatch.core.processes import KTHREADD, Process, all_processes
from trainwatch.core.sense.process import run_tree
from trainwatch.core.sense.process.process_tree import ProcessTree
from trainwatch.core.sense.process.run_tree import tree_pids

BURN = "x = 0\nfor i in range(8_000_000): x += i\n"
TRAINER = f"""
import os, subprocess, sys
print('up', flush=True)
sys.stdin.readline()
child = subprocess.Popen([sys.executable, '-c', '''import sys
{BURN}
print(open("/dev/zero", "rb").read(3_000_000) and "worked", flush=True)
import time; time.sleep(60)'''], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
child.stdout.readline()
print('worked', flush=True)
sys.stdin.readline()
print('next', flush=True)
sys.stdin.readline()
child.kill()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
print('zombie', flush=True)
sys.stdin.readline()
child.wait()
print('reaped', flush=True)
sys.stdin.readline()
"""


def go_on(process: object) -> None:
    stdin = process.stdin  # type: ignore[attr-defined]
    stdin.write(b"\n")
    stdin.flush()


def test_cpu_of_short_lived_processes_is_counted_once() -> None:
    inbox, clock = ListInbox(), HandClock()
    sensor = ProcessTree(inbox=inbox, clock=clock, interval_s=1.0)

    def sample() -> ProcessSample:
        clock.t += 1.0
        sensor.sample()
        return inbox.of(ProcessSample)[-1]

    with python(TRAINER) as trainer:
        assert said(trainer) == "up"
        sensor.follow(target(identity(trainer.pid)))
        first = sample()
        assert (first.cpu_cores, first.procs, sum(first.states.values())) == (None, 1, 1)
        assert first.rss_bytes is not None
        assert first.rss_bytes > 1e6
        go_on(trainer)
        assert said(trainer) == "worked"
        busy = sample()
        assert busy.procs == 2
        assert busy.cpu_cores is not None
        assert busy.cpu_cores > 0.1
        assert busy.read_bytes is not None
        assert first.read_bytes is not None
        assert busy.read_bytes - first.read_bytes >= 3_000_000
        go_on(trainer)
        assert said(trainer) == "next"
        idle = sample()
        assert idle.cpu_cores is not None
        assert idle.cpu_cores < 0.1
        go_on(trainer)
        assert said(trainer) == "zombie"
        zombie = sample()
        assert (zombie.procs, zombie.states.get("Z")) == (2, 1)
        go_on(trainer)
        assert said(trainer) == "reaped"
        reaped = sample()
        assert reaped.procs == 1
        assert reaped.cpu_cores is not None
        assert reaped.cpu_cores < 0.1
        assert reaped.read_bytes is not None
        assert busy.read_bytes <= reaped.read_bytes < busy.read_bytes + 1_000_000
    gone = sample()
    assert (gone.procs, gone.states, gone.read_bytes) == (0, {}, reaped.read_bytes)


ORPHANING_RUNNER = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
worker = "import time; time.sleep(60)"
code = f'''import subprocess, sys
w = subprocess.Popen([sys.executable, "-c", "{worker}"])
print(w.pid, flush=True)
sys.stdin.readline()'''
trainer = subprocess.Popen([sys.executable, "-c", code], stdin=sys.stdin, stdout=subprocess.PIPE)
print(trainer.pid, trainer.stdout.readline().decode().strip(), flush=True)
trainer.wait()
print("dead", flush=True)
sys.stdin.readline()
"""


def test_workers_that_outlive_the_trainer_stay_in_the_tree() -> None:
    with python(ORPHANING_RUNNER) as runner:
        trainer_pid, worker_pid = (int(pid) for pid in said(runner).split())
        try:
            attempt = target(identity(trainer_pid), runner=identity(runner.pid))
            assert tree_pids(attempt) == {trainer_pid, worker_pid}
            go_on(runner)
            assert said(runner) == "dead"
            assert tree_pids(attempt) == {worker_pid}
        finally:
            os.kill(worker_pid, 9)


def test_processes_are_sampled_while_an_attempt_runs() -> None:
    inbox = ListInbox()
    sensor = ProcessTree(inbox=inbox, clock=RunClock(), interval_s=0.02)
    with running(sensor):
        sensor.follow(target(identity(os.getpid())))
        wait_until(lambda: len(inbox.of(ProcessSample)) >= 3, "samples")
    assert inbox.of(ProcessSample)[-1].cpu_cores is not None


FORKING_RUNNER = """
import os, subprocess, sys
trainer = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
fork = os.fork()
if fork == 0:
    sys.stdin.readline()
    os._exit(0)
print(trainer.pid, fork, flush=True)
os.waitpid(fork, 0)
trainer.kill()
"""


def test_fork_of_the_runner_is_not_in_the_tree_before_it_has_loaded_a_program() -> None:
    with python(FORKING_RUNNER) as runner:
        trainer_pid, fork_pid = (int(pid) for pid in said(runner).split())
        assert tree_pids(target(identity(trainer_pid), runner=identity(runner.pid))) == {trainer_pid}
        assert fork_pid != trainer_pid
        go_on(runner)
        assert runner.wait() == 0, "it ended its trainer"


def test_kernel_threads_are_no_processes() -> None:
    found = all_processes()
    assert os.getpid() in found
    assert not any(stat.parent == KTHREADD for stat in found.values()) or read_name(KTHREADD) != "kthreadd"
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert all_processes()[child].state in {"R", "Z", "S", "D"}
    os.waitpid(child, 0)
    assert child not in all_processes()


def read_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip() if Path(f"/proc/{pid}").exists() else ""


THREADED = """
import subprocess, sys, threading
print('up', flush=True)
sys.stdin.readline()
def begin():
    subprocess.Popen(['sleep', '60'])
    print('begun', flush=True)
    sys.stdin.readline()
threading.Thread(target=begin).start()
"""


def test_only_the_members_are_read_and_a_child_of_another_thread_is_found_by_the_next_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now: list[float] = [1000.0]
    scans: list[float] = []

    def scan() -> dict[int, Process]:
        scans.append(now[0])
        return all_processes()

    monkeypatch.setattr(run_tree, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(run_tree, "all_processes", scan)
    with python(THREADED) as trainer:
        assert said(trainer) == "up"
        tree, followed = run_tree.RunTree(), target(identity(trainer.pid))
        assert [set(tree.look(followed)) for _ in range(3)] == [{trainer.pid}] * 3
        go_on(trainer)
        assert said(trainer) == "begun"
        assert set(tree.look(followed)) == {trainer.pid}
        assert scans == [1000.0]
        now[0] += run_tree.SCAN_S
        members = tree.look(followed)
        assert len(members) == 2
        (child,) = members.keys() - {trainer.pid}
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: tree.look(followed)[child].state == "Z", "the zombie is a member until it is reaped")
        assert len(scans) == 2
        go_on(trainer)
        trainer.wait()
        assert tree.look(followed) == {}
