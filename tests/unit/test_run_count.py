"""The step of the whole run: bars that begin again in each epoch, resumed attempts, and what cannot be told."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shipped import read_progress
from trainwatch.core.judge.progress import START, begin_attempt


def bar(label: str, count: int, total: int, post: str = "", left: str = "00:09") -> str:
    """One redraw of a bar as tqdm draws it; the first one has neither pace nor time."""
    clock = f"00:{count % 60:02d}<{left},  1.00it/s" if count else "00:00<?, ?it/s"
    return f"\r{label}{100 * count // total:3d}%|███   | {count}/{total} [{clock}{post}]"


def bars(label: str, first: int, last: int, total: int, post: str = "") -> str:
    return "".join(bar(label, count, total, post) for count in range(first, last + 1)) + "\n"


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
