"""NaN that stays: what counts as a NaN step, and what follows."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.builders import World, judge
from tests.shipped import SHAPES
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.judge.progress import START, read_progress
from trainwatch.core.judge.scales import LASTS_S
from trainwatch.core.judge.text.reading import LossRun
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.observation import CheckpointEvent, CheckpointValues, Exit, LogChunk
from trainwatch.core.model.settings import Nan, Settings

PLAIN = "\nstep {}/10260 loss: {}"
KOHYA = "\rsteps:   1%| | {}/10260 [01:00<1:00:00, 2.5s/it, avr_loss={}]"
STALE = "\rtrain:   1%| | {}/10260 [01:00<1:00:00, 2.5s/it, loss={}]"


def losses(lines: Iterable[str]) -> LossRun:
    state = START
    for line in lines:
        state = read_progress(state, line, SHAPES)
    return read_progress(state, "\n", SHAPES).now.losses


def printed(shape: str, *values: object, start: int = 1, every: int = 1) -> list[str]:
    return [shape.format(start + n * every, value) for n, value in enumerate(values)]


def noisy(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [f"{0.5 + dice.random():.4f}" for _ in range(count)]


def averages(count: int, seed: int = 1) -> list[str]:
    """A running average over the epoch so far."""
    dice, total, shown = random.Random(seed), 0.0, []
    for n in range(1, count + 1):
        total += 0.5 + dice.random()
        shown.append(f"{total / n:.4f}")
    return shown


def epochs(*rows: list[str]) -> list[str]:
    lines = []
    for epoch, row in enumerate(rows, 1):
        lines += [f"epoch {epoch} step {n}/900 loss: {value}\n" for n, value in enumerate(row, 1)]
    return lines


# --- what is a NaN step ---------------------------------------------------------------------------------------------


def test_a_bar_drawn_again_at_the_same_step_adds_nothing() -> None:
    lines = [line for line in printed(STALE, *noisy(30), *["nan"] * 20) for _ in range(4)]
    assert losses(lines).nan_steps == 20


def test_keras_prints_an_average_over_the_epoch() -> None:
    shape = "\r{}/900 [=>....] - ETA: 1:32 - loss: {}"
    assert not losses(["Epoch 1/9\n", *printed(shape, *noisy(30), *["nan"] * 300)]).is_nan_for(50)


def test_a_nan_that_ended_with_the_epoch_was_one_of_an_average() -> None:
    rows = epochs([*averages(15), *["nan"] * 85], averages(15, 2), [*averages(5, 3), *["nan"] * 85])
    assert not losses(rows).is_nan_for(50)


def test_what_moves_like_an_average_in_its_first_epoch_has_to_be_nan_four_times_as_long() -> None:
    for seed in range(5):
        found = losses(printed(PLAIN, *averages(200, seed), *["nan"] * 190))
        assert found.is_likely_average
        assert not found.is_nan_for(50)
        assert losses(printed(PLAIN, *averages(200, seed), *["nan"] * 200)).is_nan_for(50)


def test_a_loss_that_only_falls_or_is_noisy_is_no_likely_average() -> None:
    falling = [f"{2 / n:.6f}" for n in range(1, 201)]
    for row in (falling, noisy(200), averages(40)):
        assert losses(printed(PLAIN, *row, *["nan"] * 50)).is_nan_for(50)


# --- what follows ---------------------------------------------------------------------------------------------------


def told(world: World, *values: object, shape: str = PLAIN, start: int | None = None) -> World:
    first = (world.state.attempt.step or 0) + 1 if start is None else start
    for n, value in enumerate(values):
        world.see(LogChunk(t=world.t + 1.0, text=shape.format(first + n, value)))
    return world


def with_saves(action: str = "rollback") -> World:
    """A run that saved at 40 and 60; its loss is NaN from 61 on."""
    world = save(running(judge(Settings(nan=Nan(action=action)))), "out/step-40", 40)  # type: ignore[arg-type]
    told(world, *noisy(20))
    save(world, "out/step-60", 60).wait(1.0)
    return world


def test_fifty_nan_steps_go_back_to_the_last_checkpoint_before_them() -> None:
    world = told(with_saves(), *["nan"] * 30)
    save(world, "out/step-90", 90)
    told(world, *["nan"] * 19)
    assert world.of(StopAttempt) == []
    told(world, "nan")
    assert [i.class_ for i in world.incidents if i.open] == ["nan_loss"]
    assert "the loss was NaN for 50 steps, since step 61" in world.text()
    start = world.of(StartAttempt)[-1]
    assert (start.attempt, start.resume_from) == (2, "out/step-60")
    told(world, *noisy(60), start=61)
    assert world.word == "running"
    assert [i.class_ for i in world.incidents if i.open] == []
    told(world, "0.5", start=10260)
    world.see(Exit(t=world.t + 1.0, code=0))
    assert world.word == "finished"


def test_nan_again_before_the_next_checkpoint_gives_the_run_up() -> None:
    world = told(with_saves(), *["nan"] * 50)
    told(world, *noisy(5), *["nan"] * 50, start=61)
    assert world.word == "given_up"
    assert "NaN again at step 66" in world.of(GiveUp)[0].reason
    assert len(world.of(StartAttempt)) == 2


def test_the_next_attempt_knows_that_the_loss_is_an_average() -> None:
    lines = epochs([*averages(15), *["nan"] * 35], averages(15, 2))
    world = with_saves()
    for line in lines:
        world.see(LogChunk(t=world.t + 1.0, text=line))
    crash(world)
    told(world, *averages(5), *["nan"] * 100, start=61)
    assert world.of(StopAttempt) == []


def test_single_nans_that_mixed_precision_skips_stop_nothing() -> None:
    world = told(with_saves(), *[value for n in range(200) for value in ("nan", *noisy(3, n))])
    assert world.of(StopAttempt) == []


def test_a_stained_average_stops_nothing() -> None:
    world = told(with_saves(), *["nan"] * 400, shape=KOHYA)
    assert world.of(StopAttempt) == []
    assert "the average loss is not a number" in world.text()


def stained(nonfinite: tuple[str, ...]) -> World:
    """A mean over the epoch that is NaN, and a checkpoint of which the values were read since."""
    world = told(World(judge()).begin(), *averages(150, 3), *["nan"] * 100)
    assert world.of(StopAttempt) == []
    path = "out/step-late"
    world.see(CheckpointEvent(t=world.t, path=path, event="complete", step=900, mtime=world.t))
    world.see(CheckpointValues(t=world.t, path=path, mtime=world.t, nonfinite=nonfinite, nan=nonfinite))
    return world


def test_a_finite_checkpoint_shows_that_only_the_average_is_stained() -> None:
    world = told(stained(()), *["nan"] * 300)
    assert world.of(StopAttempt) == []
    crash(world)
    assert world.wait(60.0).of(StartAttempt)[-1].resume_from == "out/step-late"


def test_a_checkpoint_with_nan_shows_that_it_is_not_the_average_alone() -> None:
    assert stained(("w",)).wait(LASTS_S).of(StopAttempt) != []


def test_stop_leaves_it_to_a_person() -> None:
    world = told(with_saves("stop"), *["nan"] * 60)
    assert world.word == "given_up"
    assert '[nan] action = "stop"' in world.of(GiveUp)[0].reason
    assert len(world.of(StartAttempt)) == 1


def test_warn_notifies_once_and_trains_on() -> None:
    world = told(with_saves("warn"), *["nan"] * 300)
    assert world.word == "running"
    assert [n.body for n in world.of(NotifyPeople) if n.title == "run: NaN"] == [
        'the loss was NaN for 50 steps, since step 61; it trains on ([nan] action = "warn")'
    ]


def test_a_trainer_that_ends_itself_for_its_nan_goes_back_once() -> None:
    world = told(with_saves(), *["nan"] * 3)
    crash(world, "\nloss is nan, stopping\n")
    assert world.of(StartAttempt)[-1].resume_from == "out/step-60"
    told(world, *noisy(2), *["nan"] * 3, start=61)
    crash(world, "\nloss is nan, stopping\n")
    assert world.word == "given_up"


def nan_and_saved(action: str) -> World:
    """A run whose loss is NaN from step 61 on, that saved at 90 all the same."""
    world = told(with_saves(action), *["nan"] * 30)
    return told(save(world, "out/step-90", 90), *["nan"] * 20)


@pytest.mark.parametrize(("action", "word", "verb"), [("stop", "given_up", "resume"), ("warn", "running", "restart")])
def test_a_person_goes_on_from_before_the_nan(action: str, word: str, verb: str) -> None:
    world = nan_and_saved(action)
    assert world.word == word
    world.command(verb)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-60"


def test_a_person_who_names_a_checkpoint_of_after_the_nan_gets_it() -> None:
    world = nan_and_saved("stop")
    world.command("resume", checkpoint="out/step-90")
    assert world.of(StartAttempt)[-1].resume_from == "out/step-90"


# --- the values of checkpoints --------------------------------------------------------------------------------------


def steps(world: World, count: int) -> World:
    return told(world, *noisy(count))


def checkpoint(world: World, step: int, *, nonfinite: Iterable[str] = (), nan: bool = True, read: bool = True) -> World:
    """A complete checkpoint of this run; its values are read a little later, and the trainer goes on after that."""
    path, mtime = f"out/step-{step}", 1000.0 + world.t
    event = CheckpointEvent(
        t=world.t, path=path, event="complete", step=step, size_bytes=1e6, mtime=mtime, verdict="complete"
    )
    world.see(event).wait(1.0)
    names = tuple(nonfinite)
    if not read:
        return world
    return values(world, step, mtime, names, names if nan else ()).wait(LASTS_S)


def values(world: World, step: int, mtime: float, names: tuple[str, ...], nan: tuple[str, ...]) -> World:
    reason = "holds NaN or Inf" if names else None
    return world.see(
        CheckpointValues(t=world.t, path=f"out/step-{step}", mtime=mtime, nonfinite=names, nan=nan, reason=reason)
    )


def saving(action: str = "rollback") -> World:
    settings = Settings(nan=Nan(action=action))  # type: ignore[arg-type]
    return checkpoint(running(judge(settings, created_wall=1000.0)), 40)


def test_a_checkpoint_with_a_nan_that_was_finite_before_goes_back_to_the_finite_one() -> None:
    world = checkpoint(steps(saving(), 20), 60, nonfinite=["unet.w", "unet.b"])
    assert "step-60 holds NaN or Inf in unet.w and 1 other tensors, finite in an earlier checkpoint" in world.text()
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    assert [(i.class_, i.open) for i in world.incidents] == [("nan_loss", True)], "not once more for the checkpoint"


def test_nan_seen_in_the_loss_first_and_then_in_a_later_checkpoint_gives_the_run_up() -> None:
    world = told(steps(saving(), 20), *["nan"] * 50)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    told(world, *noisy(120), start=41)  # further than before, without a checkpoint
    told(world, *["nan"] * 20, start=161)
    checkpoint(world, 180, nonfinite=["unet.w"])
    assert world.word == "given_up"
    assert len(world.of(StartAttempt)) == 2


def test_what_is_infinite_in_all_checkpoints_is_meant() -> None:
    masks = ["attn.bias", "observer.min_val"]
    world = checkpoint(running(judge(created_wall=1000.0)), 40, nonfinite=masks, nan=False)
    for step in (60, 80):
        checkpoint(steps(world, 20), step, nonfinite=masks, nan=False)
    assert world.of(StopAttempt) == []
    crash(world)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-80"


def test_nan_in_the_only_checkpoint_is_not_resumed_from_and_stops_nothing_by_itself() -> None:
    world = checkpoint(running(judge(created_wall=1000.0)), 40, nonfinite=["unet.w"])
    assert world.of(StopAttempt) == []
    assert world.state.saved.checkpoints.known[0].damage == ("nonfinite", "holds NaN or Inf")
    assert crash(world).of(StartAttempt)[-1].resume_from is None


def test_nan_in_the_saved_average_beside_finite_losses_is_told_once_and_ends_nothing() -> None:
    """Of an EMA nothing is printed. Each later one of it is lost, and no restart uses one of them."""
    world = saving()
    for step in (60, 80):
        path, names = f"out/step-{step}", ("ema.w", "ema.b")
        event = CheckpointEvent(t=world.t, path=path, event="complete", step=step, mtime=1000.0 + world.t)
        values(steps(world.see(event), 40), step, event.mtime or 0.0, names, names).wait(LASTS_S)
    (told_of,) = world.incidents
    assert (told_of.class_, told_of.severity, world.of(StopAttempt)) == ("nan_saved", "warning", [])
    assert told_of.reason == "step-60 holds NaN or Inf in ema.w and 1 other tensors, finite in an earlier checkpoint"
    checkpoint(world, 160)
    assert [i.open for i in world.incidents] == [False]


def test_a_checkpoint_whose_nan_was_read_before_the_restart_is_told_once() -> None:
    world = checkpoint(running(judge(created_wall=1000.0)), 40, read=False)
    early = world.state.saved.checkpoints.known[0].mtime or 0.0
    checkpoint(steps(world, 20), 60, nonfinite=["unet.w"])
    assert world.incidents == [], "nothing to compare with: it may be meant"
    crash(world)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"
    told_of = ["step-60 cannot be resumed from: holds NaN or Inf"]
    assert [i.reason for i in world.incidents if i.kind == "checkpoint"] == told_of
    values(world, 40, early, (), ())
    crash(world)
    assert [i.reason for i in world.incidents if i.kind == "checkpoint"] == told_of


def test_nan_in_the_only_checkpoint_while_the_average_loss_is_nan_stops() -> None:
    world = told(running(judge(created_wall=1000.0)), *["nan"] * 20, shape=KOHYA)
    checkpoint(world, 60, nonfinite=["unet.w"])
    assert "step-60 holds NaN or Inf in unet.w" in world.text()
    assert len(world.of(StopAttempt)) == 1


def test_an_earlier_checkpoint_that_is_read_later_decides_anew() -> None:
    world = checkpoint(running(judge(created_wall=1000.0)), 40, read=False)
    early = world.state.saved.checkpoints.known[0].mtime or 0.0
    checkpoint(steps(world, 20), 60, nonfinite=["buffer"])
    assert world.state.saved.checkpoints.known[1].bad is not None
    values(world, 40, early, ("buffer",), ("buffer",))
    assert world.state.saved.checkpoints.known[-1].path == "out/step-60"
    assert world.state.saved.checkpoints.known[-1].bad is None, "it holds NaN on purpose"
    assert world.of(StopAttempt) == []


def test_values_of_a_file_that_was_written_again_do_not_count() -> None:
    world = saving()
    values(world, 40, 1.0, ("w",), ("w",))
    values(world, 77, 1.0, ("w",), ("w",))
    assert world.of(StopAttempt) == []
    assert world.state.saved.checkpoints.known[0].bad is None


def test_a_resume_point_that_is_infinite_on_purpose_is_taken() -> None:
    world = checkpoint(running(judge(created_wall=1000.0)), 40, read=False)
    data: dict[str, Any] = {
        "verdict": "nonfinite",
        "reason": "holds 4 NaN or Inf",
        "nonfinite": ["attn.bias"],
        "nan": [],
    }
    world.answer("verify_checkpoint", ok=False, **data)
    assert crash(world).of(StartAttempt)[-1].resume_from == "out/step-40"
    assert "it is meant (so do earlier checkpoints, or it is Inf alone)" in world.text()


@pytest.mark.parametrize("nan_steps", [0, 50])
def test_a_resume_point_with_nan_or_with_inf_after_nan_steps_is_not_taken(nan_steps: int) -> None:
    """Inf needs one to compare with."""
    world = checkpoint(running(judge(created_wall=1000.0)), 40, read=False)
    checkpoint(steps(world, 20), 60, read=False).wait(1.0)
    nan = [] if nan_steps else ["w"]
    world.answer("verify_checkpoint", ok=False, verdict="nonfinite", reason="not finite", nonfinite=["w"], nan=nan)
    told(world, *["nan"] * nan_steps)
    if not nan_steps:
        crash(world)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"


def test_a_requested_checkpoint_that_is_not_known_is_refused_if_it_holds_nan() -> None:
    world = running().command("stop")
    world.answer("verify_checkpoint", ok=False, verdict="nonfinite", reason="NaN", nonfinite=["w"], nan=["w"])
    world.command("resume", checkpoint="/elsewhere/x.pt")
    assert world.word == "stopped"


def test_what_an_earlier_attempt_wrote_is_not_held_against_the_file_that_replaces_it() -> None:
    world = checkpoint(steps(saving(), 20), 60, nonfinite=["unet.w"])
    told(world, *noisy(20), start=41)
    growing = CheckpointEvent(t=world.t, path="out/step-60", event="growing", mtime=1000.0 + world.t, verdict="writing")
    world.see(growing)
    values(world, 40, world.state.saved.checkpoints.known[0].mtime or 0.0, (), ())
    assert world.word == "running"
    checkpoint(world, 60)
    assert (world.word, len(world.of(StartAttempt))) == ("running", 2)
    assert crash(world).of(StartAttempt)[-1].resume_from == "out/step-60"


def test_a_save_of_a_nan_step_that_was_seen_before_its_line_is_not_resumed_from() -> None:
    # Given lines that are read some at a time: the file of step 62 is seen before the line that says it was NaN
    world = with_saves()
    save(world, "out/step-62", 62)
    told(world, *["nan"] * 50, start=61)
    assert world.of(StartAttempt)[-1].resume_from == "out/step-60"
