"""A trainer in a real container: stop, resume, kill, pause, hang, its exit status, and a client that was killed.

Each with every engine of this machine.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.fakes import real_engines
from tests.fakes.e2e_world import HASTY, TRAINER, World, lives, until
from tests.integration.test_container_run import first_process
from tests.tiers import SECOND_TIER
from trainwatch.core import processes

pytestmark = [SECOND_TIER, pytest.mark.timeout(600)]


@pytest.fixture(params=real_engines.ENGINES)
def engine(request: pytest.FixtureRequest, world: World) -> Iterator[real_engines.Engine]:
    """An engine of this machine; the variables of the world are those that its client needs."""
    folder = world.short / "engine"
    folder.mkdir()
    world.out.mkdir()
    with real_engines.engine(request.param, folder, world.out) as found:
        world.env |= found.env
        yield found


def begin(
    world: World, engine: real_engines.Engine, *trainer: str, more: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Supervise a trainer in a container."""
    command = [*engine.words, sys.executable, "-u", str(TRAINER), "--output-dir", "{output_dir}"]
    world.write(command=[*command, "--resume", "{resume}", *trainer], more=more)
    world.headless()


def test_a_stop_saves_and_a_resume_goes_on_in_a_new_container(world: World, engine: real_engines.Engine) -> None:
    begin(world, engine, "--steps", "60000")
    world.at_step(10)
    inside = first_process(world, 1)
    assert lives(inside)
    assert inside != world.attempt(1).trainer.pid
    assert world.do("stop", "--yes").code == 0
    world.in_state("stopped")
    assert not lives(inside)
    assert engine.running() == []
    assert "interrupted at step" in world.log(1), "SIGINT came, and the trainer saved"
    at = world.steps(1)[-1]
    assert world.do("resume").code == 0
    world.at_step(at + 1, 2)
    assert world.steps(2)[0] > 1
    assert len(engine.running()) == 1
    assert not (world.out / "twice.txt").exists()


def test_a_killed_client_is_followed_by_one_container_and_a_kill_ends_it(
    world: World, engine: real_engines.Engine
) -> None:
    begin(world, engine, "--steps", "60000")
    world.at_step(30)
    inside = first_process(world, 1)
    client = world.attempt(1).trainer.pid
    for pid in (client, *(each.pid for each in processes.descendants(client))):  # docker-compose starts a second one
        os.kill(pid, signal.SIGKILL)
    world.at_step(40, 2)
    assert not lives(inside)
    assert len(engine.running()) == 1
    assert not (world.out / "twice.txt").exists()
    second = first_process(world, 2)
    assert world.do("kill", "--yes").code == 0
    world.in_state("stopped")
    assert not lives(second)
    until(lambda: engine.running() == [], "no container is left")


def test_a_pause_stops_the_container_or_it_is_said_why_not(world: World, engine: real_engines.Engine) -> None:
    begin(world, engine, "--steps", "60000")
    world.at_step(10)
    inside = first_process(world, 1)
    world.do("pause")
    if engine.has_cgroups:
        world.in_state("paused")
        at = world.steps(1)[-1]
        assert world.do("unpause").code == 0
    else:
        until(lambda: next((text for text in world.story().notices if "cgroup" in text), None), "why it is not paused")
        at = world.steps(1)[-1]
    world.in_state("running")
    assert lives(inside)
    world.at_step(at + 5)


def test_a_hang_in_a_container_is_told_with_its_stacks_and_ended(world: World, engine: real_engines.Engine) -> None:
    begin(world, engine, "--steps", "60000", "--hang-at", "45", more=HASTY)
    world.at_step(46, 2)
    stacks = [path.read_text() for path in world.run.path.glob("incidents/*/stacks-*.txt")]
    assert any("hang (" in text and TRAINER.name in text for text in stacks), world.story().incidents
    assert len(engine.running()) == 1
    assert not (world.out / "twice.txt").exists()


def test_the_exit_status_is_that_of_the_trainer_and_the_end_is_a_success(
    world: World, engine: real_engines.Engine
) -> None:
    begin(world, engine, "--steps", "90", "--crash-at", "50")
    story = world.in_state("finished")
    assert [attempt.code for attempt in story.attempts] == [1, 0]
    assert world.steps(2)[0] == 41, "from the checkpoint of step 40"
    until(lambda: engine.running() == [], "no container is left")
