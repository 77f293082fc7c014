"""A save is a phase: a stack shows it, too, and a hang in it never counts as the same step again."""

import pytest

from tests.builders import Story
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.model.decision import GiveUp, StopAttempt
from trainwatch.core.model.observation import LogChunk

TORCH = ["_save (torch/serialization.py:1043)", "save (torch/serialization.py:967)", "main (run.py:12)"]
OWN = ["write (pathlib.py:1078)", "save_checkpoint (loop.py:49)"]


@pytest.mark.parametrize("frames", [TORCH, OWN])
def test_stack_of_the_silence_shows_a_save_of_which_nothing_else_is_seen(frames: list[str]) -> None:
    world = save(running(steps=100), step=100).watch(Story(meta=False).train(60))
    world.answer("capture_stacks", frames={"7": frames}).answer("capture_stacks", frames={"7": frames})
    world.watch(Story(meta=False).dead(560))
    assert world.hangs == []
    assert (
        world.incidents[0].ending == f"a save is in progress: the stack shows {next(f for f in frames if 'save' in f)}"
    )
    world.watch(Story(meta=False).dead(100))
    (hang,) = world.hangs
    assert hang.reason.startswith("no byte of its save moved")
    assert len(world.of(StopAttempt)) == 1


def test_save_that_only_the_evidence_of_the_hang_shows_takes_the_hang_back() -> None:
    world = save(running(steps=100), step=100).watch(Story(meta=False).train(60))
    world.answer("capture_stacks").answer("capture_stacks", frames={"7": TORCH}).watch(Story(meta=False).dead(400))
    (hang,) = world.hangs
    assert (hang.open, hang.ending, world.word) == (
        False,
        f"a save is in progress: the stack shows {TORCH[0]}",
        "running",
    )
    assert world.of(StopAttempt) == []


def test_frame_of_a_save_counts_no_more_once_its_file_is_complete() -> None:
    """The trainer hangs in a barrier below the function that saved."""
    world = running(steps=100)
    world.answer("capture_stacks", frames={"7": ["barrier (dist.py:7)", "save_checkpoint (loop.py:49)"]})
    save(world, step=100).watch(Story(meta=False).dead(200))
    assert len(world.of(StopAttempt)) == 1


@pytest.mark.parametrize("name", ["out/step-80", "weights/epoch_2.safetensors"])
def test_hang_in_a_save_is_never_the_same_step_again(name: str) -> None:
    world = save(running(steps=40))
    for _ in range(3):
        world.watch(Story(meta=False, period_s=5.0, step=40).load(10).train(40))
        save(world, name, None, "created").watch(Story(meta=False).dead(700))
    assert len(world.hangs) == 3
    assert "same" not in " ".join(e.reason for e in world.of(GiveUp))
    assert len(world.of(StopAttempt)) == 3
    assert world.word != "given_up"


def test_crash_at_the_step_of_a_hang_in_a_save_is_another_cause() -> None:
    world = save(running(steps=40))
    save(world.watch(Story(meta=False).train(40)), "out/step-80", None, "created").watch(Story(meta=False).dead(700))
    assert crash(world).of(GiveUp) == []


def test_steps_that_go_on_beside_it_end_the_phase() -> None:
    world = save(running(steps=100), step=100)
    save(world, "out/step-200", None, "created").watch(Story(meta=False).train(20).dead(200))
    assert len(world.of(StopAttempt)) == 1


def test_line_of_the_last_step_that_is_read_late_does_not_end_it() -> None:
    world = save(running(steps=100), step=100).watch(Story(meta=False).train(30))
    save(world, "out/step-200", None, "created")
    line = "\rsteps: 1%| | 132/10260 [01:00<1:00:00, 2.50s/it, avr_loss=0.1]"
    world.see(LogChunk(t=world.t + 5.0, text=line)).watch(Story(meta=False).dead(500))
    assert world.of(StopAttempt) == []


def test_complete_file_ends_it_although_the_line_of_the_last_step_is_read_later() -> None:
    world = save(running(steps=100).watch(Story(meta=False).train(30)), "out/step-131", 131)
    line = "\rsteps: 1%| | 132/10260 [01:00<1:00:00, 2.50s/it, avr_loss=0.1]\nsaving checkpoint\n"
    world.see(LogChunk(t=world.t + 1.5, text=line)).watch(Story(meta=False).dead(200))
    assert len(world.of(StopAttempt)) == 1
