"""Smoothing of curves, as TensorBoard and wandb do it: an exponential mean that begins at the first value."""

import math
from collections.abc import Sequence

from ...model.ports.screen import Point

LEVELS = (0.0, 0.6, 0.9, 0.97)
"""Shares of the value before that the key ``s`` goes through."""


def smoothed(points: Sequence[Point], share: float) -> tuple[Point, ...]:
    """The same points with exponential means, corrected for the few values at the start. ``share`` 0: as they are.

    The weight of the past is per point, so a chart of many points is smoothed over a shorter time.
    """
    if share <= 0:
        return tuple(points)
    found: list[Point] = []
    mean = weight = 0.0
    for x, _, value, _ in points:
        if not math.isfinite(value):
            continue
        mean = mean * share + value * (1 - share)
        weight = weight * share + (1 - share)
        found.append((x, mean / weight, mean / weight, mean / weight))
    return tuple(found)
