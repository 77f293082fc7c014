"""The step and the epoch that a trainer stores under a name of its own."""

import pytest

from trainwatch.core.checkpoints.formats.tensor_file import EPOCH_KEYS, STEP_KEYS, epoch_keys, step_keys


@pytest.mark.parametrize(
    "name", ["iter_num", "stepCount", "train_step", "CURRENT_ITERATION", "global-iter", "steps_done", "update_count"]
)
def test_a_word_for_steps_with_words_that_change_nothing_is_a_step(name: str) -> None:
    assert step_keys([name])[-1] == name
    assert epoch_keys([name]) == EPOCH_KEYS


@pytest.mark.parametrize("name", ["EPOCHS_RUN", "epochs_trained", "last_epoch", "currentEpoch", "epoch_idx"])
def test_a_word_for_epochs_with_words_that_change_nothing_is_an_epoch(name: str) -> None:
    assert epoch_keys([name])[-1] == name
    assert step_keys([name]) == STEP_KEYS


@pytest.mark.parametrize(
    "name",
    [
        "max_iters", "num_epochs", "total_steps", "steps_per_epoch", "best_epoch", "warmup_step", "eval_interval",
        "save_every_n_steps", "epochs", "step_size", "stepper", "iter_time", "accumulation_step",
    ],
)  # fmt: skip
def test_another_number_of_steps_or_epochs_is_no_count(name: str) -> None:
    assert step_keys([name]) == STEP_KEYS
    assert epoch_keys([name]) == EPOCH_KEYS


def test_the_usual_name_goes_before_another_one() -> None:
    assert step_keys(["iter_num", "step"])[:2] == STEP_KEYS[:2]
    assert step_keys({1: "a key that is no text", "iter_num": 4}) == (*STEP_KEYS, "iter_num")
