"""Which folder becomes an output folder of a run, from the checkpoints that it was seen to write."""

import msgspec
import pytest

from tests.builders import Story, World, judge, knowledge
from tests.unit.test_judge_resume_listing import outcome
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.checkpoint import Whose
from trainwatch.core.model.decision import CopyAside, ListCheckpoints, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import MetricFilesKnown, OutputKnown
from trainwatch.core.model.observation import (
    CheckpointEvent,
    CheckpointValues,
    Command,
    Exit,
    LogChunk,
    MetricValues,
    OutputSeen,
    Start,
    Tick,
)
from trainwatch.core.model.preset import Preset, ResumeStyle, resume_support
from trainwatch.core.model.settings import Restart, Settings

FOLDER = "/data/results/000-DiT/checkpoints"


def running(mind: Judge | None = None, steps: int = 40) -> World:
    return World(mind).begin().watch(Story(meta=False, period_s=5.0).load(10).train(steps))


def told(folder: str) -> Judge:
    return Judge(msgspec.structs.replace(knowledge(), output_dir=folder))


def seen(world: World, name: str = "0000040.pt", *, folder: str = FOLDER, sure: bool = True, t: float = 0.0) -> World:
    at = t or world.t
    return world.see(
        OutputSeen(t=world.t, folder=folder, path=f"{folder}/{name}", evidence="open", sure=sure, mtime=at)
    )


def known(world: World) -> list[str]:
    return [fact.folder for fact in world.of(OutputKnown)]


@pytest.mark.parametrize(("output", "found"), [("", [FOLDER]), (FOLDER, []), ("/data/out", [FOLDER])])
def test_a_save_of_the_training_makes_its_folder_known_unless_it_was_told(output: str, found: list[str]) -> None:
    assert known(seen(running(told(output) if output else None))) == found


def test_a_model_that_is_written_before_the_first_step_is_no_output() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10))
    seen(world, "yolo11n.pt", folder="/work")
    world.watch(Story(meta=False, period_s=5.0).train(10))
    assert known(world) == []


def test_the_first_unsure_save_is_told_with_the_option_that_names_the_folder() -> None:
    world = seen(seen(running(), sure=False), "0000050.pt", sure=False)
    [notice] = [n for n in world.of(NotifyPeople) if FOLDER in n.body]
    assert "--output-dir" in notice.body
    assert [i.class_ for i in world.incidents if i.open] == ["unsure_output"]
    seen(world, "0000060.pt", sure=True)
    assert not any(i.open for i in world.incidents)


def test_a_folder_in_which_another_process_was_seen_writing_holds_nothing() -> None:
    world = seen(running(judge()), sure=False)
    world.see(OutputSeen(t=world.t, folder=FOLDER, path=f"{FOLDER}/0000050.pt", evidence="", others=True))
    assert not any(i.open for i in world.incidents)
    crashed(world)
    assert len(world.of(StartAttempt)) == 2


@pytest.mark.parametrize(
    ("line", "sure"),
    [
        (f"saved {FOLDER}/0000040.pt", True),
        ("Saving to ./results/000-DiT/checkpoints/0000040.pt.", True),
        ("wrote 'results/000-DiT/checkpoints/0000040.pt'", True),
        ("saved 0000040.pt", False),
        ("wrote other/results/000-DiT/checkpoints/0000040.pt", False),
        (f"saved {FOLDER}/0000040.pt.ema", False),
        (f"reads {FOLDER}", False),
    ],
)
def test_the_log_of_the_run_names_its_save(line: str, sure: bool) -> None:
    for line_is_first in (True, False):
        world = running(Judge(msgspec.structs.replace(knowledge(), cwd="/data")))
        if line_is_first:
            world.see(LogChunk(t=world.t, text=f"{line}\n"))
        seen(world, sure=False)
        if not line_is_first:
            world.see(LogChunk(t=world.t + 1.0, text=f"{line}\n"))
        assert known(world) == ([FOLDER] if sure else [])


