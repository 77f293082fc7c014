"""One reading with its level: what a row of the GPU and memory panes shows."""

import msgspec

from ...model.health import Level
from .. import quantity
from ..state.level import ALL_SAFE, Bounds

STALE_S = 5.0
"""Age in seconds from which readings are shown with their age: a poll has a time limit of 3 s, and one may fail."""


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is the value with its unit; ``extra``: shown if there is room.

    ``series`` names the metric of its sparkline, drawn from ``low`` to ``high`` and coloured by ``bounds``; the level
    of ``text`` is the judge's near a bound. ``whole``: 100 % of the series if ``text`` is in per cent and it is not.
    """

    label: str
    text: str
    level: Level
    extra: str = ""
    series: str | None = None
    low: float = 0.0
    high: float | None = 100.0
    bounds: Bounds = ALL_SAFE
    whole: float | None = None


def old_words(age_s: float) -> str | None:
    """``2 min old``; None while the readings are those of now."""
    return f"{quantity.duration(age_s)} old" if age_s > STALE_S else None


def dimmed(meter: Meter) -> Meter:
    """The same reading as one whose level now is not known."""
    return msgspec.structs.replace(meter, level="unknown")
