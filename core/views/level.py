"""Levels of readings as the judge wrote them, and the bounds that colour a value it has not spoken of."""

import math

from ..model.health import Level
from ..model.settings import Health
from ..model.story import RunStory

Bounds = tuple[tuple[float, Level], ...]
"""(highest value that still has this level, level), rising; a bound belongs to the milder level."""

_DEFAULTS = Health()
ALL_SAFE: Bounds = ((math.inf, "safe"),)
BOUNDS: dict[str, Bounds] = {
    "util": ((5.0, "underused"), (math.inf, "safe")),
    "vram": ((_DEFAULTS.vram_underused_pct, "underused"), (_DEFAULTS.vram_warning_pct, "safe"), (math.inf, "warning")),
    "temp": ((_DEFAULTS.temp_warning_c, "safe"), (_DEFAULTS.temp_danger_c, "warning"), (math.inf, "danger")),
    "power": ALL_SAFE,
    "ram_used": ((_DEFAULTS.ram_warning_pct, "safe"), (_DEFAULTS.ram_danger_pct, "warning"), (math.inf, "danger")),
    "ram_available": (
        (_DEFAULTS.ram_available_danger_bytes, "danger"),
        (_DEFAULTS.ram_available_warning_bytes, "warning"),
        (math.inf, "safe"),
    ),
    "swap_used": (
        (_DEFAULTS.swap_warning_bytes, "safe"),
        (_DEFAULTS.swap_danger_bytes, "warning"),
        (math.inf, "danger"),
    ),
    "disk_free": (
        (_DEFAULTS.disk_danger_bytes, "danger"),
        (_DEFAULTS.disk_warning_bytes, "warning"),
        (math.inf, "safe"),
    ),
}
SEVERITY: dict[Level, int] = {"unknown": 0, "safe": 1, "underused": 2, "warning": 3, "danger": 4}


def level_in(bounds: Bounds, value: float | None) -> Level:
    """The level that the bounds give a value; unknown for None."""
    if value is None or not math.isfinite(value):
        return "unknown"
    for highest, level in bounds:
        if value <= highest:
            return level
    return bounds[-1][1]


def level_of(story: RunStory, names: tuple[str, ...], bounds: Bounds, value: float | None) -> Level:
    """What the judge said of the first of these metrics (its hysteresis included), else what the bounds say."""
    if value is None:
        return "unknown"
    for name in names:
        reading = story.health.get(name)
        if reading is not None and reading.level != "unknown":
            return reading.level
    return level_in(bounds, value)


def worst(levels: tuple[Level, ...]) -> Level:
    """The most serious of several levels; unknown when there are none."""
    return max(levels, key=SEVERITY.__getitem__, default="unknown")
