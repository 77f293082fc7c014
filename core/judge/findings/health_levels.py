"""Health levels of temperature, memory and disk, with hysteresis. Bounds come from ``[health]``.

With the profile ``stable`` GPU memory has a lower bound, because that profile is meant to leave room. A value on a
bound belongs to the milder level. A worse level must hold for a moment and a better one needs a margin, so that a value
near a bound does not change its level all the time.
"""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ...model.health import VRAM_STABLE_PCT, Level
from ...model.observation import GpuSample, HostSample
from ...model.settings import Health as HealthSettings
from ...model.text.health_words import health_clause

HOLD_S = 10.0
"""How long a new level must hold before it is reported."""
MARGIN = 0.02
"""Share of a bound by which a value must get better before its level does."""

ORDER: dict[Level, int] = {"safe": 0, "underused": 0, "unknown": 0, "warning": 1, "danger": 2}


class Metric(msgspec.Struct, frozen=True):
    """One row: values beyond ``warning``/``danger`` are worse; ``falling``: low is bad; ``underused``: room left."""

    unit: str
    warning: float
    danger: float
    falling: bool = False
    underused: float | None = None
    incident_from: Level = "danger"
    """From this level on it is an incident; milder ones are only shown."""


def metrics(settings: HealthSettings, profile: str | None) -> dict[str, Metric]:
    """Return the table for one profile. Keys: metric name without the number of the GPU."""
    vram_warning = VRAM_STABLE_PCT if profile == "stable" else settings.vram_warning_pct
    return {
        "temp": Metric("°C", settings.temp_warning_c, settings.temp_danger_c),
        "vram": Metric("%", vram_warning, FAR, underused=settings.vram_underused_pct, incident_from="warning"),
        "ram_used": Metric("%", settings.ram_warning_pct, settings.ram_danger_pct),
        "ram_available": Metric(
            "B", settings.ram_available_warning_bytes, settings.ram_available_danger_bytes, falling=True
        ),
        "swap_used": Metric("B", settings.swap_warning_bytes, settings.swap_danger_bytes),
        "disk_free": Metric("B", settings.disk_warning_bytes, settings.disk_danger_bytes, falling=True),
    }


FAR = 1e300
"""Above every reading, and still a JSON number."""


class Band(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The level of one metric, and the values between which it stays (inclusive)."""

    level: Level = "unknown"
    low: float = 0.0
    high: float = 0.0
    outside_t: float | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a metric's level."""

    metric: str
    value: float
    unit: str
    level: Level
    before: Level
    alarming: bool = False
    """Bad enough to be an incident."""
    limit: float | None = None
    """The bound that it is beyond."""


Bands = dict[str, Band]
"""By metric (``gpu0.temp``, ``ram_used`` …). Replaced, never changed in place."""


def gpu_values(sample: GpuSample, *, training: bool) -> Iterator[tuple[str, str, float]]:
    """Yield metric, row and value of a GPU sample. VRAM is judged only while training; before, it is always low."""
    for gpu in sample.gpus:
        temp, vram = _names(gpu.index)
        if gpu.temp_c is not None:
            yield temp, "temp", gpu.temp_c
        if training and gpu.own is not False and gpu.mem_used_bytes is not None and gpu.mem_total_bytes:
            yield vram, "vram", 100.0 * gpu.mem_used_bytes / gpu.mem_total_bytes


@lru_cache(maxsize=64)
def _names(index: int) -> tuple[str, str]:
    """Return the names of a GPU's metrics: temperature and memory."""
    return f"gpu{index}.temp", f"gpu{index}.vram"


def host_values(sample: HostSample) -> Iterator[tuple[str, str, float]]:
    """Yield metric, row and value of a host sample."""
    if sample.ram_used_bytes is not None and sample.ram_total_bytes:
        yield "ram_used", "ram_used", 100.0 * sample.ram_used_bytes / sample.ram_total_bytes
    if sample.ram_available_bytes is not None:
        yield "ram_available", "ram_available", sample.ram_available_bytes
    if sample.swap_used_bytes is not None:
        yield "swap_used", "swap_used", sample.swap_used_bytes
    if sample.disk_free_bytes is not None:
        yield "disk_free", "disk_free", sample.disk_free_bytes


def take(
    bands: Bands, values: Iterator[tuple[str, str, float]], table: dict[str, Metric], t: float
) -> tuple[Bands, tuple[Change, ...]]:
    """Update levels from values. Returns the same dict if nothing changed."""
    new: Bands | None = None
    changes: list[Change] = []
    for name, row, value in values:
        band = bands.get(name)
        if band is not None and band.low <= value <= band.high:
            if band.outside_t is not None:
                new = dict(bands) if new is None else new
                new[name] = msgspec.structs.replace(band, outside_t=None)
            continue
        new = dict(bands) if new is None else new
        metric = table[row]
        if band is not None and (band.outside_t is None or t - band.outside_t < HOLD_S):
            new[name] = band if band.outside_t is not None else msgspec.structs.replace(band, outside_t=t)
            continue
        before: Level = band.level if band is not None else "unknown"
        level = level_of(metric, value)
        new[name] = band_of(metric, level)
        if level != before:
            alarming = ORDER[level] >= ORDER[metric.incident_from]
            limit = {"danger": metric.danger, "warning": metric.warning}.get(level)
            changes.append(
                Change(
                    metric=name,
                    value=value,
                    unit=metric.unit,
                    level=level,
                    before=before,
                    alarming=alarming,
                    limit=limit,
                )
            )
    return (bands if new is None else new), tuple(changes)


def level_of(metric: Metric, value: float) -> Level:
    """Return the level of a value, without hysteresis."""
    if metric.falling:
        return "danger" if value < metric.danger else "warning" if value < metric.warning else "safe"
    if value > metric.danger:
        return "danger"
    if value > metric.warning:
        return "warning"
    return "underused" if metric.underused is not None and value < metric.underused else "safe"


def band_of(metric: Metric, level: Level) -> Band:
    """Return where a level holds: from its own bound, widened by the margin on the better side."""
    if metric.falling:
        match level:
            case "danger":
                return Band(level=level, low=-FAR, high=metric.danger * (1.0 + MARGIN))
            case "warning":
                return Band(level=level, low=metric.danger, high=metric.warning * (1.0 + MARGIN))
            case _:
                return Band(level=level, low=metric.warning, high=FAR)
    match level:
        case "danger":
            return Band(level=level, low=metric.danger * (1.0 - MARGIN), high=FAR)
        case "warning":
            return Band(level=level, low=metric.warning * (1.0 - MARGIN), high=metric.danger)
        case "underused":
            assert metric.underused is not None
            return Band(level=level, low=-FAR, high=metric.underused)
        case _:
            low = -FAR if metric.underused is None else metric.underused * (1.0 - MARGIN)
            return Band(level=level, low=low, high=metric.warning)


def sentence(change: Change) -> str:
    """Describe a change: ``GPU 3 too hot: 86 °C (limit 85)``."""
    return health_clause(change.metric, change.value, change.unit, change.level, change.limit)
