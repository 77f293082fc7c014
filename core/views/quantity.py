"""Numbers as text: sizes, durations, ages and clock times for screens, status lines and reports.

Memory is in GiB (``memory``), as the tools of GPUs have it; files and disks are in GB (``size``), as they are sold.
None becomes ``–``: unknown is never shown as 0. Clock times are local time.
"""

import math
import time

from ..model import text

UNKNOWN = "–"
memory, memory_of, size, size_of, three_digits = text.memory, text.memory_of, text.size, text.size_of, text.three_digits
SIZE_UNITS = text.SIZE_UNITS
MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86400
S_PER_STEP, STEPS_PER_S = "s/step", "steps/s"


def number(value: float | None) -> str:
    """A number without a unit: as ``three_digits``, very small and very large ones with an exponent (2.5e-6)."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        return exponent(value, 2)
    return three_digits(value)


def exponent(value: float, decimals: int) -> str:
    """2.5e-6, with at most so many decimals."""
    mantissa, _, power = f"{value:.{decimals}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"


def count(value: float | None) -> str:
    """A whole number with thousands separators."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{round(value):,}"


def out_of(value: float | None, total: float | None) -> str:
    """``136 of 360``; without a total that is known, or 0, the number alone."""
    return count(value) + (f" of {count(total)}" if total else "")


def percent(value: float | None) -> str:
    """A share in whole percent."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.0f} %"


def share_pct(part: float | None, whole: float | None) -> float | None:
    """In per cent; None if one of them is unknown."""
    return None if part is None or not whole else 100.0 * part / whole


def cores(value: float | None, of: int | None = None) -> str:
    """Processor time a second: 0.00 cores, 0.02 cores, 12.5 cores; with a number of cores: 0.02 of 16 cores."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    shown = f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{shown} of {of} cores" if of else f"{shown} cores"


def duration(seconds: float | None) -> str:
    """A duration: 42 s, 18 min, 5 h 12 m, 3 d 4 h."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    whole = max(0, round(seconds))
    if whole < 2 * MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d} m"
    return f"{whole // DAY_S} d {whole % DAY_S // HOUR_S} h"


def age(seconds: float | None) -> str:
    """An age: just now, 42 s ago, 18 min ago."""
    if seconds is None:
        return UNKNOWN
    return "just now" if seconds < 3 else f"{duration(seconds)} ago"


def countdown(seconds: float | None) -> str:
    """``0:54``, ``12:03``, ``1:02:03``."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, math.ceil(seconds))
    hours, rest = divmod(whole, HOUR_S)
    minutes, secs = divmod(rest, MINUTE_S)
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"


def clock(wall: float | None, now_wall: float | None = None, *, seconds: bool = False) -> str:
    """Time of day 04:12, with the weekday if it is not the day of ``now_wall``, with the date after six days."""
    if wall is None or not math.isfinite(wall):
        return UNKNOWN
    try:
        moment = time.localtime(wall)
    except (OverflowError, ValueError, OSError):
        return UNKNOWN
    if not 1 <= moment.tm_year <= 9999:
        return UNKNOWN
    text = time.strftime("%H:%M:%S" if seconds else "%H:%M", moment)
    if now_wall is None:
        return text
    apart = abs(_day(wall) - _day(now_wall))
    if apart == 0:
        return text
    return f"{time.strftime('%a' if apart < 7 else '%d %b', moment)} {text}"


def _day(wall: float) -> int:
    return int((wall + time.localtime(wall).tm_gmtoff) // DAY_S)


def pace(sec_per_step: float | None, unit: str = "") -> str:
    """2.50 s/step, or 8.30 steps/s if a step takes less than a second. ``unit``: the one that it is shown in anyway."""
    if sec_per_step is None or not math.isfinite(sec_per_step) or sec_per_step <= 0:
        return f"{UNKNOWN} {unit or S_PER_STEP}"
    unit = unit or pace_unit(sec_per_step)
    return f"{three_digits(sec_per_step if unit == S_PER_STEP else 1 / sec_per_step)} {unit}"


def pace_unit(sec_per_step: float) -> str:
    """s/step if a step takes a second or longer, else steps/s."""
    return STEPS_PER_S if float(f"{sec_per_step:.3g}") < 1 else S_PER_STEP


def plural(number: float, one: str, many: str | None = None) -> str:
    """A count with its noun: "1 restart", "2 restarts". ``many``: the plural if it is not ``one`` with an s."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
