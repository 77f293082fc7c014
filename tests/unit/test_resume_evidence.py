"""What shows whether a resume was taken if the trainer counts its steps from the beginning again."""

import math

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_branches import notes
from tests.unit.test_judge_recovery import crash, quick, save
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import CopyAside, GiveUp, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import ProgressMade
from trainwatch.core.model.observation import CheckpointEvent, LogChunk

FORMS = {
    "loss": "step {n}/400 loss {v:.4f}\n",
    "xgboost": "[{n}]\ttrain-rmse:{v:.5f}\n",
    "rounds": "round {n}/400 | accuracy {r:.4f} | 12.1 ms\n",
    "keras": "iteration {n} of 400 - mae: {v:.4f}\n",
}


def falls(step: int) -> float:
    return 4.0 * math.exp(-step / 30) + 0.2


def lines(form: str, first: int, last: int, trained_before: int = 0) -> str:
    values = [(n, falls(n + trained_before)) for n in range(first, last + 1)]
    return "".join(FORMS[form].format(n=n, v=v, r=1.0 - v / 5) for n, v in values)


def resumed(
    form: str = "loss", *, restores: bool, mind: Judge | None = None, words: str = "", steps: int = 20
) -> World:
    """60 steps and a save, a crash, and an attempt that counts from 1 again. ``restores``: it goes on all the same."""
    world = World(mind or judge()).begin()
    for first in range(1, 61, 10):
        world.see(LogChunk(t=world.t + 5.0, text=lines(form, first, first + 9)))
    save(world, "out/step-60", 60)
    world.answer("start_attempt", told_resume=True, resume="state")
    world.answer("copy_aside", folder="out.kept/1")
    crash(world)
    if words:
        world.see(LogChunk(t=world.t + 2.0, text=words + "\n"))
    for n in range(1, steps + 1):
        world.see(LogChunk(t=world.t + 2.0, text=lines(form, n, n, 60 if restores else 0)))
    return world


def began_anew(world: World) -> World:
    """The first 20 steps once more."""
    for n in range(1, 21):
        world.see(LogChunk(t=world.t + 2.0, text=lines("loss", n, n)))
    return world


@pytest.mark.parametrize("form", FORMS)
def test_a_trainer_that_restores_and_counts_from_the_beginning_trains_on(form: str) -> None:
    """It was ended after four steps, and the run given up: musubi-tuner, XGBoost."""
    world = resumed(form, restores=True)
    assert world.word == "running"
    assert not world.of(StopAttempt)
    assert "goes on: " in notes(world)
    assert "its count begins anew, and counts on from step 60" in notes(world)
    assert [i.open for i in world.incidents] == [False]
    assert str(world.incidents[0].ending).endswith("its steps and saves count from zero again")
    assert [order.paths for order in world.of(CopyAside)] == [("out/step-60",)], "its saves may have the same names"
    assert world.state.attempt.position == 80
    assert world.of(ProgressMade)[-1].step_offset in {0, 60}  # the first of an attempt is written before the proof


@pytest.mark.parametrize(
    ("words", "path", "says"),
    [
        ("resume training from local state: out/step-60", "out/step-60", True),
        ("[INFO] Loaded checkpoint 'out/step-60' (epoch 3)", "out/step-60", True),
        ("restored runs/x/20", "/w/runs/x/20", True),
        ("=> loaded checkpoint 'out/best' (epoch 3)", "/w/out/best", True),
        ("Loads checkpoint by local backend from path: /w/out/last.pt", "/w/out/last.pt", True),
        ("resuming from last.pt", "/w/out/last.pt", True),
        ("resuming from not-last.pt", "/w/out/last.pt", False),
        ("Loading 2048 images of 20 classes", "runs/x/20", False),
        ("load the best model of all", "out/best", False),
        ("loading data/step-60/images, not out/step-60", "/w/out/step-60", False),
    ],
)
def test_the_words_of_the_trainer_show_that_it_resumed(words: str, path: str, says: bool) -> None:
    world = flat(words, path)
    verified = f"resume verified: the trainer says that it loads {path.rpartition('/')[2]}"
    assert (verified in notes(world), bool([i for i in world.incidents if i.open])) == (says, not says)