@pytest.mark.parametrize(("whose", "resumed"), [("other", "a_30.pt"), ("unsure", "a_30.pt"), (None, "b_40.pt")])
def test_in_a_folder_that_others_use_only_saves_of_the_run_count(whose: Whose | None, resumed: str) -> None:
    world = running(told("/data/out") if whose is None else judge())
    for name, by in (("a_30.pt", None), ("b_40.pt", whose)):
        step = int(name[2:4])
        path = f"/data/out/{name}"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=step, mtime=world.t + step, whose=by))
    crashed(world)
    assert world.of(StartAttempt)[-1].resume_from == f"/data/out/{resumed}"


@pytest.mark.parametrize(("step", "whose"), [(80, "other"), (80, "unsure"), (20, None), (60, None)])
def test_the_nan_of_a_save_of_another_process_ends_nothing(step: int, whose: Whose | None) -> None:
    """As seen by its process, by who works there, by a number that the run has passed, or by finite losses since."""
    world = World(told("/data/out")).begin()
    for at in range(1, 120):
        world.see(LogChunk(t=world.t + 1.0, text=f"\nstep {at}/900 loss: {1.0 / at:.4f}"))
        saved, by, names = {40: (40, None, ()), 60 if step == 60 else 80: (step, whose, ("w",))}.get(at, (0, None, ()))
        if saved:
            path = f"/data/out/a_{saved}.pt"
            world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=saved, mtime=world.t, whose=by))
            world.see(CheckpointValues(t=world.t, path=path, mtime=world.t, nonfinite=names, nan=names))
    assert (world.word, world.of(StopAttempt)) == ("running", [])
    is_told = whose == "unsure" or step == 20
    class_ = "other_trainer" if is_told else "nan_saved"
    assert [(i.class_, i.kind) for i in world.incidents] == [(class_, "checkpoint")] * (whose != "other")
    crashed(world)
    assert world.of(StartAttempt)[-1].resume_from == "/data/out/a_40.pt"


@pytest.mark.parametrize(("whose", "after", "resumed"), [(None, 640, 640), (None, 100, 140), ("run", 640, 140)])
def test_a_save_of_a_step_that_the_run_has_passed_is_the_runs_if_it_was_seen_or_its_log_goes_back(
    whose: Whose | None, after: int, resumed: int
) -> None:
    """A trainer that goes back by itself prints nothing about it, and its next line comes after its next save."""
    world = World(told("/data/out")).begin()

    def save(step: int, t: float) -> None:
        path = f"/data/out/a_{step}.pt"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=step, mtime=t, whose=whose))

    for at in range(20, 660, 20):
        world.see(LogChunk(t=world.t + 2.0, text=f"\nstep {at}/900 loss: {1.0 / at:.4f}"))
        save(at, world.t)
    t = world.see(Tick(t=world.t + 2.0)).t
    save(140, t)
    assert bool(world.incidents) == (whose is None)
    world.see(LogChunk(t=world.t + 2.0, text=f"\nstep {after + 20}/900 loss: 0.0100"))
    save(140, t)
    crashed(world)
    assert world.of(StartAttempt)[-1].resume_from == f"/data/out/a_{resumed}.pt"


def test_a_trainer_that_goes_back_by_itself_from_a_save_with_nan_is_not_ended() -> None:
    world = World(told("/data/out")).begin()
    for at in (*range(20, 420, 20), *range(220, 320, 20)):
        world.see(LogChunk(t=world.t + 2.0, text=f"\nstep {at}/900 loss: {1.0 / at:.4f}"))
        path, t, names = f"/data/out/a_{at}.pt", world.t, ("w",) if at >= 360 else ()
        world.see(CheckpointEvent(t=t, path=path, event="complete", step=at, mtime=t, whose="run"))
        world.see(CheckpointValues(t=t + 0.5, path=path, mtime=t, nonfinite=names, nan=names))
    assert (world.word, world.of(StopAttempt)) == ("running", [])
    crashed(world)
    assert world.of(StartAttempt)[-1].resume_from == "/data/out/a_300.pt"


