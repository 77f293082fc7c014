"""Which attempt came next, also in a journal whose clock went back."""

import random

import pytest

from trainwatch.core.model.attempt import AttemptStory
from trainwatch.core.views.report import Starts


@pytest.mark.parametrize("seed", range(5))
def test_next_attempt_is_the_first_of_the_list_that_is_later(seed: int) -> None:
    dice = random.Random(seed)
    attempts = [AttemptStory(number=dice.randrange(9), t=float(dice.randrange(9)), wall=0.0) for _ in range(12)]
    starts = Starts(attempts)
    for each in attempts:
        assert starts.after(each) == next((a for a in attempts if a.number > each.number), None)
        assert starts.next_t(each.t) == next((a.t for a in attempts if a.t > each.t), None)
    assert Starts(()).next_t(0.0) is None
