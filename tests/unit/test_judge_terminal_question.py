"""A trainer that waits at its terminal for an answer."""

from typing import Any

from tests.builders import Story, World
from tests.unit.test_judge_recovery import running
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import LogChunk, ProcessSample


def process(t: float, asks: Any = None, **more: Any) -> ProcessSample:
    return ProcessSample(t=t, cpu_cores=0.0, read_bytes=1e8, write_bytes=1e7, procs=1, asks=asks, **more)


def wait(world: World, seconds: float, asks: Any) -> World:
    for _ in range(int(seconds / 5.0)):
        world.see(process(world.t + 5.0, asks))
    return world


def test_question_at_the_terminal_is_reported_and_is_no_hang() -> None:
    world = World().begin().see(LogChunk(t=1.0, text="loading\nUse wandb? (1/2/3) "))
    wait(world, 7200.0, "yes")
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [("stall", "asks", "warning", True)]
    assert world.incidents[0].reason == (
        'the trainer waits for an answer ("Use wandb? (1/2/3)"): give it with `trainwatch attach`'
    )
    assert [n.title for n in world.of(NotifyPeople)] == ["run: waits for an answer"]
    assert world.decisions == ["start_attempt"]
    assert world.word == "starting"


def test_step_clock_restarts_after_the_answer() -> None:
    world = wait(running(), 3600.0, "yes")
    wait(world, 60.0, None)
    assert [(i.class_, i.open, i.ending) for i in world.incidents] == [("asks", False, "it was answered")]
    wait(world, 1200.0, None)
    assert [i.kind for i in world.incidents][:3] == ["stall", "quiet", "hang"]


def test_training_that_goes_on_beside_a_question_can_hang() -> None:
    world = wait(running(), 20.0, "yes")
    world.see(LogChunk(t=world.t, text=Story(meta=False).bar(400)))
    wait(world, 600.0, "yes")
    assert [(i.class_, i.ending) for i in world.incidents[:1]] == [("asks", "training advances")]
    assert [i.kind for i in world.incidents[1:3]] == ["quiet", "hang"]


def test_question_that_is_answered_at_once_is_not_reported() -> None:
    world = wait(wait(running(), 10.0, "yes"), 10.0, None)
    assert world.incidents == []


def test_last_log_line_must_end_like_a_prompt_if_the_kernel_is_not_sure() -> None:
    silent = wait(running().see(LogChunk(t=0.0, text="\nfetching the model\n")), 60.0, "maybe")
    assert silent.incidents == []
    asked = wait(running().see(LogChunk(t=0.0, text="\nOverwrite the cache [y/N]: ")), 60.0, "maybe")
    assert [i.class_ for i in asked.incidents] == ["asks"]
