"""After some good checkpoints the last remedy for GPU memory is taken back once."""

from typing import Any

import msgspec
import pytest

from tests.builders import World, judge
from tests.unit.test_derive_launch import preset as shipped
from tests.unit.test_judge_ramp import saves
from tests.unit.test_judge_recovery import crash, running, story
from tests.unit.test_judge_remedies import FAMILIES, OOM, PLAIN
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.decision import StartAttempt, StopAttempt
from trainwatch.core.model.fact import RemediesDropped, RemedyApplied
from trainwatch.core.model.settings import Remedies, Restart, Settings


def short_of_memory(after: int = 2, times: int = 1, values: dict[str, Any] | None = None, **more: Any) -> World:
    """A run with ``times`` remedies for GPU memory; its newest attempt trains."""
    settings = Settings(
        restart=Restart(max_restarts=9, backoff_s=(0.0,), act=more.pop("act", "all")),
        remedies=Remedies(step_back_after=after),
    )
    known = {**PLAIN, "train_batch_size": 8} if values is None else values
    mind = judge(
        settings,
        msgspec.structs.replace(shipped("kohya"), resume="state"),
        remedies=load_remedies(),
        values={"": known},
        families=FAMILIES,
        **more,
    )
    world = running(mind)
    for _ in range(times):
        crash(world, OOM).watch(story(5))
    assert len(world.of(RemedyApplied)) == times
    return world


def batches(world: World) -> list[int]:
    """The batch of each launch that was changed."""
    return [c.after for s in world.of(StartAttempt) for c in s.changes if c.key == "train_batch_size"]


def test_the_last_remedy_is_taken_back_once_and_stays_if_the_memory_is_short_again() -> None:
    world = short_of_memory(times=2)
    assert batches(world) == [4, 2]
    saves(world, 10)
    assert world.of(StopAttempt) == []
    saves(world, 20)
    assert "2 good checkpoints since half-batch: one step back, once" in world.of(StopAttempt)[-1].reason
    assert world.of(RemediesDropped)[-1].names == ("half-batch",)
    assert batches(world) == [4, 2, 4]
    kept = from_snapshot(to_snapshot(world.state))
    assert kept is not None
    assert kept.step_back.tried == ("half-batch",)
    stops = len(world.of(StopAttempt))
    crash(world.watch(story(5)), OOM).watch(story(5))
    assert batches(world)[-1] == 2
    saves(world, 30, 40, 50, 60)
    assert len(world.of(StopAttempt)) == stops, "once"


@pytest.mark.parametrize(
    "more",
    [
        {"after": 0},
        {"traits": frozenset({"wsl2"})},
        {"values": {"train_batch_size": 1}},
        {"times": 0},
        {"act": "notify", "times": 0},
    ],
    ids=["switched off", "WSL2", "the environment alone", "no remedy", "nothing without a person"],
)
def test_nothing_is_taken_back(more: dict[str, Any]) -> None:
    world = saves(short_of_memory(**more), 10, 20, 30)
    assert world.of(RemediesDropped) == []
    assert world.of(StopAttempt) == []
