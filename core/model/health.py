"""Levels of the machine's readings."""

from typing import Literal

import msgspec

Level = Literal["safe", "warning", "danger", "underused", "unknown"]
GPU_IS_GONE = ("lost", "needs a reset")
"""How the trouble of a GPU begins that no program can use until it is reset."""
SLOWED_BY_FAULT = frozenset({"hardware slowdown", "thermal (hardware)", "power brake"})
"""Reasons for which the hardware itself slows down: its cooling or power supply, no setting and no power limit."""
VRAM_STABLE_PCT = 95.0
"""VRAM warns from here with the profile ``stable``."""


class HealthReading(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with its level. ``metric`` names it (``gpu0.temp``, ``ram_used`` …); value None = unknown."""

    metric: str
    value: float | None
    unit: str
    level: Level
