"""A trainer in a real container of Podman: stop, resume, kill, and a client that was killed. No cgroups: no pause."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fakes import real_podman
from tests.fakes.e2e_world import TRAINER, World, lives, until, world
from tests.integration.test_container_run import first_process
from tests.tiers import SECOND_TIER

__all__ = ["world"]

pytestmark = [SECOND_TIER, pytest.mark.timeout(600)]


@pytest.fixture
def podman(world: World) -> Iterator[World]:
    """A run whose trainer is in a container of Podman."""
    folder = world.short / "podman"
    folder.mkdir()
    world.env |= real_podman.settings(folder)
    world.out.mkdir()
    command = [*real_podman.run_words(folder, world.out), sys.executable, "-u", str(TRAINER)]
    command += ["--output-dir", "{output_dir}", "--resume", "{resume}", "--steps", "60000", "--save-every", "20"]
    world.write(command=command)
    world.headless()
    yield world
    for name in real_podman.running(world.env):
        subprocess.run(["podman", "kill", name], env=world.env, capture_output=True, check=False)


def test_a_stop_saves_and_a_resume_goes_on_in_a_new_container(podman: World) -> None:
    podman.at_step(10)
    inside = first_process(podman, 1)
    assert lives(inside)
    assert inside != podman.attempt(1).trainer.pid
    assert podman.do("stop", "--yes").code == 0
    podman.in_state("stopped")
    assert not lives(inside)
    assert real_podman.running(podman.env) == []
    assert "interrupted at step" in podman.log(1), "SIGINT came, and the trainer saved"
    at = podman.steps(1)[-1]
    assert podman.do("resume").code == 0
    podman.at_step(at + 1, 2)
    assert podman.steps(2)[0] > 1
    assert len(real_podman.running(podman.env)) == 1
    assert not (podman.out / "twice.txt").exists()


def test_a_killed_client_is_followed_by_one_container_and_a_kill_ends_it(podman: World) -> None:
    podman.at_step(30)
    inside = first_process(podman, 1)
    os.kill(podman.attempt(1).trainer.pid, signal.SIGKILL)
    podman.at_step(40, 2)
    assert not lives(inside)
    assert len(real_podman.running(podman.env)) == 1
    assert not (podman.out / "twice.txt").exists()
    second = first_process(podman, 2)
    assert podman.do("kill", "--yes").code == 0
    podman.in_state("stopped")
    assert not lives(second)
    until(lambda: real_podman.running(podman.env) == [], "no container is left")


def test_a_pause_needs_cgroups_and_is_said_not_to_work_without(podman: World) -> None:
    podman.at_step(10)
    inside = first_process(podman, 1)
    podman.do("pause")

    def told() -> str | None:
        return next((text for text in podman.story().notices if "cgroup" in text), None)

    assert "pause" in until(told, "why it is not paused")
    podman.in_state("running")
    assert lives(inside)
    podman.at_step(podman.steps(1)[-1] + 5)
