"""Whatever dies around the training, the training goes on, is found again, and is never started twice."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes.e2e_world import HASTY, PATIENCE_S, World, command_line, lives, until
from tests.tiers import SECOND_TIER
from trainwatch.core import processes, spool
from trainwatch.core.act.launch.launching import settle_launch
from trainwatch.core.model.decision import StartAttempt, StopAttempt
from trainwatch.core.model.ports import AttemptTarget
from trainwatch.core.model.run import LaunchOrder
from trainwatch.core.processes import is_alive

LONG = ("--steps", "200000", "--step-time", "0.02", "--save-every", "20")


def goes_on_without_a_gap(world: World, number: int = 1) -> None:
    """The trainer makes further steps, and its log shows each one."""
    world.at_step(world.steps(number)[-1] + 10, number)
    steps = world.steps(number)
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert world.alive(number)


def responsive(world: World) -> Any:
    """The first status with a sign of life of the supervisor that is not too old."""

    def look() -> Any:
        status = world.status()
        return status if status["supervisor"]["responsive"] else None

    return until(look, "the supervisor responds")


def test_a_killed_supervisor_is_replaced_without_a_second_trainer(world: World) -> None:
    """Also if the screen was killed. One that is stopped is shown as frozen, a run without any as interrupted."""
    world.write(*LONG)
    first = world.headless()
    world.at_step(10)
    world.in_state("running")
    start = world.attempt()
    pid = start.trainer.pid
    kill_the_screen(world)
    goes_on_without_a_gap(world)
    assert world.status()["supervisor"]["alive"]

    first.murder()
    goes_on_without_a_gap(world)
    unwatched = world.asks("wait")
    assert (unwatched.code, "no supervisor watches it: `trainwatch resume job" in unwatched.out) == (5, True)
    second = world.headless()
    world.in_state("running")
    until(lambda: "adopts attempt 1" in second.said, "adoption is told")
    third = world.headless()
    assert third.ends() == 4
    assert "already has a supervisor" in third.said
    goes_on_without_a_gap(world)
    status = responsive(world)
    assert (status["attempt"], status["pid"], status["state"]) == (1, pid, "running")
    assert (status["supervisor"]["pid"], status["supervisor"]["alive"]) == (second.pid, True)
    assert status["progress"]["step"] is not None

    second.signal(signal.SIGSTOP)
    try:
        until(lambda: processes.read_process(second.pid).state == "T", "it is stopped")  # type: ignore[union-attr]
        status = world.status()
    finally:
        second.signal(signal.SIGCONT)
    assert (status["supervisor"]["alive"], status["supervisor"]["responsive"]) == (True, False)
    assert status["troubles"][0]["kind"] == "supervisor_frozen"
    assert f"kill -CONT {second.pid}" in status["troubles"][0]["text"]
    until(lambda: responsive(world)["troubles"] == [], "it responds again, and nothing is wrong")

    second.murder()
    assert start.runner is not None
    for process in (start.runner, start.trainer):
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not world.alive(), "the trainer is gone")
    status = world.status()
    assert (status["state"], status["pid"], status["supervisor"]["alive"]) == ("interrupted", None, False)
    assert status["reason"] == "no supervisor is running, and the trainer of attempt 1 has ended without an exit record"
    assert world.lives() == [pid]


def kill_the_screen(world: World) -> None:
    """Open it on a terminal, and kill it once it shows the run."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(world.project)
        os.execvpe(sys.executable, [sys.executable, "-m", "trainwatch"], world.env | {"TERM": "xterm-256color"})
    seen = b""
    try:
        while b"job" not in seen:
            seen += os.read(terminal, 65536)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


