"""Recovery with real processes: what a resume must prove, and what is changed so that a restart can succeed."""

import hashlib
from pathlib import Path

from tests.fakes.e2e_world import World, world
from trainwatch.core.model.decision import GiveUp

__all__ = ["world"]


def hashes(folder: Path) -> dict[str, str]:
    """Every file of a folder by its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_resume_that_the_trainer_ignores_is_ended_and_said(world: World) -> None:
    world.write("--steps", "400", "--save-every", "40", "--crash-at", "90", "--forget")

    watcher = world.headless()

    assert watcher.ends() == 1, watcher.said
    story = world.story()
    assert story.state == "given_up"
    assert [(i.kind, i.class_) for i in story.incidents] == [
        ("crash", "cuda_unknown_error"), ("resume", "started_over"),
    ]  # fmt: skip
    assert "resume did not take: told to resume at step 80" in world.decisions(GiveUp)[0].reason
    assert len(world.lives()) == 2
    assert world.steps(2)[-1] < 80, "ended before it reached what it would have overwritten"
    assert "if_resume_not_taken" in watcher.said
