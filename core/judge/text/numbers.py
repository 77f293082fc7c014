"""Numbers as trainers print them: thousands separators, SI suffixes, clock times, rates."""

from functools import lru_cache

from ...model.text.patterns import LazyPattern

NUMBER = r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
"""A real number, possibly grouped by commas. The same as ``NUMBER`` in ``configs/log_shapes.toml``."""

_OBJECTS = ("ensor(", "rray(", "loat(", "oat16(", "oat32(", "oat64(", "int32(", "int64(", "ecimal(", "calar(", "umpy=")
_OBJECT = LazyPattern(
    r"(?:\b(?:np|numpy|jnp|torch|tf|mx)\.)?(?<!\w)"
    r"(?:[tT]ensor|(?:Device|ND)?[aA]rray|b?float\d*|u?int\d+|Scalar|Decimal)\("
    rf"(?:(?:[^()]|\([^()]{{0,80}}\)){{0,80}}?\bvalue\s?=)?\s*['\"\[]*\s*(?P<value>{NUMBER}|[-+]?(?:nan|inf))['\"\]]*"
    r"(?:\s*,(?:[^()]|\([^()]{0,80}\)){0,200})?\)"
    rf"|<tf\.\w+[^>]{{0,200}}\bnumpy=(?P<eager>{NUMBER}|[-+]?(?:nan|inf))>"
)
"""A number as the object that holds it prints itself: ``tensor(0.5, device='cuda:0')``, ``np.float32(0.5)``."""


def unwrapped(line: str) -> str:
    """The line with plain numbers in place of the objects that hold them."""
    for name in _OBJECTS:
        if name in line:
            return _OBJECT.sub(lambda found: found["value"] or found["eager"], line)
    return line


EXACT_DIGITS = 16
"""Whole numbers with fewer digits are exact as a float."""
_SI = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE = LazyPattern(
    r"\s*(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?P<si>[kMGT]?)(?:(?P<per>s)\s?/\s?(?P<a>[^\s\],]+)|\s?"
    r"(?P<b>[^\d\s/\],]*)/s(?:ec)?)"
)
_CLOCK = LazyPattern(r"(?:(?P<d>\d+)(?:\s?d| days?,)\s*)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)$")
_TIME_UNITS = {
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}


def parse_number(text: str) -> float | None:
    """``1,234.5e-3`` as a float; None for ``nan``, ``inf`` and everything else."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value - value == 0.0 else None


def parse_count(text: str) -> int | None:
    """``12.9k`` as 12900; None if it is not a count (``?``)."""
    if len(text) < EXACT_DIGITS and text.isdecimal():
        return int(text)
    factor = _SI.get(text[-1:], 1.0)
    value = parse_number(text[:-1] if factor != 1.0 else text)
    return None if value is None else round(value * factor)


def parse_clock(text: str) -> float | None:
    """``1:02:03``, ``17:21``, ``2 days, 1:00:00`` or ``39s`` in seconds; None if it is not a time (``?``)."""
    parts = text.split(":")
    try:
        if len(parts) == 2:
            return int(parts[0]) * 60 + float(parts[1])
        if len(parts) == 3 and parts[0].isdigit():
            return int(parts[0]) * 3600 + int(parts[1]) * 60 + float(parts[2])
    except ValueError:
        return None
    text = text.strip()
    found = _CLOCK.match(text)
    if found is None:
        return seconds_of(text[:-1], "s") if text.endswith("s") else None
    days, hours, minutes, seconds = (parse_number(part or "0") for part in found.group("d", "h", "m", "s"))
    return (days or 0.0) * 86400 + (hours or 0.0) * 3600 + (minutes or 0.0) * 60 + (seconds or 0.0)


@lru_cache(maxsize=256)
def parse_rate(text: str) -> tuple[float | None, str]:
    """Seconds per unit, and the unit: ``2.00s/it`` → (2.0, "it"); ``4.0it/s`` → (0.25, "it"); ``?it/s`` → (None, …)."""
    found = _RATE.match(text)
    if found is None:
        return None, text.strip().removeprefix("?").removesuffix("/s").removeprefix("s/").strip()
    value, si, per, a, b = found.group("value", "si", "per", "a", "b")
    number = (parse_number(value) or 0.0) * _SI.get(si, 1.0)
    if per:
        return number, a
    return (1.0 / number if number > 0 else None), b


def seconds_of(value: str, unit: str) -> float | None:
    """A duration in seconds, e.g. ("51.10", "ms"); None if either is unknown."""
    number, factor = parse_number(value), _TIME_UNITS.get(unit or "s")
    return None if number is None or factor is None else number * factor