@pytest.mark.parametrize(
    "talk", [pytest.param(0, id="short log", marks=SECOND_TIER), pytest.param(5000, id="log of many chunks")]
)
def test_a_crash_without_a_supervisor_is_diagnosed_and_resumed_later(world: World, talk: int) -> None:
    world.write("--steps", "100", "--save-every", "20", "--crash-at", "50", "--hold-at", "30", "--talk", str(talk))
    first = world.headless()
    world.at_step(30)
    until(lambda: world.story().checkpoints, "a snapshot")
    first.murder()
    (world.out / "go").touch()
    until(lambda: not world.alive(1), "the crash")
    said = "no supervisor is running, and attempt 1 has ended (exit code 1), "
    until(lambda: world.status()["reason"].startswith(said), "the runner has written how the trainer ended")
    status = world.status()
    assert (status["state"], status["overall"]["step"]) == ("interrupted", 50)
    assert status["reason"].endswith(", while nobody watched")

    second = world.headless()

    assert second.ends() == 0, second.said
    story = world.story()
    (crash,) = story.incidents
    assert (crash.kind, crash.class_, crash.step) == ("crash", "cuda_unknown_error", 50)
    assert any(e.line for e in crash.evidence)
    assert [(a.resume_step, a.how) for a in story.attempts] == [(None, "crashed"), (40, "finished")]
    assert crash.lost_steps == 10
    assert world.steps(2) == list(range(41, 101))
    assert len(world.lives()) == 2


def paper(name: str) -> "Callable[[World], bool]":
    def is_there(world: World) -> bool:
        return any((run.attempt(1) / name).exists() for run in world.runs())

    return is_there


def decided(world: World) -> bool:
    return bool(world.decisions(StartAttempt))


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(decided, id="decided", marks=SECOND_TIER),
        pytest.param(paper(spool.ORDER), id="ordered", marks=SECOND_TIER),
        pytest.param(paper(spool.CLAIM), id="claimed", marks=SECOND_TIER),
        pytest.param(paper(spool.START), id="started"),
    ],
)
def test_a_supervisor_killed_during_a_launch_leaves_one_trainer(world: World, moment: Callable[[World], bool]) -> None:
    world.write(*LONG)
    first = world.headless()
    until(lambda: moment(world), "the moment")
    first.murder()

    world.headless()

    world.in_state("running")
    world.at_step(20, world.story().attempts[-1].number)
    assert len(world.lives()) <= 1 or not lives(world.lives()[0])
    assert sum(lives(pid) for pid in world.lives()) == 1
    assert world.story().attempts[-1].pid == world.lives()[-1]


@SECOND_TIER
def test_a_supervisor_that_is_terminated_during_a_launch_leaves_one_trainer(world: World) -> None:
    world.write(*LONG)
    first = world.headless()
    until(lambda: decided(world), "the decision")
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    assert "the training continues" in first.said

    world.headless()

    world.in_state("running")
    world.at_step(20)
    assert len(world.lives()) == 1


