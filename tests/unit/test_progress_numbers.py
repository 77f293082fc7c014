"""Numbers as trainers print them."""

import pytest

from trainwatch.core.judge.text.numbers import parse_clock, parse_count, parse_number, parse_rate, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("17:21", 1041.0),
        ("1:02:03", 3723.0),
        ("2 days, 1:00:00", 176400.0),
        ("39s", 39.0),
        ("?", None),
        ("??:??", None),
        ("1:?:03", None),
    ],
)
def test_progress_clock(text: str, seconds: float | None) -> None:
    assert parse_clock(text) == seconds


@pytest.mark.parametrize(
    ("text", "count"), [("1,250", 1250), ("12.9k", 12900), ("3.00", 3), ("9" * 17, 10**17), ("?", None)]
)
def test_progress_count(text: str, count: int | None) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(("text", "number"), [("1,234.5e-3", 1.2345), ("nan", None), ("inf", None), ("x", None)])
def test_progress_number(text: str, number: float | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2.00s/it", (2.0, "it")),
        ("4.0it/s", (0.25, "it")),
        ("1.20ks/it", (1200.0, "it")),
        ("0.0it/s", (None, "it")),
        ("?it/s", (None, "it")),
    ],
)
def test_progress_rate(text: str, rate: tuple[float | None, str]) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(("value", "unit", "seconds"), [("250", "ms", 0.25), ("2", "", 2.0), ("x", "s", None)])
def test_progress_duration(value: str, unit: str, seconds: float | None) -> None:
    assert seconds_of(value, unit) == seconds
