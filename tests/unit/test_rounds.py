"""Moments at which what is periodic is due together."""

from hypothesis import given
from hypothesis import strategies as st

from trainwatch.core.model.rounds import next_round


@given(st.floats(0.0, 1e7), st.sampled_from([0.05, 0.5, 1.0, 4.0]))
def test_next_round_is_ahead_by_one_period_at_most(now: float, period_s: float) -> None:
    due = next_round(now, period_s)
    assert now < due <= now + period_s * 1.000001 + 1e-8


def test_threads_with_periods_that_divide_each_other_are_due_together() -> None:
    assert next_round(17.3, 0.5) == 17.5
    assert next_round(17.6, 0.5) == next_round(17.6, 1.0) == 18.0
