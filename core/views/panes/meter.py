"""One reading with its level: what a row of the GPU and memory panes shows."""

import msgspec

from ...model.health import Level
from ..state.level import ALL_SAFE, Bounds


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is the value with its unit; ``extra``: shown if there is room.

    ``series`` names the metric of its sparkline, drawn from ``low`` to ``high`` and coloured by ``bounds``; the level
    of ``text`` is the judge's near a bound.
    """

    label: str
    text: str
    level: Level
    extra: str = ""
    series: str | None = None
    low: float = 0.0
    high: float | None = 100.0
    bounds: Bounds = ALL_SAFE
