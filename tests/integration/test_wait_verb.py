"""``trainwatch wait`` as scripts use it: it blocks, and its exit code says how the run stands."""

import json
import os
import signal

import pytest

from tests.fakes.e2e_world import World
from tests.tiers import second

LONG = ("--steps", "4000", "--step-time", "0.02", "--save-every", "2000")


def test_it_blocks_until_the_run_is_finished(world: World) -> None:
    world.write("--steps", "60", "--step-time", "0.02", "--save-every", "20", "--hold-at", "30")
    world.headless()
    world.at_step(30)
    assert world.asks("wait", "--until", "running").code == 0
    late = world.asks("wait", "--timeout", "0.3")
    assert (late.code, late.out) == (124, "job is running after 0.3 s: training advances\n")
    assert world.asks("status", "--exit-code").code == 7
    waits = world.begin("wait", "--json")
    over = world.begin("wait", "--until", "stopped")
    assert waits.process.poll() is None
    (world.out / "go").touch()
    assert waits.ends() == 0
    said = json.loads(waits.said)
    assert (said["run"], said["state"], said["step"]) == ("job", "finished", 60)
    assert said["reason"].startswith("the training is done")
    assert over.ends() == 1, "a finished run is never stopped"
    assert world.asks("status", "--exit-code").code == 0
    elsewhere = world.asks("wait", cwd=world.home)  # no run of another folder lets a script go on
    assert (elsewhere.code, "no run was started in this folder" in elsewhere.err) == (3, True)


@pytest.mark.parametrize("order", ["stop", second("pause")])
def test_a_run_that_waits_for_a_person_needs_one(world: World, order: str) -> None:
    world.write(*LONG)
    world.headless()
    world.at_step(5)
    waits = world.begin("wait")
    assert world.asks(order, "--yes").code == 0
    assert waits.ends() == 6
    assert world.asks("wait", "--until", "finished").code == 6
    assert world.asks("wait", "--until", "needs-you").code == 0
    assert world.asks("status", "--exit-code").code == 6
    if order == "pause":
        assert world.asks("kill", "--yes").code == 0
        world.in_state("stopped")


def test_a_run_that_nothing_watches_does_not_block_for_ever(world: World) -> None:
    world.write(*LONG)
    watcher = world.headless()
    world.at_step(5)
    os.kill(watcher.process.pid, signal.SIGKILL)
    told = world.asks("wait")
    assert (told.code, "no supervisor watches it: `trainwatch resume job" in told.out) == (5, True)
    os.kill(world.attempt().trainer.pid, signal.SIGKILL)


def test_what_cannot_be_waited_for_is_said(world: World) -> None:
    world.write("--steps", "10")
    done = world.asks("wait", "10")
    assert done.code == 3
    assert "`trainwatch snooze` gives a suspected hang more time" in done.err
    assert world.asks("wait", "--until", "done").code == 2
