"""A loss that had fallen and rises for good: told as long as it lasts, acted on only if the settings say so."""

import random
from typing import Any

import pytest

from tests.builders import World, judge, story_of
from tests.unit.test_judge_recovery import crash, save
from trainwatch.core.model.decision import NotifyPeople, StartAttempt
from trainwatch.core.model.observation import Command, Exit, LogChunk
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import LossSettings, Settings
from trainwatch.core.model.story import Situation
from trainwatch.core.views.checkpoint_list import checkpoint_views, how_to_resume
from trainwatch.core.views.report import ReportSources
from trainwatch.core.views.report_building import build_report
from trainwatch.core.views.run_summary import needs
from trainwatch.core.views.state.status import status_object
from trainwatch.core.views.state.verdict import verdict

PLAIN = "step {}/9000 loss: {:.6g}\n"
KOHYA = "\rsteps:   1%| | {}/9000 [01:00<1:00:00, 2.5s/it, avr_loss={:.6g}]"
WORDED = "INFO Epoch 1 | iter {} / 9000 | train_loss {:.6g} | lr 1e-4\n"


def falling(count: int, start: float = 0.9) -> list[float]:
    dice = random.Random(3)
    return [start / (1 + n / 3) * dice.uniform(0.8, 1.2) for n in range(count)]


def train(world: World, line: str, values: list[float], start: int = 0) -> World:
    for value in values:
        step = (world.state.attempt.step or start) + 1
        world.see(LogChunk(t=world.t + 2.0, text=line.format(step, value)))
    return world


def now_of(world: World) -> Situation:
    told = story_of(world.entries)
    return Situation(story=told, now_t=world.t, now_wall=told.wall0 + world.t, supervisor_alive=True)


def status(world: World) -> dict[str, Any]:
    return status_object(now_of(world), run="run")


@pytest.mark.parametrize(
    ("line", "before", "factor"),
    [(PLAIN, 35, 1e4), (KOHYA, 120, 300.0), (WORDED, 20, 1e5), (PLAIN, 700, 30.0), (WORDED, 30, 40.0)],
)
def test_a_diverged_loss_is_a_trouble_that_lasts(line: str, before: int, factor: float) -> None:
    good = falling(before)
    world = train(World(judge()).begin(), line, good)
    step = world.state.attempt.step
    save(world, f"out/step-{step}", step)
    assert status(world)["loss"]["state"] == "falling"
    train(world, line, [good[-1] * factor] * 12)
    assert status(world)["loss"]["floor"] is not None
    train(world, line, [good[-1] * factor] * 28)
    late = world.state.attempt.step
    save(world, f"out/step-{late}", late)
    train(world, line, [good[-1] * factor] * 300)
    loss = status(world)["loss"]
    assert loss["state"] == "diverging"
    assert loss["floor"] == pytest.approx(good[-1], rel=0.5)
    assert world.of(NotifyPeople)[0].title.startswith("run: the loss diverged: it is ")
    assert verdict(now_of(world)).level == "danger"
    assert "loss diverged" in verdict(now_of(world)).sentence
    assert [need.kind for need in needs(now_of(world))] == ["diverged"]
    new, old = checkpoint_views(now_of(world))
    assert ("diverged" in new.why, "diverged" in old.why, new.resume) == (True, False, True)
    assert world.of(StartAttempt)[1:] == [], "told, not acted on"
    world.see(Exit(t=world.t + 1.0, code=0, died_t=world.t + 0.5))
    assert status(world)["loss"]["state"] == "diverging", "the end makes it no better"
    report = build_report(
        now_of(world), ReportSources(spec=RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=1000.0))
    )
    assert "its loss diverged" in report.summary
    assert "nothing went wrong" not in report.summary


def test_a_loss_that_comes_back_ends_the_trouble() -> None:
    good = falling(200)
    world = train(World(judge()).begin(), PLAIN, [*good, *[good[-1] * 500] * 30, *good[-60:]])
    assert [(i.class_, i.open) for i in world.incidents] == [("diverging", False)]
    assert status(world)["loss"]["state"] in ("falling", "flat")


@pytest.mark.parametrize(
    "line",
    [
        PLAIN.replace("loss", "ep_rew_mean: 1.5 loss"),
        PLAIN.replace("loss", "D_loss: 0.5 loss"),
        PLAIN.replace("loss: ", "loss: -"),
    ],
)
def test_the_loss_of_a_game_or_a_reward_does_not_diverge(line: str) -> None:
    good = falling(200)
    world = train(World(judge()).begin(), line, [*good, *[good[-1] * 1e4] * 60])
    assert not [i for i in world.incidents if i.class_ == "diverging"]
    train(world, PLAIN, [good[-1] * 1e4] * 300)
    assert bool(world.incidents) == ("loss: -" not in line), "nothing is beside it any more"


def test_a_flat_loss_that_never_fell_does_not_diverge() -> None:
    dice = random.Random(5)
    world = train(World(judge()).begin(), PLAIN, [dice.uniform(0.05, 0.15) for _ in range(400)])
    assert status(world)["loss"]["state"] in ("flat", "falling")
    assert not world.incidents


