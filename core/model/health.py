"""Levels of the machine's readings."""

from typing import Literal

import msgspec

Level = Literal["safe", "warning", "danger", "underused", "unknown"]
SLOWED_BY_FAULT = frozenset({"hardware slowdown", "thermal (driver)", "thermal (hardware)", "power brake"})
"""Reasons of throttling that come from cooling or power supply, not from a setting."""
VRAM_STABLE_PCT = 95.0
"""VRAM warns from here with the profile ``stable``."""


class HealthReading(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with its level. ``metric`` names it (``gpu0.temp``, ``ram_used`` …); value None = unknown."""

    metric: str
    value: float | None
    unit: str
    level: Level
