"""The fold: heartbeats, nested bars, phases that come and go, epochs, ETA, snapshots."""

import json

import msgspec

from tests.shipped import progress_cases, read_progress
from trainwatch.core.judge.progress import START, ProgressState

BAR = "\rsteps:  10%|█         | {0}/100 [00:10<01:30,  1.00s/it, loss=0.5]"


def read(*chunks: str) -> ProgressState:
    state = START
    for chunk in chunks:
        state = read_progress(state, chunk)
    return state


def test_progress_heartbeat_only_when_the_step_moves() -> None:
    state = read(BAR.format(10), BAR.format(10), "\nstill here\n", BAR.format(10))
    assert state.now.heartbeats == 1
    assert read_progress(state, BAR.format(11)).now.heartbeats == 2


def test_progress_two_counters_that_disagree_are_no_movement() -> None:
    lines = BAR.format(10) + "\n[Rank 0] step=3, skipped=0, lr=[1e-05]\n"
    assert read(lines).now.heartbeats == 2
    assert read(lines, lines, lines).now.heartbeats == 2
    assert read(lines).progress.step == 10


def test_progress_evaluation_bar_without_label_during_training_is_no_step() -> None:
    train = "  5%|▌ | 50/1000 [10:00<3:10:00, 12.00s/it]"
    state = read(
        f"\r{train}\n{{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.5}}\n", "\r 10%|█ | 3/30 [00:03<00:27,  1.0it/s]"
    )
    assert (state.phase, state.progress.step, state.progress.total_steps) == ("eval", 50, 1000)
    state = read_progress(state, "\r 20%|██ | 6/30 [00:06<00:24,  1.0it/s]")
    assert (state.phase, state.now.heartbeats) == ("eval", read_progress(START, "").now.heartbeats + 2)
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


def test_progress_snapshot_survives_json() -> None:
    state = read(BAR.format(10), "\n{'loss': 0.5, 'epoch': 0.5}\n", " 20%|██ | 6/30 [00:06<00:24,  1.0it/s]")
    encoded = msgspec.json.encode(state)
    assert msgspec.json.decode(encoded, type=ProgressState) == state
    assert len(encoded) < 4000


def test_progress_loss_whose_digits_may_go_on_is_not_news_yet() -> None:
    state = read_progress(START, "step 8 loss=0.2500\nstep 9 loss=0.")
    assert (state.progress.step, state.progress.loss) == (9, 0.25)
    state = read_progress(state, "75")
    assert state.progress.loss == 0.25
    assert read_progress(state, "\n").progress.loss == 0.75
    assert read_progress(START, "step 9 loss=0.75\x1b[0m").progress.loss == 0.75


def test_progress_of_each_case_is_the_same_in_pieces() -> None:
    """What it is, the goldens of the verb say."""
    for name, text in progress_cases().items():
        size = 13 if len(text) < 2000 else 211
        parts = read(*(text[at : at + size] for at in range(0, len(text), size)), "\n")
        assert parts == read(text, "\n"), name


def test_progress_of_a_pair_is_found_in_a_long_text_whose_other_lines_have_dates_and_paths() -> None:
    quiet = "".join(f"2026/01/{n % 28 + 1:02d} read /data/{n}/{n}/x of disk\n" for n in range(400))
    state = read(quiet + "".join(f"{n} / 90   {3 - n / 100:.4f}\n" for n in (40, 41, 42)) + quiet)
    assert (state.progress.step, state.progress.total_steps) == (42, 90)


def test_progress_of_a_bar_within_a_record_is_read_redraw_by_redraw() -> None:
    bar = "\rsteps: 4/9 [00:01<00:02, 2.0it/s]\rsteps: 5/9 [00:02<00:02, 2.0it/s, loss=0.5]"
    state = read(json.dumps({"log": f"{bar}\n"}) + "\n")
    assert (state.progress.step, state.progress.loss, state.now.heartbeats) == (5, 0.5, 2)


def test_progress_micro_batches_are_a_sign_of_life_beside_the_steps() -> None:
    """Of such counts eight make an optimizer step."""

    def accumulated(count: int) -> int:
        step = "optimizer step {}/100 | lr 1e-4 | 4.00 s/optimizer step\n"
        text = (
            f"micro-batch {i}/800 | loss 0.5\n{step.format(i // 8) if i % 8 == 0 else ''}" for i in range(1, count + 1)
        )
        return read("".join(text)).now.heartbeats

    assert accumulated(29) == accumulated(24) + 5


def test_progress_nan_is_told_from_the_step_of_the_run() -> None:
    """It said "NaN since step 10" of step 60: the step within the epoch."""
    text = "".join(
        f"\rEpoch {epoch}/4: {2 * i:3d}%|##| {i}/50 [00:10<00:20, 2.00it/s, loss={'nan' if epoch == 2 and i > 9 else 0.5}]"
        for epoch in (1, 2)
        for i in range(1, 51)
    )
    losses = read(f"{text}\n").now.losses
    assert (losses.nan_from, losses.nan_steps) == (60, 41)
