"""Processes that a command leaves behind: one that trains is the attempt from then on, helpers are named."""

import os
import sys
from pathlib import Path

import pytest

from tests.integration.act_world import World, wait_for
from trainwatch.core import processes, spool
from trainwatch.core.act.stopping import members, stop_attempt
from trainwatch.core.model.run import ProcessIdentity, StartRecord, StopOrder
from trainwatch.core.processes import is_alive
from trainwatch.core.spool import read_exit, read_start

TRAINS = f"{sys.executable} t.py"
TRAINING = """import os, sys, time
while not os.path.exists("enough"):
    print("step", flush=True)
    time.sleep(0.05)
sys.exit(5)"""


@pytest.mark.parametrize("status", [0, 1])
def test_a_training_that_goes_on_after_its_command_is_the_attempt_until_it_ends(run: World, status: int) -> None:
    (run.root / "t.py").write_text(TRAINING)
    target = run.launch("sh", "-c", f"sleep 600 & {TRAINS} & exit {status}")
    left = wait_for(
        lambda: (spool.read(target.directory, spool.LEFT) or {}).get("working"), "the runner sees that it prints"
    )
    assert len(left) == 1
    assert read_exit(Path(target.directory)) is None

    def followed() -> StartRecord | None:
        start = read_start(Path(target.directory))
        return start if start is not None and start.trainer != target.trainer else None

    assert is_alive(wait_for(followed, "it is the trainer now").trainer)
    (run.root / "enough").touch()
    record = run.exit(target)
    assert record.code == 5
    assert len(record.left) == 1
    assert record.left[0].startswith("sleep 600 (pid ")


def test_a_helper_that_is_left_is_named_and_lives_on(run: World) -> None:
    target = run.launch("sh", "-c", "sleep 600 & exit 0")
    record = run.exit(target)
    assert record.code == 0
    (helper,) = processes.descendants(target.runner.pid if target.runner is not None else 0)
    assert record.left == (f"sleep 600 (pid {helper.pid})",)


def test_processes_that_end_with_the_command_delay_nothing(run: World) -> None:
    record = run.exit(run.launch("sh", "-c", "sleep 0.1 & exit 3"))
    assert (record.code, record.left) == (3, ())


LOOK_READS = 8
"""Read calls of a look at the processes; the runner makes one or two when a signal wakes it."""


def reads(runner: ProcessIdentity | None) -> int:
    """Read calls that a process has made."""
    assert runner is not None
    values = dict(line.split(": ") for line in Path(f"/proc/{runner.pid}/io").read_text().splitlines())
    return int(values["syscr"])


CRASHES = """import os, sys, time
if os.fork() == 0:
    time.sleep(600)
print("up", flush=True)
sys.stdin.readline()
sys.exit(3)"""


def test_after_a_crash_a_helper_of_the_script_is_spared_and_the_trainers_own_processes_are_ended(run: World) -> None:
    gate = run.root / "gate"
    os.mkfifo(gate)
    (run.root / "t.py").write_text(CRASHES)
    target = run.launch("sh", "-c", f"sleep 600 & {sys.executable} t.py < gate; exit 3")
    with gate.open("w"):
        run.log_has(target, "up")
        assert target.runner is not None
        wait_for(lambda: len(members(target)) == 4, "the tree of shell, helper, trainer and its worker")
        for _ in range(2):  # the first one may have begun before
            before = reads(target.runner)
            wait_for(lambda: reads(target.runner) > before + LOOK_READS, "a look of the runner")  # noqa: B023
    assert run.exit(target).code == 3
    report = stop_attempt(target, StopOrder(interrupt_grace_s=2.0, terminate_grace_s=2.0, leftovers=True))
    (helper,) = members(target)
    assert helper.name == "sleep"
    assert (report.gone, report.processes, report.spared) == (True, 1, (f"sleep (pid {helper.pid})",))
    assert stop_attempt(target, StopOrder(mode="kill")).processes == 1
