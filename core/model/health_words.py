"""A reading that is worse than its limit, as a clause for people."""

from .progress import Level
from .text import memory, size

ROWS: dict[str, tuple[str, str, str]] = {
    "temp": ("{device} is hot", "{device} too hot", "{device} temperature"),
    "vram": ("{device} memory nearly full", "{device} memory full", "{device} memory"),
    "ram_used": ("RAM filling up", "RAM nearly full", "RAM used"),
    "ram_available": ("little RAM available", "almost no RAM available", "RAM available"),
    "swap_used": ("swap in use", "much swap in use", "swap used"),
    "disk_free": ("disk filling up", "disk nearly full", "disk free"),
}
"""By row: what it is at the level warning, at danger, and otherwise."""


FAULTS = {"lost": "GPU {} lost", "slowed": "GPU {} slowed down"}
"""By the end of an incident's class."""


def reading_name(metric: str) -> str | None:
    """``GPU 3 temperature``, ``RAM used``, ``GPU 3 lost``; None if it is neither a reading nor a fault of a GPU."""
    device, _, row = metric.rpartition(".")
    number = device.removeprefix("gpu")
    if row in ROWS and (not device or number.isdecimal()):
        return ROWS[row][2].format(device=f"GPU {number}")
    return FAULTS[row].format(number) if row in FAULTS and number.isdecimal() else None


def amount(row: str, value: float, unit: str) -> str:
    """A value with its unit: memory in GiB, room on a disk in GB."""
    if unit != "B":
        return f"{value:.0f} {unit}"
    return size(value) if row == "disk_free" else memory(value)


def health_clause(metric: str, value: float, unit: str, level: Level, limit: float | None) -> str:
    """``GPU 3 too hot: 86 °C (limit 85)``; a level that is none of the bad ones has its name for a limit.

    ``metric``: ``gpu3.temp``, ``ram_used`` …; ``limit``: the bound of the level, in ``unit``.
    """
    device, _, row = metric.rpartition(".")
    number = device.removeprefix("gpu")
    words = ROWS[row][{"warning": 0, "danger": 1}.get(level, 2)].format(device=f"GPU {number}")
    if level not in {"warning", "danger"}:
        return f"{words} {amount(row, value, unit)} ({level})"
    said = "" if limit is None else f" (limit {_limit(row, limit, unit)})"
    return f"{words}: {amount(row, value, unit)}{said}"


def _limit(row: str, limit: float, unit: str) -> str:
    return f"{limit:.0f}" if unit == "°C" else amount(row, limit, unit)
