"""A reading with its chart over time, and a fact: what the GPU page and the host page consist of."""

import math

import msgspec

from ...model.health import Level
from ...model.machine_details import Traffic
from ...model.text.memory_words import GIB
from .. import quantity
from ..state.level import ALL_SAFE, Bounds

STALE_S = 5.0
"""Age of details in seconds from which they are shown with their age."""


READING = "Reading …"
LATE = "Not known: this run's supervisor does not read it (it may be of an older trainwatch)"


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """``text``: the value of now; ``top``, ``bottom``: labels of the ends of its axis.

    ``series``: metric of the history; ``recent``: key of values that only the open page has seen. ``high`` None: the
    largest value; ``high_text`` makes its label.
    """

    title: str
    text: str
    level: Level = "safe"
    series: str | None = None
    recent: str | None = None
    now: float | None = None
    low: float = 0.0
    high: float | None = 100.0
    bounds: Bounds = ALL_SAFE
    unit: str = "%"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A value without a chart. ``level`` colours it."""

    label: str
    text: str
    level: Level = "safe"


def axis_label(value: float, unit: str) -> str:
    """The end of an axis in at most 8 cells: 100 %, 16 GiB, 450 W, 3,105, 1.2 GB/s."""
    if unit == "GiB":
        return f"{_short(value / GIB)} GiB"
    if unit in {"B", "B/s"}:
        for factor, name in quantity.SIZE_UNITS:
            if abs(value) >= factor * 0.9995:
                return f"{_short(value / factor)} {name}{unit[1:]}"
        return f"{value:.0f} {unit}"
    shown = f"{value:,.0f}" if unit == "MHz" else f"{_short(value)} {unit}"
    return shown.strip()


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 … : the end of an axis that does not move with every value."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _short(value: float) -> str:
    """Two digits: 0.02, 0.5, 1.2, 16, 450."""
    if abs(value) >= 9.95 or value == round(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.1g}"


def rate(bytes_per_s: float | None) -> str:
    """8.60 MB/s, 0 B/s; ``–`` if unknown."""
    if bytes_per_s is None or not math.isfinite(bytes_per_s):
        return quantity.UNKNOWN
    return f"{quantity.size(bytes_per_s)}/s"


def both_ways(traffic: Traffic) -> float | None:
    """Sum of the two directions; None if one is unknown."""
    if traffic.received is None or traffic.sent is None:
        return None
    return traffic.received + traffic.sent


def command(words: str | None) -> str:
    """A command with the name of its program instead of the program's path; ``–`` if unknown."""
    if not words:
        return quantity.UNKNOWN
    program, _, rest = words.partition(" ")
    return f"{program.rpartition('/')[2] if program.startswith('/') else program} {rest}".strip()


def number(value: float | None, unit: str) -> str:
    """2,706 MHz; ``–`` if unknown."""
    return quantity.UNKNOWN if value is None else f"{value:,.0f} {unit}"


def whether(value: bool | None, yes: str = "on", no: str = "off") -> str:
    """on, off, or ``–`` if unknown."""
    return quantity.UNKNOWN if value is None else yes if value else no