@pytest.mark.parametrize("every", [100, 40])
def test_a_log_that_is_printed_more_rarely_than_is_saved_tells_no_accumulation(every: int) -> None:
    """Step 640 of 1000, a line each 100 steps: taken as an accumulation of 5, it was "step 3200 of 1000", finished."""
    world = World(told("/data/out")).begin()
    for at in range(20, 660, 20):
        t = world.t + 2.0
        world.see(LogChunk(t=t, text=f"\nstep {at}/1000 loss: {1.0 / at:.4f}") if at % every == 0 else Tick(t=t))
        path = f"/data/out/a_{at}.pt"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=at, mtime=world.t))
    world.see(LogChunk(t=world.t + 1.0, text="\nRuntimeError: CUDA error: unknown error\n"))
    world.see(Exit(t=world.t + 1.0, code=1, died_t=world.t + 1.0))
    assert (world.state.attempt.stride, world.of(StartAttempt)[-1].resume_from) == (1, "/data/out/a_640.pt")


def test_a_run_without_steps_in_its_log_shows_its_folder_by_two_saves() -> None:
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10))
    seen(world)
    assert known(world) == []
    assert known(seen(world, "0000050.pt", t=world.t + 1.0)) == [FOLDER]


def test_a_folder_elsewhere_does_not_count_if_the_one_that_was_told_holds_a_checkpoint() -> None:
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
    crashed(world)
    assert (world.attempt, [i.class_ for i in world.incidents]) == (2, ["unknown"])


def test_a_restart_resumes_from_the_newest_checkpoint_over_all_folders() -> None:
    world = seen(running(judge()))
    for number, folder in enumerate((FOLDER, "/data/results/001-DiT/checkpoints")):
        seen(world, folder=folder)
        path = f"{folder}/00000{40 + number}.pt"
        world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=40 + number, mtime=world.t + number))
    world.see(LogChunk(t=world.t, text="\nRuntimeError: CUDA error: unknown error\n"))
    world.see(Exit(t=world.t + 2.0, code=1, died_t=world.t + 1.0))
    assert world.of(StartAttempt)[-1].resume_from == "/data/results/001-DiT/checkpoints/0000041.pt"


def by_itself() -> Judge:
    style = ResumeStyle(by_itself=True, found="train.py:9")
    preset = Preset(name="generic", resume_file=style, resume_directory=style)
    return Judge(msgspec.structs.replace(knowledge(preset=preset), resume_support=resume_support(preset, ())))


def crashed(world: World) -> World:
    return world.see(Exit(t=world.t + 1.0, signal=9, died_t=world.t + 1.0))


def searching(mind: Judge | None = None) -> World:
    """A run that was killed, while its folders are searched for what it saved."""
    world = running(mind if mind is not None else judge())
    world.silent.add("list_checkpoints")
    return crashed(world)


def over(world: World) -> World:
    """The search is over."""
    world.silent.clear()
    return outcome(world, ListCheckpoints)


def test_a_folder_that_is_found_only_after_the_end_is_listed_before_a_restart_resumes_from_it() -> None:
    world = seen(searching())
    assert known(world) == [FOLDER]
    path = f"{FOLDER}/0000040.pt"
    before = len(world.of(ListCheckpoints))
    world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=40, mtime=world.t))
    over(world)
    assert len(world.of(ListCheckpoints)) > before
    assert world.of(StartAttempt)[-1].resume_from == path


def test_nothing_begins_anew_over_what_the_run_may_have_saved() -> None:
    world = over(seen(searching(), sure=False))
    assert (len(world.of(StartAttempt)), world.word) == (1, "stopped")
    notice = world.of(NotifyPeople)[-1]
    assert "resume --from CHECKPOINT" in notice.body, "no ready command that may name a file of a neighbour"
    assert "--fresh" in notice.body


