"""The length of a run by its settings, where its log does not show it."""

from collections.abc import Callable

import msgspec
import pytest

from tests.builders import Story, knowledge
from tests.shipped import SHAPES
from trainwatch.core.judge.findings import with_told
from trainwatch.core.judge.progress import START, read_progress
from trainwatch.core.judge.recovery.attempts import shown_progress
from trainwatch.core.judge.state import JudgeState
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.progress import Progress, ToldLength

EPOCHS = ToldLength(epochs=7, epochs_by="--epochs 7")
STEPS = ToldLength(steps=210, steps_by="max_steps 210 in cfg.yaml")
GUESS = ToldLength(guess=62_500, guess_by="a guess: 50 epochs x 1,250 steps")


def told(text: str, length: ToldLength | None, *, resumed: bool = False) -> Progress:
    state = read_progress(START, text, SHAPES)
    return with_told(state.progress, state.now.run, length, resumed=resumed)


def bar(step: int, total: int = 30, label: str = "") -> str:
    return f"\r{label}{100 * step // total:3d}%|##  | {step}/{total} [00:03<00:03,  2.00it/s, loss=0.5]"


EPOCH_BARS = "\n".join(bar(30, label=f"Epoch {n}: ") for n in (1, 2)) + "\n" + bar(4, label="Epoch 3: ")


@pytest.mark.parametrize(
    ("text", "length", "step", "total", "left_s"),
    [
        (EPOCH_BARS, EPOCHS, 64, 210, 73.0),
        (EPOCH_BARS, STEPS, 64, 210, 73.0),
        (EPOCH_BARS, None, 64, None, None),
        (bar(4), EPOCHS, 4, 210, 103.0),
        (bar(4), STEPS, 4, 210, 103.0),
        ("Step 64, Loss: 0.5\n", STEPS, 64, 210, None),
        ("iter 64: loss 0.5, time 500.00ms\n", STEPS, 64, 210, 73.0),
        ("Step 64, Loss: 0.5\n", GUESS, 64, 62_500, None),
    ],
)
def test_the_total_is_that_of_the_settings_if_the_log_shows_none(
    text: str, length: ToldLength | None, step: int, total: int | None, left_s: float | None
) -> None:
    seen = told(text, length)
    assert (seen.run_step, seen.run_total_steps) == (step, total)
    assert seen.eta_s == (None if left_s is None else pytest.approx(left_s))
    by = None if total is None or length is None else length.steps_by or length.epochs_by or length.guess_by
    assert seen.total_by == by


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("Epoch 1/50: 45%|####  | 563/1250 [05:15<05:15,  1.79it/s, loss=0.5]\n", EPOCHS),  # the log knows better
        ("steps:  12%|#2 | 1230/10260 [51:15<6:16:15,  2.50s/it, avr_loss=0.09]\n", EPOCHS),  # of the whole run
        (bar(4, 210), EPOCHS),  # 7 x 30: it may be of the whole run
        (bar(4, 210), STEPS),
        (bar(4), ToldLength()),
        (bar(4), ToldLength(epochs=1, epochs_by="--epochs 1")),
        ("Step 250, Loss: 0.5\n", STEPS),  # further than the settings: they are not of this
        ("loss 0.5\n", EPOCHS),
        ("", EPOCHS),
    ],
)
def test_what_the_log_shows_or_the_settings_contradict_stays(text: str, length: ToldLength) -> None:
    assert told(text, length) == told(text, None)


def test_a_bar_after_a_resume_may_count_what_was_left() -> None:
    assert told(bar(4), EPOCHS, resumed=True) == told(bar(4), None)
    assert told(EPOCH_BARS, EPOCHS, resumed=True).run_total_steps == 210


def test_bars_without_an_epoch_begin_anew_after_a_resume() -> None:
    """Seen: 6.1 % at epoch 12 of 40, and 1,140 of 1,800 steps at the end."""
    state = read_progress(START, "\n".join(map(bar, (3, 30, 3, 30, 4))), SHAPES)
    (progress, run), length = (state.progress, state.now.run), ToldLength(epochs=10, epochs_by="--epochs 10")
    seen = with_told(progress, run, length, resumed=True, epochs_before=4)
    assert (seen.run_step, seen.run_total_steps) == (4 * 30 + 64, 300)
    unknown = with_told(progress, run, length, resumed=True)
    assert (unknown.run_step, unknown.run_total_steps) == (None, None)


def watched(story: Story, length: ToldLength) -> tuple[Judge, JudgeState]:
    judge = Judge(msgspec.structs.replace(knowledge(), told={"": length}))
    state = judge.start()
    for observation in story.observations:
        state, _ = judge.step(state, observation)
    return judge, state


def epoch_line(number: Callable[[int], int]) -> Callable[[int], str]:
    return lambda step: f"Epoch {number(step)} loss {1 / step:.4f}\n"


@pytest.mark.parametrize("base", [0, 1])
def test_a_log_that_prints_epochs_only_has_an_end_too(base: int) -> None:
    story = Story(step_s=60.0).start().load().train(3, line=epoch_line(lambda step: step - 1 + base))
    judge, state = watched(story, EPOCHS)
    shown = shown_progress(judge.knowledge, state)
    assert (shown.epoch, shown.total_epochs, shown.total_by) == (2 + base, 7, "--epochs 7")
    assert shown.eta_s == pytest.approx(4 * 60.0, rel=0.05)
