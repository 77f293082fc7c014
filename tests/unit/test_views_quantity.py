"""One spelling of numbers."""

import math

import pytest

from trainwatch.core.views import quantity

WALL = 1_763_767_200.0  # Friday 2025-11-21 23:20 UTC


pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0912, "0.0912"), (2.5, "2.50"), (17.04, "17.0"), (291.4, "291"), (6120, "6,120"), (0, "0"), (99.96, "100"),
     (1e-4, "0.000100"), (1e-9, "0.000000"), (math.inf, "–"), (math.nan, "–")],
)  # fmt: skip
def test_numbers_are_rounded_to_three_digits(value: float, said: str) -> None:
    assert quantity.three_digits(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (870e6, "870 MB"), (17.1e9, "17.1 GB"), (999.9e6, "1.00 GB"),
     (2.5e12, "2.50 TB")],
)  # fmt: skip
def test_sizes_are_shown_in_decimal_units(value: float | None, said: str) -> None:
    assert quantity.size(value) == said


def test_size_of_shows_both_sizes_in_one_unit() -> None:
    assert quantity.size_of(12.1e9, 30e9) == "12.1 of 30.0 GB"
    assert quantity.size_of(283e6, 8e9) == "0.28 of 8.00 GB"
    assert quantity.size_of(None, 8e9) == "–"
    assert quantity.size_of(283e6, None) == "283 MB"


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "–"), (math.nan, "–"), (0, "0 GiB"), (30 * 2**20, "30 MiB"), (0.26 * 2**30, "0.26 GiB"),
     (15.99 * 2**30, "16.0 GiB"), (128 * 2**30, "128 GiB"), (9.996 * 2**30, "10.0 GiB")],
)  # fmt: skip
def test_memory_is_shown_in_binary_units_as_the_tools_of_gpus_have_it(value: float | None, said: str) -> None:
    assert quantity.memory(value) == said


def test_memory_of_shows_both_amounts_in_gib() -> None:
    assert quantity.memory_of(14.2 * 2**30, 15.9 * 2**30) == "14.2 of 15.9 GiB"
    assert quantity.memory_of(None, 8e9) == "–"
    assert quantity.memory_of(2**30, None) == "1.00 GiB"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0, "0 s"), (96.4, "96 s"), (119.6, "2 min"), (18 * 60, "18 min"), (5 * 3600 + 720, "5 h 12 m"),
     (76 * 3600, "3 d 4 h"), (-4, "0 s")],
)  # fmt: skip
def test_durations_are_shown_in_readable_units(seconds: float | None, said: str) -> None:
    assert quantity.duration(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(53.2, "0:54"), (723, "12:03"), (3723, "1:02:03"), (-1, "0:00")])
def test_countdown_rounds_up(seconds: float, said: str) -> None:
    assert quantity.countdown(seconds) == said


@pytest.mark.parametrize(
    ("later_s", "said"),
    [(0, "23:20"), (5 * 3600, "Sat 04:20"), (9 * 86400, "30 Nov 23:20"), (-86400, "Thu 23:20")],
)
def test_clock_shows_the_date_of_another_day(later_s: float, said: str) -> None:
    assert quantity.clock(WALL + later_s, WALL) == said


def test_clock_of_an_invalid_time_is_unknown() -> None:
    assert quantity.clock(None) == quantity.clock(math.inf) == quantity.clock(1e30) == "–"


@pytest.mark.parametrize(
    ("sec_per_step", "said"),
    [
        (None, "– s/step"),
        (2.5, "2.50 s/step"),
        (1.0, "1.00 s/step"),
        (0.9, "1.11 steps/s"),
        (0.012, "83.3 steps/s"),
        (0, "– s/step"),
    ],
)
def test_pace_is_seconds_per_step_or_steps_per_second(sec_per_step: float | None, said: str) -> None:
    assert quantity.pace(sec_per_step) == said
