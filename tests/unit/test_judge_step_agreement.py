"""Whether the number in a name is a step or an epoch, by the log."""

from tests.builders import Story, World
from trainwatch.core.judge.resume.checkpoint_index import KnownCheckpoint, find
from trainwatch.core.model.observation import CheckpointEvent


def saved(world: World, number: int) -> KnownCheckpoint:
    """A file with a number in its name, which the sensor takes for an epoch, as the judge knows it."""
    path = f"out/luca-{number:06d}.safetensors"
    world.see(CheckpointEvent(t=world.t, path=path, event="complete", epoch=number, size_bytes=1e6))
    known = find(world.state.checkpoints, path)
    assert known is not None
    return known


def test_a_number_that_the_log_is_at_is_a_step_if_the_log_tells_no_epoch() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(100))
    known = saved(world, 100)
    assert (known.step, known.epoch) == (100, None)

    # When the folder is listed again much later, it stays what it was
    world.watch(Story(meta=False, period_s=5.0).train(200))
    known = saved(world, 100)
    assert (known.step, known.epoch) == (100, None)


def test_a_number_that_the_log_is_not_at_stays_an_epoch() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(100))
    known = saved(world, 4)
    assert (known.step, known.epoch) == (None, 4)


def test_a_small_number_is_near_to_any_step_and_stays_an_epoch() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(2))
    known = saved(world, 2)
    assert (known.step, known.epoch) == (None, 2)
