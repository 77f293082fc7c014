"""What printed steps and losses prove about a resume."""

from pathlib import Path

import pytest

from trainwatch.core.app.rehearsal_verdict import (
    Printed,
    StepsReader,
    of_no_resume,
    prove_loss,
    prove_steps,
    with_loss,
    with_verified,
)
from trainwatch.core.model.launch import LossProof, StepProof
from trainwatch.core.model.settings import Settings


def lines(first: int, last: int, *, every: int = 1, loss_from: int | None = None) -> list[Printed]:
    """Training lines whose loss falls with the trained steps; ``loss_from``: the steps trained before the first one."""
    behind = 0 if loss_from is None else first - every - loss_from
    return [Printed(step, 4.0 / (1 + (step - behind) / 10)) for step in range(first, last + 1, every)]


@pytest.mark.parametrize(
    ("after", "holds"),
    [
        (lines(41, 46), True),
        ([Printed(0, None), *lines(41, 46)], True),  # a bar that is drawn at 0 and jumps
        (lines(40, 46), True),  # the step of the checkpoint is printed again
        (lines(1, 6), False),
        (lines(10, 60, every=10), False),  # begins anew, and prints every tenth step
        (lines(400, 406), None),  # further than the killed attempt: what that means is not known
        ([], None),
    ],
)
def test_steps_after_a_resume_continue_begin_anew_or_cannot_be_told(after: list[Printed], holds: bool | None) -> None:
    assert prove_steps(lines(1, 53), after, 40).holds is holds


@pytest.mark.parametrize(
    ("after", "holds"),
    [
        (lines(41, 46), True),
        (lines(41, 46, loss_from=0), False),  # counts on, and learns from the beginning
        (lines(41, 46, loss_from=2), False),
        ([Printed(step, None) for step in range(41, 47)], None),
    ],
)
def test_a_loss_that_begins_again_shows_that_the_weights_were_not_loaded(
    after: list[Printed], holds: bool | None
) -> None:
    proof = prove_loss(lines(1, 53), after, 40)
    assert proof.holds is holds
    assert (holds is False) == ("the weights were not loaded" in proof.why)


def test_a_count_that_begins_again_while_the_loss_continues_cannot_be_told() -> None:
    within_epoch = [Printed(step, line.loss) for step, line in enumerate(lines(41, 46), 1)]
    steps, loss = prove_steps(lines(1, 53), within_epoch, 40), prove_loss(lines(1, 53), within_epoch, 40)
    assert (steps.holds, loss.holds) == (False, True)
    assert with_loss(steps, loss).holds is None
    assert (
        with_loss(prove_steps(lines(1, 53), lines(1, 6), 40), prove_loss(lines(1, 53), lines(1, 6), 40)).holds is False
    )


def test_what_the_judge_verified_counts_where_the_printed_steps_leave_it_open() -> None:
    said = "snapshot.pt holds epoch 2, first step after it 25"
    open_ = StepProof(why="too early to tell")
    assert with_verified(open_, said) == StepProof(holds=True, why=said)
    assert with_verified(open_, "") == open_
    began_anew = StepProof(holds=False, why="it began at step 1")
    assert with_verified(began_anew, said) == began_anew


def test_the_log_after_the_kill_counts_its_epochs_as_the_one_before(tmp_path: Path) -> None:
    line = "[RANK 0] Epoch {} | Step {}/12 | Loss 0.5\n"
    (tmp_path / "1").write_text("".join(line.format(epoch, step) for epoch in (0, 1) for step in range(1, 13)))
    (tmp_path / "2").write_text(line.format(1, 1))
    first = StepsReader(tmp_path / "1", Settings())
    first.read()
    assert [each.step for each in StepsReader(tmp_path / "2", Settings(), first).read()] == [13]


def test_rounds_without_a_number_after_the_kill_are_not_counted_from_the_beginning(tmp_path: Path) -> None:
    """Rehearse said NOT SAFE, "it began at step 3", of a script that resumes by itself."""
    rounds = "".join(f"\rround: 12%|1 | {n}/25 [00:01<00:04, 4.95it/s]" for n in (*range(1, 26), 1, 2, 3))
    (tmp_path / "1").write_text(f"{rounds}\n")
    (tmp_path / "2").write_text("\rround: 12%|1 | 3/25 [00:01<00:04, 4.95it/s]\n")
    first = StepsReader(tmp_path / "1", Settings())
    first.read()
    assert [each.step for each in StepsReader(tmp_path / "2", Settings(), first, 28).read()] == [None]


def test_an_attempt_without_its_checkpoint_says_nothing_against_the_script() -> None:
    steps, loss = StepProof(holds=False, why="began at 1"), LossProof(holds=False, why="began again")

    found_steps, found_loss = of_no_resume(steps, loss, "ckpt_50.npz")

    assert found_steps.holds is None
    assert found_loss.holds is None
    assert "ckpt_50.npz" in found_steps.why
    going_on = StepProof(holds=True, why="it goes on by itself")
    assert of_no_resume(going_on, LossProof(holds=True), "ckpt_50.npz") == (going_on, LossProof(holds=True))
