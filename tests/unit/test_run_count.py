"""The step of the whole run: bars that begin again in each epoch, resumed attempts, and what cannot be told."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shipped import progress_of, read_progress
from trainwatch.core.judge.progress import START, begin_attempt


def bar(label: str, count: int, total: int, post: str = "", left: str = "00:09") -> str:
    """One redraw of a bar as tqdm draws it; the first one has neither pace nor time."""
    clock = f"00:{count % 60:02d}<{left},  1.00it/s" if count else "00:00<?, ?it/s"
    return f"\r{label}{100 * count // total:3d}%|███   | {count}/{total} [{clock}{post}]"


def bars(label: str, first: int, last: int, total: int, post: str = "") -> str:
    return "".join(bar(label, count, total, post) for count in range(first, last + 1)) + "\n"


def rich(epoch: int, count: int) -> str:
    return f"\rEpoch {epoch}/4  ━━━━━━╺━━━ {count}/60 0:00:10 • 0:00:40 1.25it/s v_num: 0.000 train_loss: 0.75"


def keras(count: int, total: int = 32, first: str = "\r") -> str:
    return f"{first}\x1b[1m{count}/{total}\x1b[0m \x1b[32m━━━━━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m1s\x1b[0m 40ms/step - loss: 0.9"


def timm(epoch: int, count: int) -> str:
    share = 100 * (count + 1) / 40
    return f"Train: {epoch} [{count:>4d}/40 ({share:>3.0f}%)]  Loss: 3.25 (3.50)  Time: 0.500s (0.510s)  LR: 1.0e-04\n"


LIGHTNING = "".join(bars(f"Epoch {e}: ", 0, 8, 8, ", v_num=0, train_loss=1.2") for e in range(3))
YOLO = "      {}/4      3.1G    0.0400    0.0200   0.00500        33       640: "
TOLD: dict[str, tuple[str, int | None, int | None]] = {
    "Lightning, which prints no number of epochs": (LIGHTNING, 24, None),
    "Lightning at its end": (f"{LIGHTNING}`Trainer.fit` stopped: `max_epochs=3` reached.\n", 24, 24),
    "Lightning, its end behind the bar, which is then drawn again": (
        LIGHTNING[:-1] + "`Trainer.fit` stopped: `max_epochs=3` reached.\n" + bar("Epoch 2: ", 8, 8, ", v_num=0"),
        24,
        24,
    ),
    "Lightning resumed": (bars("Epoch 2: ", 3, 5, 8, ", v_num=0"), 21, None),
    "Lightning's rich bar, which names the last epoch": ("".join(rich(e, n) for e in range(3) for n in (1, 60)), 180, 300),
    "labels from 1": ("".join(bars(f"Epoch {e}/3: ", 0, 8, 8, ", loss=1") for e in (1, 2, 3)), 24, 24),
    "labels from 0": ("".join(bars(f"Epoch {e}/3: ", 0, 8, 8, ", loss=1") for e in (0, 1)), 16, 24),
    "labels in brackets": ("".join(bars(f"Epoch [{e}/3]: ", 0, 8, 8, ", loss=1") for e in (1, 2)), 16, 24),
    "resumed in the middle of an epoch": (bars("Epoch 3/5: ", 12, 13, 30, ", loss=1"), 73, 150),
    "an epoch that may count from 0 or from 1": (bars("Epoch 3: ", 3, 5, 30, ", loss=1"), None, None),
    "Keras": (f"Epoch 1/3\n{keras(32, first='')}\nEpoch 2/3\n{keras(3, first='')}", 35, 96),
    "Keras with an evaluation at the end": (f"Epoch 3/3\n{keras(32, first='')}\n{keras(8, 8, first='')}", 96, 96),
    "a bar of epochs above a bar of batches": (
        "".join(f"{bar('epochs: ', e, 3)}\n{bars('', 0, 10, 10, ', loss=1')}" for e in range(3)) + bar("epochs: ", 3, 3),
        30,
        30,
    ),
    "a bar of epochs above a bar of steps": (
        "".join(f"{bar('epoch: ', e, 3)}\n{bars('step: ', 0, 10, 10, ', loss=1')}" for e in range(2)),
        20,
        30,
    ),
    "epochs in lines below their bars": (
        "".join(f"{bars('', 0, 10, 10)}Epoch {e}/3: loss=0.5 val_loss=0.6\n" for e in (1, 2)) + bars("", 0, 4, 10),
        24,
        30,
    ),
    "epochs in lines above their bars": (
        "".join(f"Epoch {e}/3\n{bars('', 0, 10, 10, ', loss=1')}" for e in (1, 2)),
        20,
        30,
    ),
    "the first of several epochs of a bar that may run through": (f"Epoch 1/3\n{bars('', 0, 5, 10, ', loss=1')}", 5, None),
    "no epochs at all": (bars("", 0, 10, 10, ", loss=1") * 2 + bars("", 0, 3, 10, ", loss=1"), 23, None),
    "a bar over all epochs": (
        f"epoch 1/3\n{bars('steps: ', 1, 30, 90, ', avr_loss=1')}epoch 2/3\n{bars('steps: ', 31, 40, 90, ', avr_loss=1')}",
        40,
        90,
    ),
    "a bar over all epochs, resumed": (f"epoch 2/3\n{bars('steps: ', 40, 45, 90, ', avr_loss=1')}", 45, 90),
    "a bar over all epochs with a message behind it": (
        f"{bars('', 0, 12, 24, ', loss=1')[:-1]}epoch 0: loss 1.0\n{bars('', 12, 20, 24, ', loss=1')}",
        20,
        24,
    ),
    "epochs as parts": (bars("", 0, 10, 150) + "{'loss': 0.5, 'epoch': 0.2}\n" + bars("", 10, 20, 150), 20, 150),
    "whole epochs beside a bar over all": (
        bars("", 0, 50, 150) + "{'loss': 0.5, 'epoch': 1.0}\n" + bars("", 50, 60, 150),
        60,
        150,
    ),
    "no bar": ("{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.2}\n", None, None),
    "diffusers": (
        "  Num Epochs = 2\n" + "".join(bars(f"Epoch {e}: ", 0, 32, 32, f", loss=0.1, step={32 * e + 32}") for e in (0, 1)),
        64,
        64,
    ),
    "diffusers resumed: its global step tells the epoch": (bars("Epoch 3: ", 5, 5, 32, ", loss=0.1, step=101"), 101, None),
    "timm, whose batches count from 0": (timm(0, 20) + timm(1, 39), 80, None),
    "timm with its settings": ("Scheduled epochs: 2. LR stepped per epoch.\n" + timm(0, 20) + timm(1, 39), 80, 80),
    "YOLOv5, which names the last epoch": ("".join(bars(YOLO.format(e), 0, 8, 8) for e in range(4)), 32, 40),
    "Ultralytics": ("".join(bars(YOLO.format(e), 0, 8, 8) for e in range(1, 4)), 24, 32),
    "a shorter last epoch": (bars("Epoch 1/3: ", 0, 10, 10) + bars("Epoch 2/3: ", 0, 9, 9) + bars("Epoch 3/3: ", 0, 7, 7), 26, 26),
    "Chinese": ("".join(f"第 {e}/3 轮\n{bars('训练: ', 0, 10, 10, ', 损失=0.5')}" for e in (1, 2)), 20, 30),
    "Chinese lines": ("".join(f"第 {e}/3 轮 步数: {n}/40 损失: 0.5\n" for e in (1, 2) for n in (10, 20, 40)), 80, 120),
    "lines within the epoch": ("".join(f"Epoch {e}/3, Step {n}/40, Loss: 0.5\n" for e in (1, 2) for n in (10, 40)), 80, 120),
    "lines over all epochs": ("".join(f"epoch {e} step {n + 40 * e}/120 loss 0.5\n" for e in (0, 1) for n in (10, 40)), 80, 120),
    "workers that began again in the same epoch": (bars("Epoch 1/2: ", 0, 9, 10) + bars("Epoch 1/2: ", 3, 4, 10), 4, 20),
    "bars of validation between": (
        "".join(f"{bars(f'Epoch {e}/3 [train]: ', 0, 10, 10, ', loss=1')}{bars(f'Epoch {e}/3 [val]: ', 0, 4, 4, ', loss=1')}" for e in (1, 2)),
        20,
        30,
    ),
    "ranks that overtake each other": (
        "".join(f"[RANK {r}] Epoch {e} | Step {s}/12 | Loss 0.5\n" for r, e, s in ((0, 0, 12), (0, 1, 1), (1, 0, 12), (0, 1, 2), (1, 1, 1))),
        14,
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "step", "total"), TOLD.values(), ids=TOLD)
def test_step_of_the_whole_run(text: str, step: int | None, total: int | None) -> None:
    read = progress_of([text])
    assert (read.run_step, read.run_total_steps) == (step, total)
    in_parts = START
    for at in range(0, len(text), 7):
        in_parts = read_progress(in_parts, text[at : at + 7])
    in_parts = read_progress(in_parts, "\n")
    assert (in_parts.progress.run_step, in_parts.progress.run_total_steps) == (step, total)


def test_time_to_go_is_that_of_the_whole_run() -> None:
    def eta(text: str) -> float | None:
        return progress_of([text]).eta_s

    assert eta(bars("Epoch 1/3: ", 0, 4, 10)) == 26.0
    assert eta(bars("Epoch 1: ", 0, 4, 10)) is None  # the number of epochs is not printed
    assert eta("Epoch: [0] [ 20/40]  eta: 0:00:10  loss: 5.5  time: 0.5000  data: 0.1\n") is None  # to the epoch's end
    line = "Epoch(train) [1][20/40]  lr: 1e-3  eta: 0:03:00  time: 0.5000  data_time: 0.01  loss: 0.7\n"
    assert eta(line) == 180.0  # longer than the epoch
    without_pace = "Epoch 1/3\n 4/10 [==>.....] - ETA: 6s - loss: 0.5"
    assert eta(without_pace) == 26.0


@pytest.mark.parametrize(
    "text",
    [
        "train: Scanning data/labels/train... 32 images, 0 corrupt: 100%|████| 32/32 [00:00<00:00, 900.00it/s]\n",
        "train: Caching images (0.1GB RAM): 100%|████| 32/32 [00:00<00:00, 900.00it/s]\n",
        "val: Scanning labels/val.cache: 100% ━━━━━━━━━━━━ 16/16 1.3Kit/s 0.0s\n",
        "Train | preparing buckets: 100%|████| 32/32 [00:00<00:00, 900.00it/s]\n",
    ],
)
def test_bar_that_prepares_the_training_data_is_no_training(text: str) -> None:
    read = progress_of([text])
    assert (read.step, read.run_step, read.phase) == (None, None, "preprocess")
    after = progress_of([text + bars(YOLO.format(1), 0, 3, 32)])
    assert (after.step, after.total_steps, after.run_step) == (3, 32, 3)


def test_mean_in_a_summary_is_not_the_last_loss() -> None:
    log = bars("", 0, 10, 10) + "{'loss': 0.25, 'learning_rate': 1e-05, 'epoch': 2.75}\n"
    runtime = "{'train_runtime': 90.5, 'train_samples_per_second': 3.1, 'train_loss': 1.5, 'epoch': 3.0}\n"
    metrics = "***** train metrics *****\n  epoch        =        3.0\n  train_loss   =     1.5\n"
    for end in (runtime, metrics, '{\n  "train": {\n    "loss": 1.5\n  }\n}\n'):
        assert progress_of([log + end]).loss == 0.25
    assert progress_of([log + runtime]).epoch == 3
    assert progress_of([log + "{'eval_loss': 0.5, 'epoch': 3.0}\n"]).epoch == 3
    assert progress_of(["loss: 0.5\n" + log + "loss: 0.75\n"]).loss == 0.75  # it has lines of their own, too


def test_how_a_trainer_counts_stays_known_in_the_next_attempt() -> None:
    from_0 = read_progress(START, bars("Epoch 0: ", 0, 8, 8, ", loss=1") + bars("Epoch 1: ", 0, 8, 8, ", loss=1"))
    after = read_progress(begin_attempt(from_0), bars("Epoch 3: ", 2, 3, 8, ", loss=1"))
    assert after.progress.run_step == 27
    from_1 = read_progress(START, bars("Epoch 1: ", 0, 8, 8, ", loss=1") + bars("Epoch 2: ", 0, 8, 8, ", loss=1"))
    after = read_progress(begin_attempt(from_1), bars("Epoch 3: ", 2, 3, 8, ", loss=1"))
    assert after.progress.run_step == 19
    again = read_progress(begin_attempt(after), bars("Epoch 3: ", 0, 4, 8, ", loss=1"))
    assert again.progress.run_step == 20


Write = Callable[[int, int, int, int], str]


def _label(epoch: int, epochs: int, count: int, total: int) -> str:
    return bar(f"Epoch {epoch}/{epochs}: ", count, total, ", loss=1") + "\n"


def _line(epoch: int, epochs: int, count: int, total: int) -> str:
    return f"Epoch [{epoch}/{epochs}], Step [{count}/{total}], Loss: 0.5\n"


def _heading(epoch: int, epochs: int, count: int, total: int) -> str:
    head = f"Epoch {epoch}/{epochs}\n" if count == 1 else ""
    return f"{head}{count}/{total} [====>.....] - ETA: 1s - loss: 0.5\n"


@given(
    st.sampled_from((_label, _line, _heading)),
    st.lists(st.integers(2, 9), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_every_form_counts_every_step_once(write: Write, sizes: list[int], more: int) -> None:
    # Given epochs of any lengths, each step printed
    state, made = START, 0
    for epoch, size in enumerate(sizes, 1):
        for count in range(1, size + 1):
            state = read_progress(state, write(epoch, len(sizes) + more, count, size))
            made += 1

            # Then the step of the run is how many were made, and never more than its total
            assert state.progress.run_step == made
            total = state.progress.run_total_steps
            assert total == sum(sizes[:epoch]) + (len(sizes) + more - epoch) * size


SETTINGS = (
    "engine/trainer: agnostic_nms=False, amp=True, batch=8, bgr=0.0, cache=False, cfg=None, epochs=4, lr0=0.01, "
    "momentum=0.9, optimizer=auto, patience=100, resume=None, save_period=1, seed=0, task=detect, workers=0\n"
)


def test_a_line_of_settings_counts_no_step() -> None:
    """Ultralytics prints all of them on one line: step 8 was shown until the fourth step of the first epoch."""
    assert progress_of([SETTINGS]).step is None
    namespace = "Namespace(model='tiny', batch_size=8, step=100, lr=0.1, amp=True, resume=None, debug=False, port=1)\n"
    assert progress_of([namespace]).step is None
    assert progress_of(["step=100, lr=0.1, amp=True, loss=0.5\n"]).step == 100


def test_a_long_path_does_not_hide_what_a_bar_counts() -> None:
    path = "/home/user/a-long-name/of-a-project/with/folders/dataset/labels/train.cache"
    scan = f"train: Scanning {path}... 96 images, 0 backgrounds: 100% ━━━━━━━━━━━━ 96/96 900.0it/s 0.1s\n"
    assert (progress_of([scan]).phase, progress_of([scan]).step) == ("preprocess", None)
    named = f"epoch 3/4 of {'x' * 60}:  50%|5  | 40/80 [01:00<01:00,  1.50s/it, loss=0.5]\n"
    assert progress_of([named]).step == 40


def test_settings_that_are_printed_twice_say_the_same() -> None:
    once = progress_of(["  Num Epochs = 2\n", bars("", 0, 8, 32)])
    assert progress_of(["  Num Epochs = 2\n", "  Num Epochs = 2\n", bars("", 0, 8, 32)]) == once


def after_resume(at: int | None, before: str, text: str) -> tuple[int | None, int | None]:
    """Run step and total after ``text``, the log of an attempt that was told to begin at ``at``."""
    began = begin_attempt(read_progress(START, before), resumed=True, began=at)
    progress = read_progress(began, text).progress
    return progress.run_step, progress.run_total_steps


def test_a_bar_that_counts_what_is_left_of_its_epoch_is_placed_by_the_resume_point() -> None:
    """It said "the log goes on at step 63" of step 93: two epochs of 30 were taken for those before."""
    before = bars("Epoch 1/5: ", 1, 40, 40) + bars("Epoch 2/5: ", 1, 40, 40) + bars("Epoch 3/5: ", 1, 20, 40)
    rest = bars("Epoch 3/5: ", 1, 3, 30)
    assert after_resume(90, before, rest) == (93, 200)
    assert after_resume(90, before, rest + bars("Epoch 3/5: ", 4, 30, 30) + bars("Epoch 4/5: ", 1, 3, 40)) == (123, 200)
    for other in (None, 89, 50):  # not known, or not what is left there
        assert after_resume(other, before, rest) == (None, None)
        assert after_resume(other, before, rest + bars("Epoch 4/5: ", 1, 3, 40)) == (123, 200)
    assert after_resume(80, before, bars("Epoch 3/5: ", 1, 3, 40)) == (83, 200)


def test_after_a_resume_a_bar_without_the_number_of_its_epoch_tells_no_step_of_the_run() -> None:
    before = bars("round: ", 1, 25, 25) + bars("round: ", 1, 25, 25)
    assert after_resume(50, before, bars("round: ", 1, 3, 25)) == (None, None)
    assert after_resume(50, before, bars("round: ", 1, 25, 25) + bars("round: ", 1, 3, 25)) == (None, None)
    assert after_resume(40, before, bars("round: ", 1, 3, 10)) == (43, None)


def rounds(first: int, last: int, line: str) -> str:
    """A bar without a number for each 25 steps, and a line behind it at each fifth step."""
    return "".join(
        bar("round: ", (n - 1) % 25 + 1, 25) + (line.format(n) if n % 5 == 0 else "") for n in range(first, last + 1)
    )


@pytest.mark.parametrize("line", ['{{"it": {}, "objective": 0.5, "lr": 0.001}}\n', "\nstep {}, loss 0.5\n"])
def test_a_counter_that_grows_while_the_bar_begins_again_and_again_is_that_of_the_run(line: str) -> None:
    """It said "step 249 of 25", and the checkpoints of step 400 and the log disagreed."""
    before = read_progress(START, rounds(1, 103, line))
    assert (before.progress.run_step, before.progress.step, before.progress.total_steps) == (100, 100, None)
    assert (before.progress.eta_s, before.progress.run_total_steps) == (None, None)
    assert after_resume(100, rounds(1, 103, line), rounds(101, 104, line)) == (None, None)
    assert after_resume(100, rounds(1, 103, line), rounds(101, 112, line)) == (110, None)


def test_a_counter_beside_a_bar_that_names_its_epochs_is_not_followed() -> None:
    """Optimizer steps beside batches: the bar has totals and epochs."""
    text = "".join(
        f"{bars(f'Epoch {e}/4: ', 1, 20, 20)}step {20 * e - 10}, loss 0.5\n{bars(f'Epoch {e}/4: ', 20, 40, 40)}"
        for e in range(1, 4)
    )
    assert not read_progress(START, text).now.run.through
