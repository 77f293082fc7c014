"""Whole stories in which decisions are performed: what is decided, in which order, and what people are notified of."""

from collections.abc import Callable

import pytest

from tests.builders import Story, World, judge
from tests.scenarios.goldens import check
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk
from trainwatch.core.model.progress import ToldLength
from trainwatch.core.model.settings import Restart, Settings

CUDA = "\nRuntimeError: CUDA error: unknown error\n"


def story(step: int = 0, steps: int = 60) -> Story:
    return Story(meta=False, period_s=5.0, step=step).load(20).train(steps)


def save(world: World, step: int) -> None:
    world.see(CheckpointEvent(t=world.t, path=f"out/step-{step}", event="complete", step=step, size_bytes=1e9))


def crash(world: World, text: str = CUDA, code: int = 1) -> None:
    world.see(LogChunk(t=world.t, text=text), Exit(t=world.t + 0.4, code=code, died_t=world.t + 0.1))


def crash_and_recovery() -> World:
    world = World().begin().watch(story())
    save(world, 40)
    crash(world)
    return world.watch(story(40, 30))


def hang_and_recovery() -> World:
    world = World().begin().watch(story(0, 100))
    save(world, 90)
    world.watch(Story(meta=False, period_s=5.0).dead(200))
    return world.watch(story(90, 30))


def crash_then_hang_then_finish() -> World:
    world = World().begin().watch(story())
    save(world, 50)
    crash(world)
    world.watch(story(50, 60))
    save(world, 100)
    world.watch(Story(meta=False, period_s=5.0).dead(200)).watch(story(100, 40))
    world.see(LogChunk(t=world.t + 1.0, text=Story(meta=False).bar(10260)))
    return world.see(Exit(t=world.t, code=0))


def out_of_memory_gives_up() -> World:
    world = World().begin().watch(story())
    for _ in range(2):
        crash(world, "\ntorch.cuda.OutOfMemoryError: CUDA out of memory\n")
        world.watch(story())
    return world


def budget_runs_out() -> World:
    world = World(judge(Settings(restart=Restart(max_restarts=2, backoff_s=(0.0, 30.0))))).begin()
    for n in range(3):
        world.watch(story(0, 60 - 2 * n)).wait(1.0)
        crash(world)
        world.wait(40.0)
    return world


def the_same_step_twice() -> World:
    world = World().begin().watch(story())
    save(world, 40)
    crash(world)
    crash(world.watch(story(40, 20)))
    return world


def torn_newest_checkpoint() -> World:
    world = World().begin().watch(story())
    save(world, 20)
    world.wait(1.0)
    save(world, 40)
    world.answer("verify_checkpoint", verdict="torn", reason="ends after 1.2 of 8.7 MB")
    crash(world)
    return world.watch(story(20, 20))


def only_checkpoint_is_torn() -> World:
    """``last.pt`` is written in place, and the trainer is killed in its first save."""
    world = World().begin().watch(story())
    world.see(
        CheckpointEvent(
            t=world.t,
            path="out/last.pt",
            event="created",
            verdict="torn",
            reason="is cut off",
            form="file",
            mtime=world.t,
        )
    )
    world.answer("copy_aside", folder="out.kept/20261128-085015")
    crash(world)
    return world.watch(story(0, 20))


def epoch_is_trained_again_after_a_resume() -> World:
    """Bars without a number, 60 steps each; the trainer resumes in its first epoch, from the beginning of that one."""
    told = ToldLength(epochs=4, epochs_by="--epochs 4")
    world = World(judge(told={"": told})).begin()

    def bars(first: int, last: int) -> None:
        for n in range(first, last + 1):
            text = f"\r{100 * n // 60:3d}%|###   | {n}/60 [00:{n:02d}<00:09,  1.00s/it, loss=0.5]"
            world.wait(1.0).see(LogChunk(t=world.t, text=text))

    bars(1, 42)
    save(world, 40)
    bars(43, 50)
    crash(world, "\n", -9)
    bars(1, 30)
    return world


def resume_is_ignored_by_the_trainer() -> World:
    world = World().begin().watch(story())
    save(world, 60)
    crash(world)
    return world.watch(story(0, 20))


def operator_stops_and_resumes() -> World:
    world = World().begin().watch(story())
    save(world, 60)
    return world.command("stop").wait(5.0).command("resume", checkpoint="out/step-60").watch(story(60, 10))


def operator_switches_profile_at_a_checkpoint() -> World:
    world = World(judge(profiles=("safe", "fast"))).begin().watch(story()).command("profile", profile="safe")
    save(world, 60)
    return world.watch(story(60, 10))


def operator_pauses() -> World:
    world = World().begin().watch(story()).command("pause")
    world.watch(Story(meta=False, period_s=5.0).go(900, states={"T": 9}, cpu=0.0))
    return world.command("resume").watch(story(60, 10))


def machine_sleeps() -> World:
    world = World().begin().watch(story(0, 100))
    return world.watch(Story(meta=False, period_s=5.0, step=100).nothing(7200).dead(60).train(20))


def done_but_does_not_exit() -> World:
    told = Story(meta=False, period_s=5.0, total=100)
    return World().begin().watch(told.load(20).train(60).finish().dead(700))


def unread(steps: int, step: int = 0) -> Story:
    """A training that prints its steps in a form that is not read."""
    told = Story(meta=False, period_s=5.0, step=step)
    return told.load(20).train(steps, line=lambda n: f"sweep {n} of 10260  q {4 - n / 1000:.3f}\n")


def steps_are_not_read() -> World:
    world = World().begin().watch(unread(40))
    world.see(CheckpointEvent(t=world.t, path="out/a.pt", event="complete", size_bytes=1e9))
    world.watch(unread(40, 40))
    crash(world)
    world.watch(unread(20, 40))
    world.see(CheckpointEvent(t=world.t, path="out/b.pt", event="complete", size_bytes=1e9))
    world.watch(unread(20, 60)).watch(story(80, 20))
    return world.watch(Story(meta=False, period_s=5.0).dead(200))


def saves_and_prints_nothing_that_counts() -> World:
    world = World().begin()
    for name in ("a", "b", "c"):
        world.watch(Story(meta=False, period_s=5.0).train(60, line=lambda _: "still at it\n"))
        world.see(CheckpointEvent(t=world.t, path=f"out/{name}.pt", event="complete", size_bytes=1e9))
    return world


FLOWS: tuple[Callable[[], World], ...] = (
    crash_and_recovery,
    hang_and_recovery,
    crash_then_hang_then_finish,
    out_of_memory_gives_up,
    budget_runs_out,
    the_same_step_twice,
    torn_newest_checkpoint,
    only_checkpoint_is_torn,
    epoch_is_trained_again_after_a_resume,
    resume_is_ignored_by_the_trainer,
    operator_stops_and_resumes,
    operator_switches_profile_at_a_checkpoint,
    operator_pauses,
    machine_sleeps,
    done_but_does_not_exit,
    steps_are_not_read,
    saves_and_prints_nothing_that_counts,
)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda f: f.__name__)
def test_flow(flow: Callable[[], World]) -> None:
    check(f"flow_{flow.__name__}", flow().text())
