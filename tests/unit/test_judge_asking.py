"""A trainer that waits at its terminal for an answer."""

from typing import Any

from tests.builders import World
from tests.unit.test_judge_recovery import running
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import LogChunk, ProcessSample


def process(t: float, asks: Any = None, **more: Any) -> ProcessSample:
    return ProcessSample(t=t, cpu_cores=0.0, read_bytes=1e8, write_bytes=1e7, procs=1, asks=asks, **more)


def wait(world: World, seconds: float, asks: Any) -> World:
    for _ in range(int(seconds / 5.0)):
        world.see(process(world.t + 5.0, asks))
    return world


def test_a_question_is_told_and_never_taken_for_a_hang() -> None:
    world = World().begin().see(LogChunk(t=1.0, text="loading\nUse wandb? (1/2/3) "))
    wait(world, 7200.0, "yes")
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [("stall", "asks", "warning", True)]
    assert world.incidents[0].reason == (
        'the trainer waits for an answer ("Use wandb? (1/2/3)"): give it with `trainwatch attach`'
    )
    assert [n.title for n in world.of(NotifyPeople)] == ["run: waits for an answer"]
    assert world.decisions == ["start_attempt"]
    assert world.word == "starting"


def test_after_the_answer_the_clock_begins_anew() -> None:
    world = wait(running(), 3600.0, "yes")
    wait(world, 60.0, None)
    assert [(i.class_, i.open, i.ending) for i in world.incidents] == [("asks", False, "it was answered")]
    wait(world, 1200.0, None)
    assert [i.kind for i in world.incidents][:2] == ["stall", "hang"]


def test_who_answers_at_once_is_not_disturbed() -> None:
    world = wait(wait(running(), 10.0, "yes"), 10.0, None)
    assert world.incidents == []


def test_where_the_kernel_says_less_the_last_line_must_ask() -> None:
    silent = wait(running().see(LogChunk(t=0.0, text="\nfetching the model\n")), 60.0, "maybe")
    assert silent.incidents == []
    asked = wait(running().see(LogChunk(t=0.0, text="\nOverwrite the cache [y/N]: ")), 60.0, "maybe")
    assert [i.class_ for i in asked.incidents] == ["asks"]
