import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
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
from trainwatch.core.model.observation import Exit
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import ExitRecord, ProcessIdentity
from trainwatch.core.processes import boot_id, is_alive, is_zombie, read_process
from trainwatch.core.sense.process.exit_watch import ExitWatch

RUNNER = """
import os, subprocess, sys, time
trainer = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(1); sys.exit(7)"], stdin=sys.stdin)
print(trainer.pid, flush=True)
code = trainer.wait()
if sys.argv[1] == "record":
    path = os.path.join(sys.argv[2], "exit.json")
    with open(path + ".tmp", "w") as file:
        file.write('{"attempt": 1, "wall": %r, "code": %d}' % (time.time(), code))
    os.rename(path + ".tmp", path)
elif sys.argv[1] == "linger":
    time.sleep(60)
"""
STUCK_RUNNER = """
import subprocess, sys, time
trainer = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(1); sys.exit(7)"], stdin=sys.stdin)
print(trainer.pid, flush=True)
time.sleep(60)
"""


class World:
    """A runner process with a trainer below it."""

    def __init__(self, code: str, mode: str, directory: Path) -> None:
        self.runner = subprocess.Popen(
            [sys.executable, "-c", code, mode, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.trainer_pid = int(said(self.runner))
        self.target = target(identity(self.trainer_pid), runner=identity(self.runner.pid), directory=str(directory))

    def let_trainer_end(self) -> None:
        assert self.runner.stdin is not None
        self.runner.stdin.write(b"x")
        self.runner.stdin.flush()

    def close(self) -> None:
        if is_alive(self.target.trainer):
            os.kill(self.trainer_pid, signal.SIGKILL)
        self.runner.kill()
        self.runner.wait()
        for pipe in (self.runner.stdin, self.runner.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def inbox() -> ListInbox:
    return ListInbox()


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    made: list[World] = []
    yield made
    for world in made:
        world.close()


def watch(inbox: ListInbox, **settings: float) -> ExitWatch:
    return ExitWatch(inbox=inbox, clock=RunClock(), **settings)  # type: ignore[arg-type]


def only_exit(inbox: ListInbox) -> Exit:
    exits = wait_until(lambda: inbox.of(Exit), "an exit")
    assert len(exits) == 1
    return exits[0]


def test_an_exit_record_is_reported(inbox: ListInbox, worlds: list[World], tmp_path: Path) -> None:
    worlds.append(world := World(RUNNER, "record", tmp_path))
    with running(sensor := watch(inbox)):
        sensor.follow(world.target)
        world.let_trainer_end()
        end = only_exit(inbox)
    assert (end.code, end.signal) == (7, None)
    assert end.died_t is not None
    assert 0 <= end.died_t <= end.t


@pytest.mark.parametrize("number", [None, signal.SIGKILL])
def test_a_trainers_end_is_seen_if_its_runner_is_stuck(
    inbox: ListInbox, worlds: list[World], tmp_path: Path, number: int | None
) -> None:
    worlds.append(world := World(STUCK_RUNNER, "", tmp_path))
    with running(sensor := watch(inbox, runner_report_s=0.2)):
        sensor.follow(world.target)
        world.let_trainer_end() if number is None else os.kill(world.trainer_pid, number)
        end = only_exit(inbox)
    # The trainer is a zombie: the kernel still has its status.
    assert (end.code, end.signal) == (7 if number is None else None, number)


def test_the_end_of_a_trainer_is_seen_after_its_runner_died(
    inbox: ListInbox, worlds: list[World], tmp_path: Path
) -> None:
    worlds.append(world := World(RUNNER, "none", tmp_path))
    with running(sensor := watch(inbox, grace_s=0.1)):
        sensor.follow(world.target)
        world.runner.kill()
        world.runner.wait()
        assert is_alive(world.target.trainer)
        assert inbox.of(Exit) == []
        os.kill(world.trainer_pid, signal.SIGKILL)
        end = only_exit(inbox)
    # Whoever inherits orphans here may or may not have waited for it yet.
    assert (end.code, end.signal) in {(None, None), (None, signal.SIGKILL)}


def test_an_attempt_that_ended_before_the_supervisor_started_is_reported(inbox: ListInbox, tmp_path: Path) -> None:
    record = ExitRecord(attempt=1, wall=0.0, signal=9)
    (tmp_path / "exit.json").write_bytes(msgspec.json.encode(record))
    gone = ProcessIdentity(boot_id="another boot", pid=os.getpid(), start_ticks=1)
    with running(sensor := watch(inbox)):
        sensor.follow(target(gone, runner=gone, directory=str(tmp_path)))
        end = only_exit(inbox)
        assert (end.code, end.signal, end.died_t) == (None, 9, 0.0)


def test_an_end_that_nobody_saw_is_dated_by_the_last_output(inbox: ListInbox, tmp_path: Path) -> None:
    """After a power cut no runner has recorded the end; a run that stood for hours must not count as trained."""
    log = tmp_path / "train.log"
    log.write_text("step 7\n")
    clock = HandClock()
    clock.t = 1000.0
    os.utime(log, (clock.wall() - 600.0, clock.wall() - 600.0))
    gone = ProcessIdentity(boot_id="another boot", pid=os.getpid(), start_ticks=1)
    lost = AttemptTarget(number=1, trainer=gone, runner=None, log=str(log), directory=str(tmp_path))
    with running(sensor := ExitWatch(inbox=inbox, clock=clock)):
        sensor.follow(lost)
        end = only_exit(inbox)
    assert (end.code, end.signal, end.t) == (None, None, 1000.0)
    assert end.died_t == pytest.approx(400.0)


def test_the_log_is_read_to_its_end_before_the_exit_is_reported(inbox: ListInbox, tmp_path: Path) -> None:
    (tmp_path / "exit.json").write_bytes(msgspec.json.encode(ExitRecord(attempt=1, wall=0.0, code=0)))
    seen: list[int] = []
    sensor = ExitWatch(inbox=inbox, clock=RunClock(), before_exit=lambda: seen.append(len(inbox.of(Exit))))
    with running(sensor):
        sensor.follow(target(identity(os.getpid()), directory=str(tmp_path)))
        only_exit(inbox)
    assert seen == [0]


def test_an_exit_is_reported_although_the_last_save_could_not_be_read(inbox: ListInbox, tmp_path: Path) -> None:
    (tmp_path / "exit.json").write_bytes(msgspec.json.encode(ExitRecord(attempt=1, wall=0.0, code=0)))
    sensor = ExitWatch(inbox=inbox, clock=RunClock(), before_success=lambda: os.close(-1))
    with running(sensor):
        sensor.follow(target(identity(os.getpid()), directory=str(tmp_path)))
        assert only_exit(inbox).code == 0


def test_a_damaged_exit_record_is_reported_and_read_again(inbox: ListInbox, tmp_path: Path) -> None:
    (tmp_path / "exit.json").write_text('{"attempt": 1, "wa')
    gone = ProcessIdentity(boot_id="another boot", pid=1, start_ticks=1)
    trouble: list[str] = []
    sensor = ExitWatch(inbox=inbox, clock=RunClock(), grace_s=0.1, on_problem=trouble.append)
    with running(sensor):
        sensor.follow(target(gone, runner=gone, directory=str(tmp_path)))
        end = only_exit(inbox)
    assert (end.code, end.signal) == (None, None)
    assert len(trouble) == 1
    assert "exit.json cannot be read" in trouble[0]


def test_exits_of_successive_attempts_are_reported(inbox: ListInbox, worlds: list[World], tmp_path: Path) -> None:
    targets: list[AttemptTarget] = []
    with running(sensor := watch(inbox)):
        for number in range(2):
            directory = tmp_path / str(number)
            directory.mkdir()
            worlds.append(world := World(RUNNER, "record", directory))
            targets.append(world.target)
            sensor.follow(world.target)
            sensor.follow(world.target)
            world.let_trainer_end()
            wait_until(lambda: len(inbox.of(Exit)) == number + 1, "its exit")  # noqa: B023
            sensor.follow(None)


def test_process_identity_recognises_zombies_and_reused_pids() -> None:
    with python("import sys; sys.stdin.read(1)") as process:
        found = identity(process.pid)
        assert is_alive(found)
        assert not is_alive(ProcessIdentity(boot_id=found.boot_id, pid=found.pid, start_ticks=found.start_ticks + 1))
        assert not is_alive(ProcessIdentity(boot_id="other", pid=found.pid, start_ticks=found.start_ticks))
        process.kill()
        wait_until(lambda: is_zombie(found), "the zombie")
        assert not is_alive(found)
        assert identity(process.pid) == found
        process.wait()
        assert read_process(process.pid) is None
    assert found.boot_id == boot_id() != ""
