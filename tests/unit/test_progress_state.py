"""The fold: heartbeats, nested bars, phases that come and go, epochs, ETA, snapshots."""

import msgspec

from tests.shipped import read_progress
from trainwatch.core.judge.progress import START, ProgressState

BAR = "\rsteps:  10%|█         | {0}/100 [00:10<01:30,  1.00s/it, loss=0.5]"


def read(*chunks: str) -> ProgressState:
    state = START
    for chunk in chunks:
        state = read_progress(state, chunk)
    return state


def test_progress_heartbeat_only_when_the_step_moves() -> None:
    state = read(BAR.format(10), BAR.format(10), "\nstill here\n", BAR.format(10))
    assert state.heartbeats == 1
    assert read_progress(state, BAR.format(11)).heartbeats == 2


def test_progress_two_counters_that_disagree_are_no_movement() -> None:
    lines = BAR.format(10) + "\n[Rank 0] step=3, skipped=0, lr=[1e-05]\n"
    assert read(lines).heartbeats == 2
    assert read(lines, lines, lines).heartbeats == 2
    assert read(lines).progress.step == 10


def test_progress_new_epoch_is_a_heartbeat_and_restarts_the_count() -> None:
    state = read(
        "Epoch 0: 100%|█| 50/50 [00:50<00:00,  1.00it/s, loss=0.5]\n",
        "Epoch 1:   2%|▏| 1/50 [00:01<00:49,  1.00it/s, loss=0.4]",
    )
    assert (state.heartbeats, state.progress.step, state.progress.epoch, state.progress.run_step) == (2, 1, 1, 51)


def test_progress_evaluation_bar_without_label_during_training_is_no_step() -> None:
    train = "  5%|▌ | 50/1000 [10:00<3:10:00, 12.00s/it]"
    state = read(
        f"\r{train}\n{{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.5}}\n", "\r 10%|█ | 3/30 [00:03<00:27,  1.0it/s]"
    )
    assert (state.phase, state.progress.step, state.progress.total_steps) == ("eval", 50, 1000)
    state = read_progress(state, "\r 20%|██ | 6/30 [00:06<00:24,  1.0it/s]")
    assert (state.phase, state.heartbeats) == ("eval", read_progress(START, "").heartbeats + 2)
    state = read_progress(state, f"\r{train.replace('50/', '51/')}")
    assert (state.phase, state.progress.step) == ("train", 51)


def test_progress_second_training_in_one_log_is_found_by_its_loss() -> None:
    state = read(
        "100%|█| 8/8 [00:11<00:00,  1.40s/it, loss=0.1]\n",
        "\r 10%|█ | 3/30 [00:03<00:27,  1.0it/s]",
        "\n{'loss': 0.7, 'learning_rate': 1e-05, 'epoch': 0.1}\n",
        "\r 13%|█ | 4/30 [00:04<00:26,  1.0it/s]",
    )
    assert (state.phase, state.progress.step, state.progress.total_steps) == ("train", 4, 30)


def test_progress_nan_loss_is_none_and_told() -> None:
    state = read("{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.5}\n")
    assert state.loss_is_nan
    assert state.progress.loss is None
    assert not read_progress(state, "{'loss': 0.1, 'learning_rate': 1e-05, 'epoch': 0.6}\n").loss_is_nan


def test_progress_finished_words_are_taken_back_by_a_training_line() -> None:
    state = read(BAR.format(100), "\nTraining completed in 10 minutes\n")
    assert state.finished_words
    assert state.phase == "finish"
    assert not read_progress(state, BAR.format(101)).finished_words


def test_progress_eta_from_the_bar_else_from_the_rate() -> None:
    assert read(BAR.format(10)).progress.eta_s == 90
    assert read("step 10/100 loss 0.5 2.0 s/step\n").progress.eta_s == 180
    assert read("iter: 10/100 eta: 1:00:00 loss: 0.5 time: 0.5 data: 0.1\n").progress.eta_s == 3600
    assert read("step 10 loss 0.5\n").progress.eta_s is None


def test_progress_saving_and_loading_words_change_only_the_phase() -> None:
    state = read(BAR.format(10), "\nsaving checkpoint: out/a.safetensors\n")
    assert (state.phase, state.progress.step) == ("save", 10)
    assert read_progress(state, BAR.format(11)).phase == "train"


def test_progress_snapshot_survives_json() -> None:
    state = read(BAR.format(10), "\n{'loss': 0.5, 'epoch': 0.5}\n", " 20%|██ | 6/30 [00:06<00:24,  1.0it/s]")
    encoded = msgspec.json.encode(state)
    assert msgspec.json.decode(encoded, type=ProgressState) == state
    assert len(encoded) < 4000


def test_progress_settings_and_resume_words_are_no_position() -> None:
    assert (
        read(
            "max epochs: 50\nwith epochs 1 and lr: 0.1\nwarmup steps: 100\nsave every epoch 5 loss\nepochs: 3\nsave_steps: 500\nlr: 0.1\n"
        ).progress
        == START.progress
    )
    assert read("loading checkpoint from step 500\n").progress.step is None


def test_progress_absurd_numbers_are_passed_over() -> None:
    assert read(f"{'9' * 400}/{'9' * 400} [00:01<00:01,  1.0it/s]\n").progress.step is None
    assert read("epoch 1e999 loss 0.5\n").progress.epoch is None


def test_progress_last_of_several_bars_in_a_segment_counts() -> None:
    two = "  5%|▌| 5/100 [00:05<01:35,  1.00s/it]  6%|▌| 6/100 [00:06<01:34,  1.00s/it, loss=0.5]"
    assert read(two).progress.step == 6


def test_progress_loss_of_a_part_stands_in_where_no_whole_is_named() -> None:
    assert read("step 5 mse_loss: 0.75 box_loss: 0.5\n").progress.loss == 0.75
    assert read("step 5 mse_loss: 0.75 loss: 0.5\n").progress.loss == 0.5


def test_progress_yolo_row_without_total_column_or_with_odd_columns() -> None:
    assert read("  7/120  3.1G  a  b  c:  50%|█| 20/40 [00:10<00:10,  2.00it/s]").progress.loss is None
    assert read("run 3/4 x:  50%|█| 20/40 [00:10<00:10,  2.00it/s]").progress.step == 20


def test_progress_words_about_epochs_behind_a_bar_are_no_epoch() -> None:
    assert read(" 50%|█| 5/10 [00:05<00:05,  1.00s/it] of this epoch").progress.epoch is None
    assert read("| epoch-wise training | [2, 40] loss: 0.5\n").progress.epoch == 2
    assert read("iters: 5, epoch-wise, Step: 40/50 loss = 0.5, step = 40\n").progress.epoch is None


def test_progress_loss_whose_digits_may_go_on_is_not_news_yet() -> None:
    state = read_progress(START, "step 8 loss=0.2500\nstep 9 loss=0.")
    assert (state.progress.step, state.progress.loss) == (9, 0.25)
    state = read_progress(state, "75")
    assert state.progress.loss == 0.25
    assert read_progress(state, "\n").progress.loss == 0.75
    assert read_progress(START, "step 9 loss=0.75\x1b[0m").progress.loss == 0.75
