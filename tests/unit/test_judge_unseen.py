"""Time in which nothing was seen: how much of it the training used, by the steps that were made in it."""

from typing import Any

import msgspec
import pytest

from tests.builders import Story, World, busy
from trainwatch.core.model.fact import NothingSeen
from trainwatch.core.model.observation import LogChunk, Start, Tick


def trained(world: World) -> list[tuple[float, float | None]]:
    """How long each time was, and what of it was used."""
    return [
        (round(each.until_t - each.since_t), None if each.trained_s is None else round(each.trained_s))
        for each in world.of(NothingSeen)
    ]


def asleep(world: World, seconds: float, steps: int) -> World:
    """Nothing is seen for so long; then the log has so many further steps (one takes 2.5 s)."""
    first = world.state.attempt.step or 0
    world.see(Tick(t=world.t + seconds))
    text = "".join(f"step {first + number}/10260 loss=0.1\n" for number in range(1, steps + 1))
    return world.see(LogChunk(t=world.t, text=text))


def plain(steps: int = 60) -> World:
    """A run whose log has a line a step."""
    story = Story(meta=False, period_s=5.0).load(10).train(steps, line=lambda step: f"step {step}/10260 loss=0.1\n")
    return World().begin().watch(story)


def on(world: World, steps: int) -> World:
    """It goes on for so many steps."""
    first = world.state.attempt.step or 0
    for number in range(1, steps + 1):
        world.see(LogChunk(t=world.t + 2.5, text=f"step {first + number}/10260 loss=0.1\n"))
    return world


def test_a_machine_that_slept_did_not_train() -> None:
    ((lasted, used),) = trained(on(asleep(plain(), 600.0, 1), 8))
    assert lasted == pytest.approx(600, abs=6)
    assert used is not None
    assert used <= 10


def test_a_training_that_went_on_unwatched_used_all_of_it() -> None:
    ((lasted, used),) = trained(on(asleep(plain(), 600.0, 238), 8))
    assert used == lasted


def test_without_a_known_pace_it_is_unknown() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(60))
    world.see(Tick(t=world.t + 600.0)).wait(20.0)
    ((_, used),) = trained(world)
    assert used is None


def test_it_is_told_once_the_log_was_read() -> None:
    world = asleep(plain(), 600.0, 1)
    assert trained(world) == []
    assert len(trained(on(world, 8))) == 1


def test_an_older_state_that_does_not_know_of_a_sleep_before_tells_nothing() -> None:
    ((_, used),) = trained(adopted(made=4))
    assert used is None


def adopted(made: int) -> World:
    """A new supervisor, whose state of the judge is a minute (24 steps) older than the last record, finds steps."""
    world = plain()
    step, seen_t = world.state.attempt.step or 0, world.t + 60.0
    world.state = msgspec.structs.replace(world.state, time=msgspec.structs.replace(world.state.time, t=seen_t))
    world.see(Start(t=seen_t + 600.0, attempt=1, pid=7, adopted=True))
    lines = "".join(f"step {number}/10260 loss=0.1\n" for number in range(1, step + made))
    return on(world.see(LogChunk(t=world.t, text=lines)), 8)


@pytest.mark.parametrize("shown", [{"gpu": busy, "cpu": 1.3}, {"cpu": 0.1}], ids=["works", "rests"])
def test_nothing_is_ended_while_the_log_cannot_be_read(shown: dict[str, Any]) -> None:
    """A supervisor that took the run over and could not read its log ended a trainer that trained, after 45 min."""
    world = plain()
    world.see(Start(t=world.t, attempt=1, pid=9, adopted=True), LogChunk(t=world.t, text="", unread=True))
    world.watch(Story(meta=False).go(6000.0, **shown))
    assert (world.word, world.hangs) == ("running", [])
    world.see(LogChunk(t=world.t, text="", unread=False))
    world.watch(Story(meta=False).go(60.0, **shown))
    assert world.hangs == []
    world.watch(Story(meta=False).go(2000.0, cpu=0.1))
    assert {hang.class_ for hang in world.hangs} == {"idle"}
