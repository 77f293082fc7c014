"""Ticks of the axes: round numbers with their unit, decades of a log scale, steps, times since the start."""

import math

from .. import quantity

ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
SPANS_S = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
)  # fmt: skip
"""Distances of ticks in time, seconds."""


def round_step(span: float, most: int) -> float:
    """The smallest round number that divides ``span`` into at most ``most`` parts."""
    needed = span / max(most, 1)
    if needed <= 0 or not math.isfinite(needed):
        return 1.0
    power = 10.0 ** math.floor(math.log10(needed))
    return next((m * power for m in ROUND if m * power >= needed * (1 - 1e-9)), 10.0 * power)


def ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round values from ``low`` to ``high``, at most ``most`` and one."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most < 1:
        return ()
    step = round_step(high - low, most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(n * step for n in range(first, last + 1))


def log_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Powers of ten between two positive values, every second or third one if they are many; few: 1, 2, 5 of each."""
    if low <= 0 or high <= low or most < 1:
        return ()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**n for n in range(first, last + 1) if low <= 10.0**n <= high]
    if len(decades) >= 2:
        apart = math.ceil(len(decades) / most)
        return tuple(decades[::apart])
    found = [m * 10.0**n for n in range(first, last + 1) for m in (1, 2, 5) if low <= m * 10.0**n <= high]
    return tuple(found[:: math.ceil(len(found) / most)]) if len(found) > 1 else ticks(low, high, most)


def span_ticks(since_s: float, until_s: float, most: int) -> tuple[tuple[float, str], ...]:
    """(seconds, label) of round durations: 0, 20 min, 40 min; 1 h, 1 h 30."""
    if until_s <= since_s or most < 1:
        return ()
    needed = (until_s - since_s) / most
    step = next((s for s in SPANS_S if s >= needed), SPANS_S[-1])
    step *= max(1, math.ceil(needed / step))
    first = math.ceil(since_s / step - 1e-9)
    return tuple((n * step, span_label(n * step)) for n in range(first, math.floor(until_s / step + 1e-9) + 1))


def span_label(seconds: float) -> str:
    """A duration as short as a tick: 0, 30 s, 20 min, 1:30 h, 3 d."""
    whole = round(seconds)
    if whole == 0:
        return "0"
    if abs(whole) < quantity.MINUTE_S or (abs(whole) < quantity.HOUR_S and whole % quantity.MINUTE_S):
        minutes, rest = divmod(whole, quantity.MINUTE_S)
        return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"
    if abs(whole) < quantity.HOUR_S:
        return f"{whole // quantity.MINUTE_S} min"
    hours, rest = divmod(whole, quantity.HOUR_S)
    if abs(whole) >= 2 * quantity.DAY_S and not rest and hours % 24 == 0:
        return f"{hours // 24} d"
    return f"{hours}:{rest // quantity.MINUTE_S:02d} h" if rest else f"{hours} h"


def step_label(step: float) -> str:
    """A step on an axis: 800, 5,000, 12k, 1.25M."""
    for factor, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(step) >= factor:
            shown = step / (1e3 if sign == "k" else factor)
            return f"{shown:.4g}{sign}"
    return f"{step:,.0f}" if step == round(step) else f"{step:.4g}"
