"""A checkpoint that a busy machine shows late: its place is that of the log when it was written, or it is not known.

Seen: ``checkpoint-10``, reported when the log was at step 20. It counted as one of step 20, and no step as lost.
"""

from collections.abc import Iterable

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_branches import ANYWHERE, GENERIC
from tests.unit.test_judge_epoch_counters import labelled
from tests.unit.test_judge_recovery import quick
from trainwatch.core.judge.resume.checkpoint_index import KnownCheckpoint
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk, Start
from trainwatch.core.model.preset import resume_support
from trainwatch.core.model.run import Incident

CREATED = 1e9


def run() -> World:
    support = resume_support(GENERIC, ANYWHERE)
    return World(judge(quick(backoff_s=(0.0,)), GENERIC, resume_support=support, created_wall=CREATED)).begin()


def train(world: World, steps: Iterable[int]) -> World:
    """A step a second."""
    for step in steps:
        world.wait(1.0).see(LogChunk(t=world.t, text=f"step {step} loss {1 / step:.4f}\n"))
    return world


def see_save(world: World, written_t: float, path: str = "out/last.pt", step: int | None = None) -> KnownCheckpoint:
    mtime = CREATED + written_t
    event = CheckpointEvent(t=world.t, path=path, event="complete", step=step, size_bytes=1e6, mtime=mtime, form="file")
    return world.see(event).state.saved.checkpoints.known[-1]


def resumed(world: World, steps: Iterable[int]) -> tuple[int | None, Incident]:
    """What the next attempt was told to have been done, and the crash after that attempt had gone on."""
    world.see(Exit(t=world.t + 0.5, signal=9)).wait(2.0)
    train(world, steps)
    return world.of(StartAttempt)[-1].steps_done, next(i for i in world.incidents if i.kind == "crash")


def test_a_checkpoint_without_a_step_that_is_seen_late_is_at_the_step_of_its_writing() -> None:
    world = train(run(), range(1, 21))
    written_t = world.t + 0.2
    known = see_save(train(world, range(21, 51)), written_t)
    assert (known.step, known.spread) == (None, 0)
    assert known.position in {20, 21}

    done, crash = resumed(world, range(known.position + 1, known.position + 12))
    assert (done, crash.lost_steps) == (known.position, 50 - known.position)


def test_a_checkpoint_that_is_seen_late_does_not_make_two_printed_steps_of_one() -> None:
    """A fast trainer was at 28 when its checkpoint of step 20 was seen: the next attempt was told that 28 were done."""
    world = train(run(), range(1, 11))
    see_save(world, world.t + 0.2, "out/step-10.pt", 10)
    written_t = train(world, range(11, 21)).t + 0.2
    assert see_save(train(world, range(21, 29)), written_t, "out/step-20.pt", 20).position == 20
    done, crash = resumed(world, range(21, 29))
    assert (done, crash.lost_steps) == (20, 8)


def test_checkpoints_of_before_the_first_look_at_the_log_make_no_two_printed_steps_of_one() -> None:
    """Adopted at step 600 on a busy machine: a minute later each save was one of four times its step."""
    world = run().wait(100.0)
    world = train(world.see(Start(t=world.t, attempt=1, pid=4243, adopted=True)), range(600, 603))
    for number, step in enumerate((530, 560, 590)):
        see_save(train(world, range(603 + 120 * number, 723 + 120 * number, 10)), 40.0 + number, f"out/{step}.pt", step)
    written_t = train(world, range(961, 971)).t
    see_save(world, written_t, "out/970.pt", 970)
    _, crash = resumed(world, range(971, 980))
    assert (crash.resumed_step, crash.lost_steps) == (970, 0)


@pytest.mark.parametrize("dated", [False, True], ids=["", "dated as if it had grown evenly"])
def test_where_the_log_was_not_read_meanwhile_the_step_is_not_known(dated: bool) -> None:
    world = train(run(), range(1, 31))
    since_t, written_t = world.t, world.t + 5.0
    world.wait(30.0)
    for step in range(31, 61):
        at = since_t + step - 30 if dated else None
        world.see(LogChunk(t=world.t, text=f"step {step} loss {1 / step:.4f}\n", written_t=at))
    known = see_save(world, written_t)
    assert (known.position, known.latest) == (30, 60)

    done, crash = resumed(world, range(41, 56))
    assert (done, crash.lost_steps) == (30, None)
    assert "lost" not in str(crash.ending)


def test_one_that_is_seen_an_epoch_later_holds_the_step_of_the_run_and_not_of_the_epoch() -> None:
    """Bars of ten steps: step 10 of the run is the end of an epoch, as step 20 is, at which it is seen."""
    world = run()
    for step in range(1, 21):
        epoch, n = divmod(step - 1, 10)
        world.wait(1.0).see(LogChunk(t=world.t, text=labelled(epoch, n + 1, 10) + ("\n" if n == 9 else "")))
    known = see_save(world, world.t - 9.9, "out/checkpoint-10", 10)
    assert (known.step, known.of_epoch, known.position) == (10, False, 10)

    world.see(Exit(t=world.t + 0.5, signal=9)).wait(2.0)
    assert world.of(StartAttempt)[-1].steps_done == 10


def test_one_that_was_written_before_the_log_was_first_read_holds_the_step_of_the_run() -> None:
    """A trainer that made two epochs of ten steps within a second was started from step 0 after a crash."""
    text = "".join(labelled(epoch, n, 10) + ("\n" if n == 10 else "") for epoch in (0, 1) for n in range(1, 11))
    world = run().wait(1.0)
    world.see(LogChunk(t=world.t, text=text))
    known = see_save(world, world.t - 0.3, "out/checkpoint-10", 10)
    assert (known.step, known.of_epoch, known.position) == (10, False, 10)


def test_the_number_of_an_epoch_is_no_step_of_accumulated_counts() -> None:
    """Epochs of 100 steps: an end 80 steps after the one before was "at the same step again", and gave the run up."""
    world = train(run(), range(1, 101))
    see_save(world, world.t - 0.1, "out/checkpoint_1.pt", 1)
    done, crash = resumed(train(world, range(101, 111)), range(101, 191))
    assert (done, crash.lost_steps, world.state.attempt.stride) == (100, 10, 1)
    world.see(Exit(t=world.t + 0.5, signal=9)).wait(2.0)
    assert len(world.of(StartAttempt)) == 3
