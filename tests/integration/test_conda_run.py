"""A trainer under ``conda run`` of a real conda: stop, resume, a hang with its stacks, and the exit status."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import HASTY, TRAINER, World
from tests.tiers import SECOND_TIER

pytestmark = [
    SECOND_TIER,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("conda") is None, reason="no conda on the PATH"),
]


@pytest.fixture
def conda(world: World) -> tuple[str, ...]:
    """The command up to that of the trainer, in an environment whose Python is that of the tests."""
    folder = world.short / "env"
    (folder / "bin").mkdir(parents=True)
    (folder / "conda-meta").mkdir()
    (folder / "conda-meta" / "history").touch()
    (folder / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    return ("conda", "run", "--no-capture-output", "-p", str(folder), "python", "-u", str(TRAINER))


def write(world: World, conda: tuple[str, ...], *trainer: str, hasty: bool = False) -> None:
    command = [*conda, "--output-dir", "{output_dir}", "--resume", "{resume}", *trainer]
    world.write(command=command, more=HASTY if hasty else None)


def test_a_stop_saves_and_ends_all_of_it_and_a_resume_goes_on(world: World, conda: tuple[str, ...]) -> None:
    write(world, conda, "--steps", "60000")
    world.headless()
    world.at_step(10)
    assert world.asks("stop", "--yes").code == 0
    world.in_state("stopped")
    assert "interrupted at step" in world.log(1), "SIGINT came, and the trainer saved"
    assert not any(Path(f"/proc/{pid}").exists() for pid in world.lives())
    at = world.steps(1)[-1]
    assert world.do("resume").code == 0
    world.at_step(at + 1, 2)
    assert world.steps(2)[0] > 1


def test_a_hang_is_told_with_its_stacks_and_a_crash_with_its_status(world: World, conda: tuple[str, ...]) -> None:
    write(world, conda, "--steps", "90", "--hang-at", "30", "--crash-at", "70", hasty=True)
    world.headless()
    story = world.in_state("finished")
    stacks = [path.read_text() for path in world.run.path.glob("incidents/*/stacks-*.txt")]
    assert any("hang (" in text and TRAINER.name in text for text in stacks), story.incidents
    assert [attempt.code for attempt in story.attempts[1:]] == [1, 0]
    assert len(world.lives()) == 3
