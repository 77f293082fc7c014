"""Which folder becomes an output folder of a run, from the checkpoints that it was seen to write."""

import dataclasses

from tests.builders import Story, World, judge, knowledge
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.model.fact import OutputKnown
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk, OutputSeen

FOLDER = "/data/results/000-DiT/checkpoints"


def running(mind: Judge | None = None, steps: int = 40) -> World:
    return World(mind).begin().watch(Story(meta=False, period_s=5.0).load(10).train(steps))


def told(folder: str) -> Judge:
    return Judge(dataclasses.replace(knowledge(), output_dir=folder))


def seen(world: World, name: str = "0000040.pt", *, folder: str = FOLDER, sure: bool = True, t: float = 0.0) -> World:
    at = t or world.t
    return world.see(
        OutputSeen(t=world.t, folder=folder, path=f"{folder}/{name}", evidence="open", sure=sure, mtime=at)
    )


def known(world: World) -> list[str]:
    return [fact.folder for fact in world.of(OutputKnown)]


def test_a_folder_becomes_known_by_a_checkpoint_that_the_run_wrote_while_it_trained() -> None:
    assert known(seen(running())) == [FOLDER]


def test_a_folder_is_known_once() -> None:
    assert known(seen(seen(running()), "0000050.pt")) == [FOLDER]


def test_a_second_attempt_adds_its_own_folder() -> None:
    world = seen(seen(running()), folder="/data/results/001-DiT/checkpoints")
    assert known(world) == [FOLDER, "/data/results/001-DiT/checkpoints"]


def test_a_model_that_is_written_before_the_first_step_is_no_output() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10))
    seen(world, "yolo11n.pt", folder="/work")
    world.watch(Story(meta=False, period_s=5.0).train(10))
    assert known(world) == []


def test_a_checkpoint_that_another_process_may_have_written_says_nothing_alone() -> None:
    world = seen(running(), sure=False)
    assert known(world) == []
    assert known(seen(world, "0000050.pt", sure=False, t=world.t + 1.0)) == [FOLDER]


def test_one_save_that_is_seen_twice_is_one_save() -> None:
    world = running()
    at = world.t
    assert known(seen(seen(world, sure=False, t=at), sure=False, t=at)) == []
    assert known(seen(world, sure=True, t=at)) == [FOLDER]


def test_a_run_without_steps_in_its_log_shows_its_folder_by_two_saves() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10))
    seen(world)
    assert known(world) == []
    assert known(seen(world, "0000050.pt", t=world.t + 1.0)) == [FOLDER]


def test_a_run_without_steps_in_its_log_shows_its_folder_at_its_end() -> None:
    world = seen(World().begin().watch(Story(meta=False, period_s=5.0).load(10)))
    world.see(Exit(t=world.t + 1.0, code=1, died_t=world.t + 1.0))
    assert known(world) == [FOLDER]


def test_a_folder_below_the_one_that_was_told_is_added() -> None:
    assert known(seen(running(told("/data/results")))) == [FOLDER]


def test_the_folder_that_was_told_is_not_found_again() -> None:
    assert known(seen(running(told(FOLDER)))) == []


def test_a_folder_elsewhere_counts_only_while_the_one_that_was_told_holds_no_checkpoint() -> None:
    assert known(seen(running(told("/data/out")))) == [FOLDER]
    world = running(told("/data/out"))
    world.see(CheckpointEvent(t=world.t, path="/data/out/last.pt", event="complete", step=30, mtime=world.t))
    assert known(seen(world)) == []


def test_a_folder_around_the_output_is_no_state_of_an_unknown_make() -> None:
    world = running(told("/data/results"))
    world.see(
        CheckpointEvent(
            t=world.t,
            path="/data/results/000-DiT",
            event="created",
            verdict="opaque",
            mtime=world.t,
            form="directory",
            understood=False,
            unknown_make=True,
        )
    )
    seen(world)
    assert [k.path for k in world.state.checkpoints.known] == []


def test_nothing_is_taken_while_no_attempt_runs() -> None:
    world = running()
    world.see(Exit(t=world.t + 1.0, code=0, died_t=world.t + 1.0))
    assert known(seen(world)) == []


def test_a_restart_resumes_from_the_newest_checkpoint_over_all_folders() -> None:
    world = seen(running(judge()))
    for number, folder in enumerate((FOLDER, "/data/results/001-DiT/checkpoints")):
        seen(world, folder=folder)
        path = f"{folder}/00000{40 + number}.pt"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=40 + number, mtime=world.t + number))
    world.see(LogChunk(t=world.t, text="\nRuntimeError: CUDA error: unknown error\n"))
    world.see(Exit(t=world.t + 2.0, code=1, died_t=world.t + 1.0))
    assert world.of(StartAttempt)[-1].resume_from == "/data/results/001-DiT/checkpoints/0000041.pt"
