"""Exit status 0 before the length that the settings say: the log shows no total, the command does."""

import msgspec
import pytest

from tests.builders import World
from tests.shipped import CATALOGUE
from tests.unit.test_judge_endings import SENTENCE, reason, see
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.decision import EndWatch
from trainwatch.core.model.observation import CheckpointEvent, Exit
from trainwatch.core.model.progress import ToldLength

STEPS = ToldLength(steps=200, steps_by="--steps 200")
EPOCHS = ToldLength(epochs=7, epochs_by="--epochs 7")


def json_lines(last: int, first: int = 1, every: int = 1) -> str:
    return "".join(f'{{"it": {n}, "metrics": {{"train_loss": 0.5}}}}\n' for n in range(first, last + 1, every))


def epochs(last: int, first: int = 1, every: int = 1) -> str:
    return "".join(f"Epoch {n} loss 0.5\n" for n in range(first, last + 1, every))


def epoch_bars(last: int) -> str:
    lines = [
        f"Epoch {n}: {100 * s // 30:3d}%|##  | {s}/30 [00:03<00:03,  2.00it/s, loss=0.5]"
        for n in range(1, last + 1)
        for s in (10, 20, 30)
    ]
    return "".join(f"{line}\n" for line in lines)


def trained(text: str, told: ToldLength, *, hidden: str = "") -> World:
    """A trainer that printed these lines, one a second."""
    return see(World(Judge(Knowledge(catalogue=CATALOGUE, told={"": told}, status_hidden=hidden))).begin(), text)


def left(world: World, after_s: float = 1.0) -> World:
    return world.see(Exit(t=world.t + after_s, code=0))


EARLY = {
    "steps of JSON lines": (json_lines(99), STEPS, "step 99 of 200 (by --steps 200)"),
    "each fifth step": (json_lines(100, 5, 5), STEPS, "step 100 of 200 (by --steps 200)"),
    "epochs": (epochs(4), EPOCHS, "in epoch 4 of 7 (by --epochs 7)"),
    "epochs from 0": (epochs(4, 0), EPOCHS, "in epoch 5 of 7 (by --epochs 7)"),
    "bars of an epoch": (epoch_bars(3), EPOCHS, "in epoch 3 of 7 (by --epochs 7)"),
    "steps and epochs": (
        "".join(f"epoch {n // 100} step {n} loss 0.5\n" for n in range(10, 500, 10)),
        msgspec.structs.replace(EPOCHS, steps=1000, steps_by="--steps 1000"),
        "step 490 of 1000 (by --steps 1000)",
    ),
    "accumulated batches that are not done either": (
        json_lines(99),
        ToldLength(steps=1600, steps_by="max_iters 1600", units=(4, 8)),
        "step 99 of 1600 (by max_iters 1600)",
    ),
}


@pytest.mark.parametrize(("text", "told", "at"), EARLY.values(), ids=EARLY)
def test_exit_0_clearly_before_the_length_in_the_settings_is_ended_early(text: str, told: ToldLength, at: str) -> None:
    """A run of 200 steps that left at step 100 with status 0 was "finished" and could not be resumed."""
    world = left(trained(text, told))
    assert world.word == "ended_early", reason(world)
    assert reason(world) == f"exit code 0, but the last progress is {at}"
    assert world.of(EndWatch)[0].exit_code == 1


