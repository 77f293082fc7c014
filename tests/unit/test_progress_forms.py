"""Counters that are known by the form of their lines only, and tables in columns."""

import json

import pytest

from tests.shipped import SHAPES, read_progress
from trainwatch.core.judge.progress import START, progress_of
from trainwatch.core.judge.text.carriers import own_text
from trainwatch.core.judge.text.counters import find_epoch, find_pair, find_seconds_per_step, find_step
from trainwatch.core.judge.text.lines import Finished, lines_with
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


def test_a_label_that_names_only_the_part_of_the_data_names_no_phase() -> None:
    assert SHAPES.phase_of_label("train: stage two") == "train"
    assert SHAPES.phase_of_label("val: stage two") == "eval"


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


@pytest.mark.parametrize(
    ("text", "step", "total"),
    [
        ("91300 iter, 7 epoch / 20 epochs", 91300, None),
        ("683-1364batch: loss=1", 1364, None),
        ("epoch 2 | 40/90 steps | loss 1", 40, 90),
        ("progress: 1% (40 of 90 updates), loss 1", 40, 90),
        ('{"iteration": 40, "max_iterations": 90}', 40, 90),
        ("step=40 total=90 loss=1", 40, 90),
        ("81212 steps/s", None, None),
        ("saved every 500 steps", None, None),
        ("fps step: 81211", None, None),
        ("12/3 steps, loss 1", None, None),
    ],
)
def test_a_count_may_stand_before_its_name(text: str, step: int | None, total: int | None) -> None:
    found = find_step(text)
    assert (None if found is None else found.value, None if found is None else found.total) == (step, total)


@pytest.mark.parametrize(
    ("text", "epoch", "total"),
    [("2/200epoch, loss 1", 2, 200), ("9 iter, 7 epoch / 20 epochs", 7, 20), ("3 epochs to go", None, None)],
)
def test_an_epoch_may_stand_before_its_name(text: str, epoch: int | None, total: int | None) -> None:
    found = find_epoch(text)
    assert (None if found is None else found.value, None if found is None else found.total) == (epoch, total)


@pytest.mark.parametrize(
    "text", ["2026/01/02", "01/02 10:11:12", "/data/3/12/x", "epoch 3/12", "rank 3/12", "12/3", "0/1", "http://a/3/12"]
)
def test_dates_paths_epochs_and_ranks_are_no_pairs(text: str) -> None:
    assert find_pair(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("ups=2.50, wpb=12448", 0.4),
        ("ups 3 | wpb 12448", None),
        ("loss 0.8 iters/sec 12.5", 0.08),
        ("steps_per_second=1.25", 0.8),
        ("interval_steps_per_second: 0.5", 2.0),
        ("eval_steps_per_second: 0.5", None),
        ("samples_per_second: 15.0", None),
        ("training_speed: 4.0", 0.25),
        ("training_speed=0:00:31", None),
        ("train_speed(iter/s): 0.5", 2.0),
        ("iter_time=5e-05, forward_time=0.1, train_time=1.79", 1.79),
        ("step=3 ms_per_step=250.0", 0.25),
        ("time_this_iter_s=8.5", 8.5),
        ("per_step_time: 2809ms", 2.809),
        ("dt=00:00:12", None),
    ],
)
def test_the_pace_is_read_by_the_words_of_its_name(text: str, seconds: float | None) -> None:
    assert find_seconds_per_step(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ('{"log":"step 4\\n","stream":"stdout","time":"2026-01-02T10:11:12Z"}', "step 4"),
        ('{"message": "step 4", "level": "info"}', "step 4"),
        ('{"message": "done", "loss": 0.5}', None),
        ('{"step": 4, "message": "x"}', None),
        ('{"log": 5}', None),
        ("{'log': 'x'}", None),
        ('{"log": }', None),
        ('["log"]', None),
        ("2026-01-02T10:11:12.5Z stderr F [rank3]: step 4", "step 4"),
        ("Nov  2 10:11:12 box python[42]: (Worker pid=4, ip=10.0.0.3) step 4", "step 4"),
        ("3: step 4", "step 4"),
        ("120: loss 0.5", None),
        ("120: train loss = nan", None),
        ("120: 0.5", None),
        ("[7]: loss: 0.5", None),
        ("3: loss is rising", "loss is rising"),
        ("trainer-1  | step 4", "step 4"),
        ("epoch-3  | step 4", None),
        ("[rank 2] step 4", "step 4"),
        ("rank 2: step 4", "step 4"),
        ("[1,3]<stdout>:step 4", "step 4"),
        ('{"level":"info","ts":1700000000.25,"msg":"step 4"}', "step 4"),
        ('{"event": "step 4", "level": "info"}', "step 4"),
        ('{"MESSAGE": [115, 116, 101, 112, 32, 52], "_PID": "7"}', "step 4"),
        ('{"message": "done", "train_loss": 0.5}', None),
        ('{"message": "x", "metrics": {"a": 1}}', None),
        ('{"message": [1, 2000]}', None),
        ("", None),
    ],
)
def test_transports_are_taken_off_a_line(line: str, own: str | None) -> None:
    assert own_text(line).text == (line if own is None else own)


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("Nov  2 10:11:12 box python[42]: [rank3]: step 4", "3"),
        ("[1,3]<stdout>:step 4", "3"),
        ("(Worker pid=4, ip=10.0.0.3) step 4", "Worker pid=4"),
        ("Rank 3 step 4", "3"),
        ("Nov  2 10:11:12 box python[42]: step 4", ""),
        ("step 4 of rank 3", ""),
    ],
)
def test_a_transport_names_the_rank_of_a_line(line: str, rank: str) -> None:
    assert own_text(line).rank == rank


def test_transports_are_taken_off_to_a_bound() -> None:
    assert own_text("[rank0]: " * 9 + "step 4") == ("[rank0]: step 4", "0")


def test_a_bar_within_a_record_is_read_redraw_by_redraw() -> None:
    bar = "\rsteps: 4/9 [00:01<00:02, 2.0it/s]\rsteps: 5/9 [00:02<00:02, 2.0it/s, loss=0.5]"
    state = read_progress(START, json.dumps({"log": f"{bar}\n"}) + "\n")
    assert (state.progress.step, state.progress.loss, state.heartbeats) == (5, 0.5, 2)


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


@pytest.mark.parametrize("start", ["", "2026-01-02 10:11:12 INFO data.reader - ", "[a] x trai"])
def test_a_line_with_news_is_found_behind_what_a_logger_writes_before_each_line(start: str) -> None:
    quiet = [f"{start}the {word} went to {word * 2}" for word in ("shard", "file", "queue", "host")] * 60
    text = "\n".join([*quiet, f"{start}ning epoch 3: loss 0.5", *quiet]) + "\n"
    found = [line for _, _, line in lines_with(Finished(text, 1), SHAPES.gates)]
    assert found == [f"{start}ning epoch 3: loss 0.5"]
    assert list(lines_with(Finished("x" * 9000, 1), SHAPES.gates)) == []


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
