"""Levels of readings: by the bounds of the run's settings, and near a bound as the judge has them."""

import math
from collections.abc import Mapping
from functools import lru_cache

from ...model.health import VRAM_STABLE_PCT, Level
from ...model.settings import Health
from ...model.story import RunStory

Bounds = tuple[tuple[float, Level], ...]
"""(highest value that still has this level, level), rising; a value at a bound has the milder level."""

ALL_SAFE: Bounds = ((math.inf, "safe"),)
MARGIN = 0.02
"""Share of a value within which the judge's level is shown: at a bound the level would flap."""


@lru_cache(maxsize=64)
def bounds_of(health: Health, profile: str | None) -> Mapping[str, Bounds]:
    """Bounds by row, for the settings and the profile of a run."""
    vram = VRAM_STABLE_PCT if profile == "stable" else health.vram_warning_pct
    rising: dict[str, tuple[float, float]] = {
        "temp": (health.temp_warning_c, health.temp_danger_c),
        "ram_used": (health.ram_warning_pct, health.ram_danger_pct),
        "swap_used": (health.swap_warning_bytes, health.swap_danger_bytes),
    }
    falling: dict[str, tuple[float, float]] = {
        "ram_available": (health.ram_available_danger_bytes, health.ram_available_warning_bytes),
        "disk_free": (health.disk_danger_bytes, health.disk_warning_bytes),
    }
    return {
        "util": ((_below(health.util_underused_pct), "underused"), (math.inf, "safe")),
        "vram": ((_below(health.vram_underused_pct), "underused"), (vram, "safe"), (math.inf, "warning")),
        "power": ALL_SAFE,
        **{row: ((one, "safe"), (two, "warning"), (math.inf, "danger")) for row, (one, two) in rising.items()},
        **{
            row: ((_below(one), "danger"), (_below(two), "warning"), (math.inf, "safe"))
            for row, (one, two) in falling.items()
        },
    }


def _below(bound: float) -> float:
    """The highest value below a bound: one at it has the milder level."""
    return math.nextafter(bound, -math.inf)


BOUNDS = bounds_of(Health(), None)
SEVERITY: dict[Level, int] = {"unknown": 0, "safe": 1, "underused": 2, "warning": 3, "danger": 4}


def level_in(bounds: Bounds, value: float | None) -> Level:
    """The level of a value; ``unknown`` for None."""
    if value is None or not math.isfinite(value):
        return "unknown"
    for highest, level in bounds:
        if value <= highest:
            return level
    return bounds[-1][1]


def limit_in(bounds: Bounds, level: Level) -> float | None:
    """The bound that a value of this level is beyond; None if it has none."""
    at = next((i for i, (_, name) in enumerate(bounds) if name == level), None)
    if at is None or level in {"safe", "underused", "unknown"}:
        return None
    falling = bounds[-1][1] == "safe"
    return bounds[at if falling else at - 1][0]


def level_of(story: RunStory, names: tuple[str, ...], bounds: Bounds, value: float | None) -> Level:
    """The level of the current value; near a bound, the judge's level of the first of these metrics.

    The judge waits before it reports a change, so its level may not fit the newest value.
    """
    present = level_in(bounds, value)
    if value is None or present == "unknown":
        return "unknown"
    judged = next((story.health[n].level for n in names if n in story.health), "unknown")
    near = {level_in(bounds, value * (1.0 - MARGIN)), level_in(bounds, value * (1.0 + MARGIN))}
    return judged if judged in near else present


def worst(levels: tuple[Level, ...]) -> Level:
    """The most serious of several levels; ``unknown`` if there are none."""
    return max(levels, key=SEVERITY.__getitem__, default="unknown")
