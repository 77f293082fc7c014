"""Counters that are known by the form of their lines only, and tables in columns."""

import json

import pytest

from tests.shipped import SHAPES, read_progress
from trainwatch.core.judge.progress import START, progress_of
from trainwatch.core.model.progress import Progress


def after(text: str) -> Progress:
    return progress_of([text], SHAPES)


def lines(form: str, *counts: int) -> str:
    return "".join(form.format(n, 3 - n / 100) + "\n" for n in counts)


@pytest.mark.parametrize(
    ("form", "needed"),
    [
        ("{} / 90 loss {:.2f}", 1),
        ("Training  [ {}/90]  total_loss: {:.2f} (3.1)", 1),
        ("{} -> 90 :: objective={:.2f} (0.2 s/step)", 2),
        (" {} / 90   {:.4f}", 3),
        ("steps done {}/90 loss {:.2f}", 3),
        ("{} loss {:.2f}", 2),
    ],
)
def test_a_count_is_taken_from_its_form_after_some_lines(form: str, needed: int) -> None:
    counts = [40, 41, 42, 43][: needed + 1]
    assert after(lines(form, *counts[: needed - 1])).step is None
    assert after(lines(form, *counts[:needed])).step == counts[needed - 1]


@pytest.mark.parametrize(
    "text",
    [
        lines("worker {} / 90 ready {:.2f}", 1, 2, 3, 4),
        lines("restarts {}/9 after {:.2f} s", 1, 2, 3, 4),
        lines("{} / 90", 40, 41, 42, 43),
        lines("{} / 90   0.5000", 40, 41, 42, 43),
        lines("Unpacking lib (part {} of 90)", 40, 41, 42, 43),
        lines("Validation loss {1:.2f} {0}/90", 40, 41, 42, 43),
        "caching latents 40/90 0.5\ncaching latents 41/90 0.6\ncaching latents 42/90 0.7\n",
        "Validation:\n" + lines("{} / 90 loss {:.2f}", 40, 41, 42, 43, 44, 45),
        "2026/01/02 12:00 a 1.5\n2026/01/03 12:00 a 1.6\n2026/01/04 12:00 a 1.7\n",
        "40 / 90  0.5\n39 / 90  0.6\n41 / 90  0.7\n38 / 90  0.9\n",
    ],
)
def test_no_count_is_taken_from_lines_of_another_task(text: str) -> None:
    assert after(text).step is None


@pytest.mark.parametrize(
    "form",
    [
        "it {} of 2400  L={:.3f}",
        "2026-01-01 12:00:00,123 - INFO - it {} of 2400  cost {:.3f}",
        "[main] it: {} out of 2400 acc {:.3f}",
    ],
)
def test_a_step_named_it_is_read_with_its_end_in_words(form: str) -> None:
    """`it 283 of 2400  L=3.603` was no step: only `it 283/2400` passed the gates."""
    read = after(lines(form, 283, 284))
    assert (read.step, read.total_steps) == (284, 2400)
    between = "nothing here\n" * 9
    long = "".join(lines(form, n) + between for n in range(1, 200))
    assert (after(long).step, after(long).total_steps) == (199, 2400)


@pytest.mark.parametrize(
    "form",
    [
        "downloading file {} of 20 at {:.2f} MB/s",
        "file {} of 20: {:.2f} MB",
        "Loading checkpoint shards {} of 4, {:.2f} s",
        "epoch {} of 90",
        "fold {} of 5 score {:.2f}",
        "rank {} of 8 is up after {:.2f} s",
        "class {} of 10 acc {:.2f}",
        "round {} of 5 {:.2f}",
        "update {} of 12 {:.2f} MB",
        "kmeans it {} of 100 cost={:.2f}",
        "waited for it {} of 9 times, {:.2f} s",
        "it {} of 5",
        "{} of 20 requests in {:.2f} s",
    ],
)
def test_a_count_of_something_in_words_is_no_step(form: str) -> None:
    assert after(lines(form, 1, 2, 3, 4)).step is None
    assert after("".join(lines(form, n) + "nothing here\n" * 9 for n in range(1, 200))).step is None


def test_nothing_is_taken_from_a_form_once_a_known_counter_was_read() -> None:
    state = read_progress(START, "step 500/900 loss 0.5\n")
    state = read_progress(state, lines(" {} / 90   {:.4f}", 40, 41, 42, 43))
    assert (state.progress.step, state.progress.total_steps) == (500, 900)


def test_a_rank_in_front_changes_nothing_about_a_form() -> None:
    text = "".join(f"[rank{rank}]: {n}/90 :: objective={3 - n / 100}\n" for n in (40, 41, 42) for rank in (0, 1))
    assert (after(text).step, after(text).total_steps) == (42, 90)


@pytest.mark.parametrize(
    ("head", "row", "expect"),
    [
        ("step,loss,lr", "40,0.5,0.01", (40, None, 0.5, 0.01)),
        ("Step\tTraining Loss\tValidation Loss", "40\t0.5\t0.6", (40, None, 0.5, None)),
        ("| Epoch | Train Loss | Val Loss |", "| 4 | 0.5 | 0.6 |", (None, 4, 0.5, None)),
        ("E    #       LOSS NER  ENTS_F", "  4     40      0.50    0.00", (40, 4, None, None)),
        ("epoch     train_loss  valid_loss  time", "4         0.500000    0.600000    00:32", (None, 4, 0.5, None)),
        ("epoch,step,train_loss", "0.5,40,nan", (40, 0.5, None, None)),
    ],
)  # fmt: skip
def test_rows_of_a_table_are_read_by_its_head(
    head: str, row: str, expect: tuple[int | None, float | None, float | None, float | None]
) -> None:
    now = after(f"{head}\n{row}\n")
    assert (now.step, now.epoch, now.loss, now.lr) == expect


