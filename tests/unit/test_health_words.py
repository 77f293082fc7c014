"""A reading beyond its limit as a clause: what it is, its value, its limit."""

import pytest

from trainwatch.core.model.progress import Level, health_clause, reading_name
from trainwatch.core.model.settings import Health
from trainwatch.core.views.state.run_progress import bounds_of

GIB = 2.0**30


@pytest.mark.parametrize(
    ("metric", "value", "unit", "level", "limit", "words"),
    [
        ("gpu3.temp", 86.4, "°C", "danger", 85.0, "GPU 3 too hot: 86 °C (limit 85)"),
        ("gpu0.temp", 81.0, "°C", "warning", 80.0, "GPU 0 is hot: 81 °C (limit 80)"),
        ("gpu12.vram", 99.2, "%", "warning", 98.0, "GPU 12 memory nearly full: 99 % (limit 98 %)"),
        ("ram_available", 1.5 * GIB, "B", "danger", 4 * GIB, "almost no RAM available: 1.50 GiB (limit 4.00 GiB)"),
        ("disk_free", 1.2e9, "B", "danger", 2e9, "disk nearly full: 1.20 GB (limit 2.00 GB)"),
        ("swap_used", 0.4 * GIB, "B", "safe", None, "swap used 0.40 GiB (safe)"),
    ],
)
def test_a_reading_beyond_its_limit_is_told_with_value_and_limit(
    metric: str, value: float, unit: str, level: Level, limit: float | None, words: str
) -> None:
    assert health_clause(metric, value, unit, level, limit) == words


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("gpu3.temp", "GPU 3 temperature"),
        ("disk_free", "disk free"),
        ("gpu12.lost", "GPU 12 lost"),
        ("gpu0.slowed", "GPU 0 slowed down"),
        ("termination", None),
        ("lost", None),
        ("my.temp", None),
    ],
)
def test_readings_and_faults_of_gpus_have_names_for_people(metric: str, name: str | None) -> None:
    assert reading_name(metric) == name


@pytest.mark.parametrize(
    ("row", "level", "limit"),
    [
        ("temp", "danger", 85.0),
        ("temp", "warning", 75.0),
        ("temp", "safe", None),
        ("ram_available", "danger", 4e9),
        ("vram", "warning", 98.0),
        ("vram", "underused", None),
    ],
)
def test_the_limit_is_the_bound_between_the_level_and_the_milder_one(
    row: str, level: Level, limit: float | None
) -> None:
    found = bounds_of(Health(), None)[row].limit(level)
    assert found == (None if limit is None else pytest.approx(limit))
