"""Exit status 0 of a bar that begins again in rounds without a number: what its last step says of the end."""

import pytest

from tests.unit.test_judge_endings import SENTENCE, begun, leave, reason, see


def rounds(*ends: int, total: int = 25, loss: bool = True) -> str:
    """A bar that begins again, left at each of ``ends``."""
    text = ""
    for end in ends:
        for step in range(end + 1):
            text += f"\r{100 * step // total:3d}%|###  | {step}/{total} [00:01<00:01,  5.00it/s{', loss=0.5' if loss else ''}]"
        text += "\n"
    return text


@pytest.mark.parametrize("loss", [True, False], ids=["with a loss", "bare"])
@pytest.mark.parametrize(
    ("ends", "place"),
    [
        ((25, 25, 25), "step 75"),
        ((25, 25, 0), "step 50"),
        ((19, 19, 19), "step 19 of 25"),
        ((25, 19, 19), "step 44"),
        ((18, 20, 19), "step 19 of 25"),
    ],
    ids=[
        "whole rounds",
        "a round that is drawn and not begun",
        "rounds that are all left there",
        "the later rounds",
        "rounds of some lengths",
    ],
)
def test_an_end_where_rounds_end_is_finished_with_a_doubt(ends: tuple[int, ...], place: str, loss: bool) -> None:
    world = leave(see(begun(), rounds(*ends, loss=loss)))

    assert world.word == "finished", reason(world)
    assert SENTENCE in reason(world)
    assert place in reason(world)


@pytest.mark.parametrize(
    ("ends", "place"),
    [
        ((12,), "step 12 of 25"),
        ((25, 25, 12), "step 62, 12 of 25 in its round"),
        ((19, 19, 12), "step 12 of 25"),
        ((3, 25, 12), "12 of 25"),
        ((19, 25, 25, 20), "20 of 25"),
    ],
    ids=[
        "in the only round",
        "in the last of whole rounds",
        "before where rounds end",
        "after a bar that was left at once",
        "rounds are whole now",
    ],
)
def test_an_end_before_where_rounds_end_is_early(ends: tuple[int, ...], place: str) -> None:
    world = leave(see(begun(), rounds(*ends)))

    assert world.word == "ended_early", reason(world)
    assert place in reason(world)


def test_an_epoch_with_a_number_that_is_drawn_and_not_begun_is_left() -> None:
    text = "".join(f"Epoch {number}/3\n{rounds(last)}" for number, last in ((1, 25), (2, 25), (3, 0)))
    assert leave(see(begun(), text)).word == "ended_early"


def test_rounds_of_another_length_say_nothing_of_this_one() -> None:
    assert leave(see(begun(), rounds(30, 30, total=40) + rounds(30, total=60))).word == "ended_early"


def test_two_ranks_on_one_terminal_are_no_rounds() -> None:
    """Their bars fall by a step or two, at the beginning by all of it."""
    text = "".join(
        f"\r  8%|#    | {max(0, step)}/25 [00:01<00:01,  5.00it/s, loss=0.5]"
        for number in range(19)
        for step in (number, number - 1)
    )
    assert leave(see(begun(), text)).word == "ended_early"