def test_the_head_of_a_table_may_have_two_lines() -> None:
    head = "|  Epoch  |  Iteration  |  Mini-batch  |  Base Learning  |\n|         |             |     Loss     |      Rate       |\n"
    now = after(f"{head}|=====================================================|\n| 2 | 150 | 0.5 | 0.01 |\n")
    assert (now.epoch, now.step, now.loss, now.lr) == (2, 150, 0.5, 0.01)


def test_of_several_losses_in_a_table_the_first_that_is_printed_counts() -> None:
    now = after("epoch,step,train_loss_epoch,train_loss_step\n0,49,,1.5\n")
    assert (now.epoch, now.step, now.loss) == (0, 49, 1.5)


@pytest.mark.parametrize(
    ("text", "step", "total", "epoch"),
    [
        ("epoch: 4 | 40/ 90 | batch/s: 8.0 | loss: 0.5 | step: 400", 40, 90, 4),
        ("[train][3][40/90] loss_total=0.5", 40, 90, 3),
        ("E3 B40/90 loss=0.5", 40, 90, 3),
        ("INFO (0/4) Epoch 3, batch 40, loss 0.5", 40, None, 3),
        ("(0/4) Epoch 3, loss 0.5", None, None, 3),
    ],
)
def test_an_epoch_and_the_steps_within_it_stand_side_by_side(
    text: str, step: int | None, total: int | None, epoch: int
) -> None:
    now = after(text)
    assert (now.step, now.total_steps, now.epoch) == (step, total, epoch)


def test_a_pair_is_found_in_a_long_text_whose_other_lines_have_dates_and_paths() -> None:
    quiet = "".join(f"2026/01/{n % 28 + 1:02d} read /data/{n}/{n}/x of disk\n" for n in range(400))
    state = read_progress(START, quiet + lines("{} / 90   {:.4f}", 40, 41, 42) + quiet)
    assert (state.progress.step, state.progress.total_steps) == (42, 90)


def test_the_word_epoch_without_a_number_is_no_epoch() -> None:
    now = after("[xla:1](700) Loss=0.5 of this epoch\n")
    assert (now.step, now.epoch) == (700, None)


def test_far_below_the_head_of_a_table_a_row_may_be_of_anything() -> None:
    assert after("step,loss\n" + "a line that says nothing about it\n" * 100 + "40,0.5\n").step is None


def test_a_table_goes_on_as_long_as_rows_follow() -> None:
    quiet = "nothing\n" * 50
    text = "step,loss\n" + "".join(f"{n},0.5\n{quiet}" for n in range(1, 9))
    assert after(text).step == 8


@pytest.mark.parametrize(
    "text", ["name,size,loss_weight\na,1,2\n", "step one, step two\n1, 2\n", "epoch,name\n1,mine\n"]
)
def test_other_lists_are_no_tables_of_a_training(text: str) -> None:
    assert (after(text).step, after(text).epoch) == (None, None)


def test_a_bar_within_a_record_is_read_redraw_by_redraw() -> None:
    bar = "\rsteps: 4/9 [00:01<00:02, 2.0it/s]\rsteps: 5/9 [00:02<00:02, 2.0it/s, loss=0.5]"
    state = read_progress(START, json.dumps({"log": f"{bar}\n"}) + "\n")
    assert (state.progress.step, state.progress.loss, state.now.heartbeats) == (5, 0.5, 2)


@pytest.mark.parametrize(
    ("text", "step", "epoch"),
    [
        ("time:41 exs:8112 left:4 epochs:0.41", None, 0.41),
        ("walker. step: 800, mean reward: 2.5, std: 0.5", 800, None),
        ("best model so far at step: 400, mean reward: 2.5, std: 0.5", None, None),
        ("epoch 3 is the one that everybody will remember for its sunny weather", None, None),
        ("step 12/90: latents cached (0.31 s/it)", None, None),
        ("round 3 of talks", None, None),
        (f"12/90 loss 0.5 {'x ' * 200}", None, None),
    ],
)
def test_a_line_without_a_loss_is_about_its_counter_if_it_is_made_of_numbers(
    text: str, step: int | None, epoch: float | None
) -> None:
    assert (after(text).step, after(text).epoch) == (step, epoch)


@pytest.mark.parametrize(
    ("text", "step", "total"),
    [
        ("running training: 420 steps", None, None),
        ("INFO Training: 420 optimizer steps", None, None),
        ("[trainer] 420 iterations", None, None),
        ("running training: 420 steps\nrunning training: 420 steps", None, None),
        ("running training: 420 steps\nstep 1/420 loss 2.0", 1, 420),
        ("step 7/420 loss 2.0\nrunning training: 420 steps", 7, 420),
        ("100 steps\n200 steps\n300 steps", 300, None),
        ("[t] 91300 iters\n[t] 91400 iters", 91400, None),
        ("done 420 steps", 420, None),
        ("420 steps done", 420, None),
        ("420 steps (2.5 it/s)", 420, None),
        ("420 steps, loss 0.5", 420, None),
        ("420 steps, reward: 2.5", 420, None),
        ("12/420 steps", 12, 420),
    ],
)
def test_a_number_of_steps_is_a_position_if_it_is_measured_done_or_rises(
    text: str, step: int | None, total: int | None
) -> None:
    """Before, a trainer that announces 420 steps stood at step 420 until its first step."""
    assert (after(text).step, after(text).total_steps) == (step, total)


def test_an_announced_number_of_steps_begins_the_training() -> None:
    assert after("running training: 420 steps").phase == "train"