def test_a_restart_from_the_newest_checkpoint_does_not_make_it_good() -> None:
    good = falling(100)
    world = train(World(judge()).begin(), PLAIN, [*good, *[good[-1] * 1e5] * 30])
    save(world, "out/step-130", 130)
    crash(world)
    world.wait(60.0)
    train(world, PLAIN, [good[-1] * 1e5] * 30, start=130)
    assert status(world)["loss"]["state"] == "diverging"


@pytest.mark.parametrize("action", ["rollback", "stop"])
def test_the_settings_may_end_it(action: str) -> None:
    good = falling(100)
    mind = judge(Settings(loss=LossSettings(diverged=action)))  # type: ignore[arg-type]
    world = train(World(mind).begin(), PLAIN, good)
    save(world, "out/step-100", 100)
    train(world, PLAIN, [good[-1] * 1e5] * 4)
    save(world, "out/step-104", 104)
    train(world, PLAIN, [good[-1] * 1e5] * 30)
    world.see(Exit(t=world.t + 1.0, signal=15, died_t=world.t + 0.5))
    world.wait(60.0)
    assert {i.title for i in world.incidents if i.kind == "crash"} == {"loss diverged"}
    if action == "stop":
        assert world.word == "given_up"
        assert '[loss] diverged = "stop"' in status(world)["reason"]
    else:
        assert [start.resume_from for start in world.of(StartAttempt)][1:] == ["out/step-100"]


@pytest.mark.parametrize(
    "said", ["RuntimeError: over the limit", "RuntimeError: loss is too large", "training diverged"]
)
def test_a_trainer_that_stops_for_its_diverged_loss_has_no_nan(said: str) -> None:
    good = falling(100)
    world = train(World(judge()).begin(), PLAIN, [*good, *[good[-1] * 1e5] * 30])
    world.see(LogChunk(t=world.t, text=f"{said}\n")).see(Exit(t=world.t + 1.0, code=1, died_t=world.t))
    assert [(i.class_, i.title) for i in world.incidents if i.kind == "crash"] == [("nan_loss", "loss diverged")]


def settled(count: int) -> list[float]:
    """It falls for half of the steps, and then stays where it is, but for its noise."""
    dice = random.Random(7)
    good = falling(count // 2)
    return [*good, *(good[-1] * dice.uniform(0.8, 1.2) for _ in range(count - len(good)))]


def rising(world: World, good: list[float], until: float, every: int = 40) -> list[int]:
    """Rise by 2 % a step from the end of ``good``, saving every ``every`` steps; the steps that were saved."""
    value, saved = good[-1], []
    while value < until * good[-1] and world.word == "running":
        train(world, PLAIN, [value])
        value *= 1.02
        if (step := world.state.attempt.step or 0) % every == 0:
            save(world, f"out/step-{step}", step)
            saved.append(step)
    return saved


@pytest.mark.parametrize("action", ["rollback", "stop"])
def test_a_loss_that_rises_slowly_is_acted_on_when_it_is_far(action: str) -> None:
    """It was told at ten times its lowest, and then never acted on."""
    good = settled(200)
    world = train(World(judge(Settings(loss=LossSettings(diverged=action)))).begin(), PLAIN, good)  # type: ignore[arg-type]
    save(world, "out/step-200", 200)
    assert len(rising(world, good, 1e4)) > 5
    world.see(Exit(t=world.t + 1.0, signal=15, died_t=world.t + 0.5))
    if action == "stop":
        assert checkpoint_views(now_of(world))[-1].resume, "a resume goes back, too"
        world.see(Command(t=world.t + 1.0, verb="resume"))
    world.wait(60.0)
    assert [start.resume_from for start in world.of(StartAttempt)][1:] == ["out/step-200"]


@pytest.mark.parametrize(("action", "begins"), [("warn", -1), ("rollback", 0)])
def test_a_crash_while_the_loss_diverges_goes_back_if_the_settings_say_so(action: str, begins: int) -> None:
    good = settled(200)
    world = train(World(judge(Settings(loss=LossSettings(diverged=action)))).begin(), PLAIN, good)  # type: ignore[arg-type]
    save(world, "out/step-200", 200)
    saved = [200, *rising(world, good, 40.0)]
    assert [i.class_ for i in world.incidents if i.open] == ["diverging"]
    crash(world)
    world.wait(60.0)
    assert world.of(StartAttempt)[1].resume_from == f"out/step-{saved[begins]}"


def test_a_person_is_told_which_save_is_the_last_one_before_the_loss_rose() -> None:
    good = settled(200)
    world = train(World(judge()).begin(), PLAIN, good)
    save(world, "out/step-200", 200)
    saved = rising(world, good, 1e4)
    world.see(Exit(t=world.t + 1.0, code=0, died_t=world.t + 0.5))
    (need,) = (need for need in needs(now_of(world)) if need.kind == "diverged")
    assert "--from out/step-200` goes back" in need.text
    assert how_to_resume(now_of(world).story, ("run",)).startswith(
        "`trainwatch resume run --from out/step-200` goes back"
    )
    report = build_report(
        now_of(world), ReportSources(spec=RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=1000.0))
    )
    marked = {row.name for row in report.checkpoints if row.reason == "saved after the loss diverged"}
    assert marked == {f"step-{step}" for step in saved}
