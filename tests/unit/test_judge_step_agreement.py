"""Whether the step in a checkpoint agrees with the steps in the log."""

import pytest

from tests.builders import Story, World
from trainwatch.core.judge.attempt_progress import AttemptProgress
from trainwatch.core.judge.resume.agreement import disagreement
from trainwatch.core.judge.resume.checkpoint_index import KnownCheckpoint, find
from trainwatch.core.model.observation import CheckpointEvent, LogChunk


def at(position: int, saved_at: tuple[int, int] | None, **more: object) -> AttemptProgress:
    return AttemptProgress(position=position, offset=0, step=position, saved_at=saved_at, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempt", "stored"),
    [
        pytest.param(at(1005, (505, 500)), 1000, id="noticed a little late"),
        pytest.param(at(1000, None), 4000, id="one save alone says nothing about units"),
        pytest.param(at(2000, (1000, 250), stride=4), 500, id="the bar counts batches"),
        pytest.param(at(20, (10, 12_500)), 25_000, id="the log counts epochs"),
        pytest.param(at(950, (450, 500), printed_every=50), 1000, id="the log prints every fiftieth step"),
        pytest.param(at(1000, (998, 998)), 998, id="the final one is the same state again"),
        pytest.param(at(1000, (500, 500), adopted=True), 9000, id="an adopted log is still being read"),
        pytest.param(AttemptProgress(), 100, id="no step is known"),
        pytest.param(at(1000, (500, 0)), 900, id="the first save was made before any step"),
        pytest.param(at(2000, (1000, 900)), 1100, id="a counter that falls behind is another counter"),
    ],
)
def test_stored_step_that_agrees_is_not_reported(attempt: AttemptProgress, stored: int) -> None:
    assert disagreement(attempt, stored) is None


@pytest.mark.parametrize(
    ("attempt", "stored", "says"),
    [
        (at(1000, (500, 500)), 6000, "it holds step 6000, but the log is only at 1000"),
        (at(1000, (500, 500)), 500, "no more than one before it (500), while the log advanced by 500"),
        (at(1000, (500, 500)), 3, "it holds step 3, no more than one before it"),
    ],
)
def test_stored_step_that_disagrees_is_described(attempt: AttemptProgress, stored: int, says: str) -> None:
    assert says in (disagreement(attempt, stored) or "")


def test_jobs_of_a_sweep_that_count_anew_disagree_with_nothing() -> None:
    world = World().begin().watch(Story(meta=False).load(10))
    for job in range(3):
        for step in range(10, 301, 10):
            world.wait(1.0).see(LogChunk(t=world.t, text=f"lr=0.{job} step {step}/300 loss=0.2\n"))
            if step in {110, 210, 300}:
                path, stored = f"multirun/{job}/model_{step // 100}.pt", step // 100 * 100
                world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=stored, size_bytes=1e6))
    assert [i.reason for i in world.incidents] == []


def test_disagreement_is_information_and_notifies_nobody() -> None:
    # Given a training whose second save holds the state of the first
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(100))
    world.see(CheckpointEvent(t=world.t, path="out/checkpoint-100", event="complete", step=100, size_bytes=1e6))
    world.watch(Story(meta=False, period_s=5.0).train(200))
    world.see(CheckpointEvent(t=world.t, path="out/checkpoint-200", event="complete", step=100, size_bytes=1e6))

    (incident,) = world.incidents
    assert (incident.kind, incident.class_, incident.severity, incident.open) == (
        "checkpoint", "step_mismatch", "info", False,
    )  # fmt: skip
    assert incident.reason.startswith("checkpoint-200 and the log disagree: it holds step 100")
    assert world.word == "running"


def test_steps_faster_than_the_log_is_read_prove_nothing() -> None:
    attempt = AttemptProgress(number=1, step=14, position=14, offset=0, saved_at=(10, 10))
    assert disagreement(attempt, 20) is not None
    assert disagreement(attempt, 20, step_s=0.025) is None
    assert disagreement(attempt, 20, step_s=0.0) is None
    assert disagreement(attempt, 20, step_s=2.5) is not None


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
