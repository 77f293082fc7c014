"""Exit status 0 of a log that prints an epoch now and then: which printed one is the last of a whole training."""

import pytest

from tests.unit.test_judge_endings import SENTENCE, begun, leave, reason, see
from tests.unit.test_judge_recovery import CUDA, save

LOSSES = "Epoch {}/{} loss: 0.5"
BARE = "Epoch {}/{}"


def each(every: int, *, first: int, until: int, total: int = 100, line: str = LOSSES) -> str:
    """An epoch each so many, from the first one to the last one printed."""
    return "".join(f"{line.format(n, total)}\n" for n in range(first, until + 1, every))


LAST = {
    "each tenth from 0": each(10, first=0, until=90),
    "each tenth from 0, printed as it begins": each(10, first=0, until=90, line=BARE),
    "each tenth from 0, in brackets": each(10, first=0, until=90, line="Epoch [{}/{}], Loss: 0.4321"),
    "each tenth from 0, named the last epoch": each(10, first=0, until=90, total=99),
    "the first of each ten from 1": each(10, first=1, until=91),
    "each thirtieth, from 0 or from 1": each(30, first=30, until=90),
    "each seventh from 0": each(7, first=0, until=98),
}


@pytest.mark.parametrize("text", LAST.values(), ids=LAST)
def test_the_last_epoch_that_a_whole_training_prints_is_its_end_without_a_doubt(text: str) -> None:
    world = leave(see(begun(), text))
    assert world.word == "finished", reason(world)
    assert SENTENCE not in world.text()


def test_the_reason_names_the_epoch() -> None:
    world = leave(see(begun(), each(10, first=0, until=90, line=BARE)))
    assert reason(world) == "exit 0; epoch 90 of 100 is the last printed epoch, within one print interval of the end"


EARLY = {
    "one line is missing, from 0": each(10, first=0, until=80),
    "one line is missing, from 1": each(10, first=1, until=81),
    "the last of each ten is missing, first epoch seen": "Epoch 1/100 loss: 0.5\n" + each(10, first=10, until=90),
    "two lines are missing, from 0 or from 1": each(10, first=10, until=80),
    "each epoch from 0": each(1, first=0, until=98),
    "each epoch from 1": each(1, first=1, until=99),
    "two of three that only the heading counts": "Num Epochs = 3\n"
    + 2 * each(1, first=1, until=100, line="step {}/{}"),
}


@pytest.mark.parametrize("text", EARLY.values(), ids=EARLY)
def test_an_epoch_after_which_another_line_is_due_is_ended_early(text: str) -> None:
    assert leave(see(begun(), text)).word == "ended_early"


def test_if_it_is_open_from_where_they_count_it_is_finished_with_a_doubt() -> None:
    world = leave(see(begun(), each(10, first=10, until=90)))
    assert world.word == "finished"
    assert f"exit 0; {SENTENCE} (epoch 90 of 100)" in reason(world)


@pytest.mark.parametrize(
    ("before", "after"),
    [(each(10, first=0, until=80), LOSSES), ("".join(f"step {n}/100 loss: 0.5\n" for n in range(0, 81, 10)), "step {}/{} loss: 0.5")],
    ids=["epochs", "steps"],
)  # fmt: skip
def test_an_attempt_that_prints_one_line_before_its_end_prints_as_the_one_before_did(before: str, after: str) -> None:
    world = save(see(begun(), before), "out/step-85", 85)
    leave(see(world, CUDA), 1)
    assert world.word == "starting"
    leave(see(world, f"\n{after.format(90, 100)}\n"))
    assert world.word == "finished", reason(world)


def test_time_that_is_to_go_speaks_against_the_last_line() -> None:
    text = each(10, first=0, until=90, line="Epoch {}/{} loss: 0.5 eta: 3:10:00")
    assert leave(see(begun(), text)).word == "ended_early"