def flat(words: str, path: str = "out/step-60") -> World:
    """A loss that tells nothing: it never falls."""
    world = World(judge()).begin()
    world.see(LogChunk(t=5.0, text="".join(f"step {n}/400 loss 0.5\n" for n in range(1, 61))))
    save(world, path, 60)
    world.answer("start_attempt", told_resume=True, resume="state")
    world.answer("copy_aside", folder="out.kept/1")
    crash(world).see(LogChunk(t=world.t + 2.0, text=words + "\n"))
    for n in range(1, 9):
        world.see(LogChunk(t=world.t + 2.0, text=f"step {n}/400 loss 0.5\n"))
    return world


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Namespace(resume='out/step-60', lr=0.1)",
        "resume: out/step-60",
        "runs/load-resumed/step-60 is there",
        "could not load out/step-60: begins anew",
    ],
)
def test_what_nothing_shows_is_told_and_the_resume_point_is_put_aside(words: str) -> None:
    world = flat(words)
    assert world.word == "running"
    assert not world.of(StopAttempt)
    assert [copy.paths for copy in world.of(CopyAside)] == [("out/step-60",)]
    assert "step-60 was copied to out.kept/1" in notes(world)
    (found,) = [i for i in world.incidents if i.open]
    assert (found.kind, found.severity) == ("resume", "warning")
    assert found.reason.startswith("whether step-60 was restored is not known: told to resume at step 60")
    assert world.state.attempt.position == 68
    assert [n.title.partition(": ")[2] for n in world.of(NotifyPeople)][-2:] == ["the count began anew", "recovered"]


def test_a_save_whose_step_goes_on_shows_it_later() -> None:
    world = flat("")
    world.see(CheckpointEvent(t=world.t, path="out/b-8", event="complete", step=68, size_bytes=1e6, mtime=world.t))
    assert "resume verified: a save holds step 68, after 8 steps from step 60" in notes(world)
    assert not [i for i in world.incidents if i.open]


def test_a_loss_of_a_first_step_ends_an_attempt_that_could_write_over_what_is_better() -> None:
    world = resumed(restores=False)
    assert world.word == "given_up"
    assert world.of(StopAttempt)[-1].mode == "gentle"
    reason = world.of(GiveUp)[0].reason
    assert reason.startswith("resume did not take: the loss begins again: ")
    assert "at the beginning of the run" in reason


def test_the_last_save_of_an_attempt_that_is_known_to_have_begun_anew_is_no_resume_point() -> None:
    world = resumed(restores=False, steps=0)
    world.silent = {"stop_attempt"}
    began_anew(world)
    world.see(CheckpointEvent(t=world.t, path="out/step-20", event="complete", step=20, mtime=world.t))
    world.silent = set()
    world.command("kill").command("resume")
    assert world.of(StartAttempt)[-1].resume_from == "out/step-60"


def test_with_go_on_such_an_attempt_trains_on() -> None:
    world = resumed(restores=False, mind=judge(quick(if_resume_not_taken="go_on")))
    assert world.word == "running"
    assert [i.class_ for i in world.incidents if i.open] == ["started_over"]


def test_another_measure_that_begins_again_ends_nothing() -> None:
    world = resumed("xgboost", restores=False)
    assert world.word == "running"
    assert not world.of(StopAttempt)
    assert [i.class_ for i in world.incidents if i.open] == ["counts_anew"]


def test_a_checkpoint_from_elsewhere_is_not_at_stake() -> None:
    world = World(judge()).begin()
    for first in range(1, 61, 10):
        world.see(LogChunk(t=world.t + 5.0, text=lines("loss", first, first + 9)))
    world.see(CheckpointEvent(t=world.t, path="old/step-60", event="complete", step=60, mtime=-50.0))
    world.command("restart", checkpoint="old/step-60")
    assert world.of(StartAttempt)[-1].resume_from == "old/step-60"
    for n in range(1, 12):
        world.see(LogChunk(t=world.t + 2.0, text=lines("loss", n, n)))
    assert world.word == "running"
