"""One spelling of numbers."""

import math

import pytest

from trainwatch.core.views import quantity

WALL = 1_763_767_200.0  # Friday 2025-11-21 23:20 UTC


pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (870e6, "870 MB"), (17.1e9, "17.1 GB"), (999.9e6, "1.00 GB"),
     (2.5e12, "2.50 TB")],
)  # fmt: skip
def test_sizes_are_shown_in_decimal_units(value: float | None, said: str) -> None:
    assert quantity.size(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0, "0 s"), (96.4, "96 s"), (119.6, "2 min"), (18 * 60, "18 min"), (5 * 3600 + 720, "5 h 12 m"),
     (76 * 3600, "3 d 4 h"), (-4, "0 s")],
)  # fmt: skip
def test_durations_are_shown_in_readable_units(seconds: float | None, said: str) -> None:
    assert quantity.duration(seconds) == said


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
