"""A trainer in a container: the client that trainwatch starts is not the parent of the training."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import container_engine
from tests.fakes.e2e_world import TRAINER, World, lives, until
from tests.tiers import SECOND_TIER
from trainwatch.core import spool
from trainwatch.core.act.stopping import first_of_container


def can_unshare() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False)
    return done.returncode == 0


pytestmark = pytest.mark.skipif(not can_unshare(), reason="needs root and PID namespaces (unshare)")


@pytest.fixture
def engine(world: World) -> Iterator[Path]:
    """The folder of the stand-in engine, whose client ``docker`` is first on the PATH of the world."""
    state, tools = world.short / "engine", world.short / "bin"
    state.mkdir()
    tools.mkdir()
    client = tools / "docker"
    client.write_text(f'#!/bin/sh\nexec {sys.executable} -S {container_engine.__file__} "$@"\n')
    client.chmod(0o755)
    world.env |= {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "ENGINE_STATE": str(state)}
    daemon = subprocess.Popen([sys.executable, "-S", container_engine.__file__, "serve"], env=world.env)
    yield state
    for place in container_engine.containers(state):
        if (place / "pid").exists() and not (place / "code").exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int((place / "pid").read_text()), signal.SIGKILL)
    daemon.kill()
    daemon.wait()


def begin(world: World, *trainer: str) -> None:
    out = world.out
    command = ["docker", "run", "--rm", "-v", f"{out}:{out}", "img", sys.executable, str(TRAINER)]
    command += ["--output-dir", "{output_dir}", "--resume", "{resume}", *trainer]
    world.write(command=command)
    world.headless()


def first_process(world: World, number: int) -> int:
    """The pid of the container's first process, once trainwatch knows it."""
    folder = world.attempt(number).directory

    def look() -> int | None:
        found = first_of_container(folder)
        return None if found is None else found.pid

    return until(look, "the container is known")


def test_a_stop_reaches_the_trainer_in_the_container_once_and_a_resume_goes_on(world: World, engine: Path) -> None:
    begin(world, "--steps", "60000", "--save-every", "20")
    world.at_step(10)
    inside = first_process(world, 1)
    assert inside not in {world.attempt(1).trainer.pid, None}
    assert world.asks("stop", "--yes").code == 0
    world.in_state("stopped")
    assert not lives(inside)
    assert "interrupted at step" in world.log(1), "SIGINT came, and the trainer saved"
    calls = [json.loads(line) for line in (engine / "calls.txt").read_text().splitlines()]
    assert [each[2] for each in calls if each[0] == "kill"] == ["INT"]
    stopped_at = world.steps(1)[-1]
    assert world.do("resume").code == 0
    world.at_step(stopped_at + 1, 2)
    assert not (world.out / "twice.txt").exists()


def test_a_killed_client_leaves_no_second_trainer(world: World, engine: Path) -> None:
    assert engine.is_dir()
    begin(world, "--steps", "60000", "--save-every", "20")
    world.at_step(30)
    inside = first_process(world, 1)
    os.kill(world.attempt(1).trainer.pid, signal.SIGKILL)
    world.at_step(40, 2)
    assert not lives(inside)
    assert not (world.out / "twice.txt").exists()


def test_an_engine_that_does_not_answer_lets_nothing_start_beside_the_container(world: World, engine: Path) -> None:
    begin(world, "--steps", "60000")
    world.at_step(10)
    inside = first_process(world, 1)
    (engine / "dead").touch()
    os.kill(world.attempt(1).trainer.pid, signal.SIGKILL)
    story = world.in_state("given_up")
    assert "Cannot connect to the Docker daemon" in story.state_reason
    assert lives(inside)
    assert len(story.attempts) == 1
    (engine / "dead").unlink()
    os.kill(inside, signal.SIGKILL)


@SECOND_TIER
def test_a_pause_stops_what_runs_in_the_container(world: World, engine: Path) -> None:
    assert engine.is_dir()
    begin(world, "--steps", "60000")
    world.at_step(10)
    inside = first_process(world, 1)
    assert world.asks("pause").code == 0
    world.in_state("paused")
    stat = Path(f"/proc/{inside}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "its first process is stopped")
    assert world.do("resume").code == 0
    world.in_state("running")
    at = world.steps(1)[-1]
    world.at_step(at + 5)
    assert spool.read(world.attempt(1).directory, "container.json") is not None