@pytest.fixture
def stuck_runner(world: World, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """An attempt whose runner has taken the order and waits for its log (a pipe without a reader): folder and pid."""
    folder = tmp_path / "attempt"
    folder.mkdir()
    log = folder / "train.log"
    os.mkfifo(log)
    order = LaunchOrder(attempt=1, argv=("sleep", "60"), cwd="/", env=dict(os.environ), log=str(log))
    spool.write(str(folder), spool.ORDER, msgspec.to_builtins(order))
    subprocess.run(
        [sys.executable, "-P", "-m", "trainwatch.core.act.launch.runner", str(folder)], env=world.env, check=True
    )
    until((folder / spool.CLAIM).exists, "the claim")
    runner = next(p.pid for p in processes.all_processes().values() if str(folder).encode() in command_line(p.pid))
    yield folder, runner
    for pid in (runner, *(p.pid for p in processes.marked_with(str(folder), processes.all_processes().values()))):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_runner_that_is_slow_to_launch_is_waited_for(stuck_runner: tuple[Path, int]) -> None:
    folder, _ = stuck_runner
    found: list[AttemptTarget | None] = []
    asker = threading.Thread(target=lambda: found.append(settle_launch(folder)))
    asker.start()

    with (folder / "train.log").open("rb"):
        asker.join(PATIENCE_S)

    (target,) = found
    assert target is not None
    assert is_alive(target.trainer)


def test_a_runner_that_died_before_it_launched_is_not_waited_for(stuck_runner: tuple[Path, int]) -> None:
    folder, runner = stuck_runner
    os.kill(runner, signal.SIGKILL)
    assert settle_launch(folder) is None


def test_a_trainer_whose_runner_died_before_start_json_is_found(stuck_runner: tuple[Path, int]) -> None:
    folder, runner = stuck_runner
    with (folder / "train.log").open("rb"):
        until((folder / spool.START).exists, "the start")
        os.kill(runner, signal.SIGKILL)
        (folder / spool.START).unlink()
        target = settle_launch(folder)
    assert target is not None
    assert (target.number, target.runner) == (1, None)
    assert command_line(target.trainer.pid).startswith(b"sleep")


@pytest.mark.parametrize("verb", ["stop", pytest.param("kill", marks=SECOND_TIER)])
def test_a_stop_by_an_operator_holds_if_the_supervisor_dies_during_it(world: World, verb: str) -> None:
    """Killed during the stop sequence: the next one continues it and does not restart the training."""
    world.write(*LONG, "--deaf", more={"restart": HASTY["restart"]})
    first = world.headless()
    world.at_step(10)
    assert world.asks(verb, "--yes").code == 0
    until(lambda: world.decisions(StopAttempt), "the decision")
    first.murder()

    second = world.headless()
    # The ladder may be over before the second one is there; a kill may be before the first one died: then it only says so.
    until(lambda: "watches" in second.said or second.process.poll() is not None, "the second supervisor")

    world.in_state("stopped")
    until(lambda: not world.alive(1), "the trainer's end")
    if second.process.poll() is None:
        second.signal(signal.SIGTERM)
    assert second.ends() in {0, 6}  # it was told to end, or there was nothing to watch any more
    assert len(world.lives()) == 1


@SECOND_TIER
def test_a_restart_continues_if_the_supervisor_dies_during_the_stop(world: World) -> None:
    world.write(*LONG, "--hang-at", "50", "--deaf", more=HASTY)
    first = world.headless()
    until(lambda: world.decisions(StopAttempt), "the stop of the hung trainer")
    first.murder()

    world.headless()

    world.at_step(60, 2)
    story = world.in_state("running")
    assert [a.resume_step for a in story.attempts] == [None, 40]
    assert [(i.kind, i.open) for i in story.incidents if i.kind != "quiet"] == [("hang", False)]
    assert len(world.lives()) == 2


@pytest.mark.parametrize("name", [spool.ORDER, pytest.param(spool.START, marks=SECOND_TIER)])
def test_a_resume_missing_from_the_journal_is_recognised_by_its_order(world: World, name: str) -> None:
    world.write(*LONG, "--crash-at", "50")
    first = world.headless()
    until(lambda: any((run.attempt(2) / name).exists() for run in world.runs()), "the second launch")
    first.murder()

    world.headless()

    until(lambda: world.story().incidents and not world.story().incidents[0].open, "proof of life")
    story = world.in_state("running")
    (crash,) = story.incidents
    assert (crash.lost_steps, crash.resumed_step) == (10, 40)
    assert [a.resume_step for a in story.attempts] == [None, 40]
    assert len(world.lives()) == 2


@SECOND_TIER
def test_repeated_kills_of_the_supervisor_lose_no_step_and_no_checkpoint(world: World) -> None:
    world.write("--steps", "160", "--save-every", "20", "--crash-at", "50", "--crash-at", "110")
    codes = []
    for _ in range(12):
        watcher = world.headless()
        try:
            codes.append(watcher.process.wait(1.3))
            break
        except subprocess.TimeoutExpired:
            watcher.murder()
    else:
        codes.append(world.headless().ends())

    assert codes[-1] == 0
    story = world.story()
    assert story.state == "finished"
    assert [(i.kind, i.class_, i.lost_steps) for i in story.incidents] == [("crash", "cuda_unknown_error", 10)] * 2
    assert len(world.lives()) == 3
    assert [a.resume_step for a in story.attempts] == [None, 40, 100]
