"""NaN in a checkpoint and the end of the trainer: whichever is seen first, what the attempt ended of is the same."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_nan import checkpoint, noisy, saving, steps, told, values
from tests.unit.test_judge_recovery import CUDA
from trainwatch.core.judge.scales import LASTS_S, MINUTE_S
from trainwatch.core.model.decision import StartAttempt, StopAttempt
from trainwatch.core.model.observation import Exit, LogChunk

SHORT_S = 2.0
"""Between the two sights of one moment."""
Sight = Callable[[World], World]


def nan_found(world: World) -> World:
    """The values of the newest checkpoint are read."""
    newest = next(k for k in world.state.saved.checkpoints.known if k.path == "out/step-60")
    return values(world, 60, newest.mtime or 0.0, ("unet.w",), ("unet.w",))


def error_printed(world: World) -> World:
    return world.see(LogChunk(t=world.t, text=CUDA))


def process_ended(world: World) -> World:
    return world.see(Exit(t=world.t, code=1, died_t=world.t - 0.1))


def saved() -> World:
    """A run with a finite checkpoint of step 40, and one of step 60 of which the values were not read yet."""
    return checkpoint(steps(saving(), 20), 60, read=False)


def troubles(world: World) -> list[tuple[str, str]]:
    return [(i.kind, i.class_) for i in world.incidents]


ORDERS: dict[str, tuple[Sight, ...]] = {
    "NaN, error, end": (nan_found, error_printed, process_ended),
    "error, NaN, end": (error_printed, nan_found, process_ended),
    "error, end, NaN": (error_printed, process_ended, nan_found),
}


def seen_in(order: tuple[Sight, ...], between_s: float = SHORT_S) -> World:
    """A world that saw these things in this order. A restart waits for its resume point to be listed meanwhile."""
    world = saved()
    world.answer("verify_checkpoint", ok=False, verdict="nonfinite", reason="NaN", nonfinite=["unet.w"], nan=["unet.w"])
    if order[-1] is process_ended:
        world.answers.clear()  # its values are known before the restart looks: nothing is left to verify
    for number, sight in enumerate(order):
        sight(world if number == 0 else world.wait(between_s))
    return world.wait(MINUTE_S)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_crash_is_its_own_cause_whenever_the_nan_in_its_last_save_is_read(order: tuple[Sight, ...]) -> None:
    world = seen_in(order)
    assert troubles(world) == [("crash", "cuda_unknown_error"), ("checkpoint", "nonfinite")]
    assert [i.ending for i in world.incidents if i.kind == "checkpoint"] == ["skipped"]
    assert [cause.class_ for cause in world.state.policy.history] == ["cuda_unknown_error"]
    assert world.of(StopAttempt) == [], "nobody ended it"
    assert [start.resume_from for start in world.of(StartAttempt)] == [None, "out/step-40"]


@pytest.mark.parametrize("order", [(nan_found, process_ended), (process_ended, nan_found)], ids=["NaN", "end"])
def test_an_end_without_a_word_is_not_put_down_to_the_nan_in_either_order(order: tuple[Sight, ...]) -> None:
    world = seen_in(order)
    assert [class_ for kind, class_ in troubles(world) if kind == "crash"] == ["unknown"]
    assert world.of(StopAttempt) == []
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"


@pytest.mark.parametrize("order", [(nan_found, error_printed), (error_printed, nan_found)], ids=["NaN", "error"])
def test_a_trainer_whose_log_shows_its_failure_has_a_minute_to_end(order: tuple[Sight, ...]) -> None:
    world = saved()
    for sight in order:
        sight(world)
    world.wait(MINUTE_S - 1.0)
    assert world.of(StopAttempt) == []
    assert troubles(process_ended(world))[0] == ("crash", "cuda_unknown_error")


def test_a_trainer_that_goes_on_is_ended_for_its_nan_unless_its_losses_are_finite() -> None:
    world = nan_found(saved()).wait(LASTS_S - 1.0)
    assert world.of(StopAttempt) == []
    told(world, "", "", shape="step {}{}\n")
    assert troubles(world) == [("crash", "nan_loss")]
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    world = told(nan_found(saved()).wait(LASTS_S - 1.0), *noisy(2))
    assert (troubles(world), world.of(StopAttempt)) == ([("checkpoint", "nan_saved")], [])


@pytest.mark.parametrize(
    ("loss", "classes"), [("0.41", ["nan_saved"]), ("nan", ["nan", "nan_loss"]), (None, ["nan_loss"])]
)
def test_where_a_loss_is_printed_now_and_then_the_next_one_is_waited_for(loss: str | None, classes: list[str]) -> None:
    """A line each 100 steps: ten seconds after the save none can have come. A buffer was reset to Inf by design."""
    world = World(judge(created_wall=1000.0)).begin()
    for n in range(1, 7):
        told(world.wait(119.0, 7.0), f"0.5{n}", start=100 * n)
        if n in {4, 6}:
            checkpoint(world, 100 * n, nonfinite=() if n == 4 else ["metric.min"], nan=False)
    assert (troubles(world), world.of(StopAttempt)) == ([], [])
    told(world.wait(100.0, 7.0), loss, start=700) if loss else world.wait(240.0, 7.0)
    assert [class_ for _, class_ in troubles(world.wait(60.0, 7.0))] == classes


def test_a_trainer_that_stays_after_its_error_is_ended_for_its_nan_after_a_minute() -> None:
    world = nan_found(error_printed(saved())).wait(MINUTE_S)
    assert troubles(world) == [("crash", "nan_loss")]
    assert len(world.of(StopAttempt)) == 1


def test_an_earlier_checkpoint_that_is_read_meanwhile_and_has_the_same_nan_ends_nothing() -> None:
    world = nan_found(saved())
    early: dict[str, Any] = {k.path: k.mtime for k in world.state.saved.checkpoints.known}
    values(world, 40, early["out/step-40"], ("unet.w",), ("unet.w",)).wait(MINUTE_S)
    assert troubles(world) == []
    assert world.word == "running"


def test_a_suspend_of_the_machine_is_no_time_in_which_the_trainer_lived_on() -> None:
    world = nan_found(saved())
    world.t += 3600.0
    assert troubles(process_ended(error_printed(world)))[0] == ("crash", "cuda_unknown_error")