DONE = f"exit 0; {SENTENCE}"
FINISHED = {
    "an early stop by a setting": (
        json_lines(99),
        msgspec.structs.replace(STEPS, sooner_by="--patience 5"),
        "--patience 5 may end it sooner",
    ),
    "steps of a section that may be another thing": (
        json_lines(99),
        msgspec.structs.replace(STEPS, steps_sure=False),
        "of another thing",
    ),
    "told in batches, counted in accumulated steps": (
        json_lines(50),
        msgspec.structs.replace(STEPS, units=(4,)),
        "another unit",
    ),
    "told in samples of all processes": (
        json_lines(50),
        ToldLength(steps=3200, steps_by="max_iters 3200", units=(8, 2, 4)),
        "another unit",
    ),
    "told in steps of an environment": (
        json_lines(99),
        ToldLength(steps=100_000, steps_by="total_steps 100000"),
        "another unit",
    ),
    "another counter of the line reaches it": (
        "".join(f"iter {n} loss 0.5 env_steps {n * 20}\n" for n in range(1, 51)),
        ToldLength(steps=1000, steps_by="--total_steps 1000"),
        "another unit",
    ),
    "a command that resumes": (
        json_lines(99),
        msgspec.structs.replace(STEPS, resumes_by="--resume"),
        "count anew after a resume",
    ),
    "one line": (json_lines(20, 20), STEPS, "without a line"),
    "one epoch": (epochs(1), EPOCHS, "without a line"),
    "all steps of a length that may be of another thing": (
        json_lines(200),
        msgspec.structs.replace(STEPS, steps_sure=False),
        DONE,
    ),
    "one step less": (json_lines(199), STEPS, DONE),
    "all steps from 0": (json_lines(199, 0), STEPS, DONE),
    "the last line of each tenth": (json_lines(190, 0, 10), STEPS, DONE),
    "further than the settings": (json_lines(300), STEPS, DONE),
    "all epochs": (epochs(7), EPOCHS, DONE),
    "all epochs from 0": (epochs(6, 0), EPOCHS, DONE),
    "each tenth epoch from 0": (epochs(90, 0, 10), ToldLength(epochs=100, epochs_by="--epochs 100"), DONE),
    "an estimate": (json_lines(99), ToldLength(guess=200, guess_by="a guess: 2 epochs x 100 steps"), DONE),
    "epochs of which the log prints none": (json_lines(99), EPOCHS, DONE),
    "steps short, epochs done": (
        "".join(f"epoch {n // 100} step {n} loss 0.5\n" for n in range(10, 700, 10)),
        msgspec.structs.replace(EPOCHS, steps=1000, steps_by="--steps 1000"),
        DONE,
    ),
}


@pytest.mark.parametrize(("text", "told", "said"), FINISHED.values(), ids=FINISHED)
def test_a_length_that_is_reached_or_cannot_be_compared_is_no_early_end(text: str, told: ToldLength, said: str) -> None:
    world = left(trained(text, told))
    assert world.word == "finished", reason(world)
    assert SENTENCE in reason(world)
    assert said in reason(world)


def test_steps_that_may_have_been_made_without_a_line_are_no_early_end() -> None:
    """A log that prints only a new best loss has no line of the last steps."""
    assert left(trained(json_lines(99), STEPS), after_s=110.0).word == "finished"
    assert left(trained(json_lines(99), STEPS), after_s=20.0).word == "ended_early"
    assert left(trained(epochs(4), EPOCHS), after_s=5.0).word == "finished"


def test_a_checkpoint_that_holds_the_last_step_is_in_the_unit_of_the_settings() -> None:
    world = trained(json_lines(50), STEPS)
    world.see(CheckpointEvent(t=world.t, path="out/step-200", event="complete", size_bytes=1e6, step=200))
    assert left(world).word == "finished"


@pytest.mark.parametrize(
    ("first", "last", "word"),
    [
        (101, 200, "finished"),  # it counts on, and is done
        (101, 150, "ended_early"),
        (1, 100, "finished"),  # it counts what was left
        (1, 50, "ended_early"),
        (101, 300, "finished"),  # 200 more
    ],
)
def test_an_attempt_that_resumed_at_step_100_of_200(first: int, last: int, word: str) -> None:
    world = trained("", STEPS)
    world.change("attempt", resume_from="out/step-100", resume_step=100, weights_only=first == 1)
    assert left(see(world, json_lines(last, first))).word == word, reason(world)


def test_an_early_end_behind_a_pipe_is_not_restarted_by_the_settings_alone() -> None:
    """A restart of a training that is done in another unit would train on past its end."""
    world = left(trained(json_lines(99), STEPS, hidden="`| tee` hides its status"))
    assert world.word == "ended_early"