def test_a_held_run_goes_on_from_what_a_person_names() -> None:
    live = seen(running(judge()), sure=False).command("restart").command("profile", profile="safe", now=True)
    assert live.of(StopAttempt) == [], "nothing is ended for a start that would be held"
    world = over(seen(searching(), sure=False))
    reply = world.judge.answer(world.state, Command(t=world.t, verb="resume"))  # refused, not accepted and held again
    assert (reply.ok, "`trainwatch resume --from CHECKPOINT`" in reply.message, "--fresh" in reply.message) == (0, 1, 1)
    path = f"{FOLDER}/0000040.pt"
    world.command("resume", checkpoint=path)
    assert world.of(StartAttempt)[-1].resume_from == path


def test_what_may_be_of_another_run_is_not_copied_and_holds_the_run() -> None:
    world = seen(searching(judge(Settings(restart=Restart(if_not_understood="copy_and_restart")))), sure=False)
    over(world)
    assert (len(world.of(CopyAside)), world.word) == (0, "stopped")


def test_a_trainer_that_resumes_by_itself_is_started_again_though_it_is_not_sure_who_saved() -> None:
    world = over(seen(searching(by_itself()), sure=False))
    assert known(world) == []
    assert len(world.of(StartAttempt)) == 2


def test_a_save_before_the_first_line_of_an_epoch_is_one_of_the_training() -> None:
    world = World(judge(created_wall=1000.0)).begin()
    world.see(LogChunk(t=60.0, text="epoch 1/10 done, loss 0.51\n"))
    assert known(crashed(seen(world, t=1058.0))) == [FOLDER]


def test_a_save_from_before_this_supervisor_is_found_though_the_log_is_read_only_now() -> None:
    world = World(judge(created_wall=1000.0))
    world.see(Start(t=500.0, attempt=1, pid=7, adopted=True))
    world.watch(Story(meta=False, period_s=0.1).train(40))
    assert known(crashed(seen(world, t=1300.0))) == [FOLDER]


def read_late(lines: int, saved_t: float) -> World:
    """An attempt of a busy machine: it saved and died before its log was read, and before its start was seen."""
    world = World(judge(created_wall=1000.0)).begin()
    text = "".join(f"step {n}/60 loss {1 / n:.4f}\n" for n in range(1, lines + 1))
    world.see(LogChunk(t=50.0, text=text))
    return crashed(seen(world, t=1000.0 + saved_t))


def test_a_save_that_is_older_than_the_reading_of_its_log_is_one_of_the_training() -> None:
    assert known(read_late(10, 49.0)) == [FOLDER]
    assert known(read_late(10, 0.0)) == [FOLDER]


def test_what_an_earlier_attempt_was_seen_to_write_says_nothing_of_this_one() -> None:
    world = crashed(seen(running(judge()), sure=False))
    world.command("resume", fresh=True)
    assert world.attempt == 2
    crashed(world.watch(Story(meta=False, period_s=5.0).load(10).train(10)))
    assert world.attempt == 3


def test_where_files_of_metrics_are_is_told_once() -> None:
    world = World().begin()
    found = [
        MetricValues(t=1.0, values={"loss": 1.0}, source="tensorboard", folder=folder)
        for folder in ("", "out", "out", "b")
    ]
    world.see(*found)
    told = [entry for _, entry in world.entries if isinstance(entry, MetricFilesKnown)]
    assert [(fact.folder, fact.source) for fact in told] == [("out", "tensorboard"), ("b", "tensorboard")]


def test_what_a_restarted_attempt_writes_before_its_first_step_is_no_output() -> None:
    world = crashed(running(judge()))
    assert world.attempt == 2
    assert known(crashed(seen(world))) == []
