"""Levels of the machine's vital values."""

from typing import Literal

import msgspec

Level = Literal["safe", "warning", "danger", "underused", "unknown"]


class HealthReading(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with its level. ``metric`` names it (``gpu0.temp``, ``ram_used`` …); value None = unknown."""

    metric: str
    value: float | None
    unit: str
    level: Level
