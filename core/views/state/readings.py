"""The readings of now with their levels: the judge's levels are of the moment at which they changed."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...model.health import HealthReading
from ...model.incident import Incident
from ...model.situation import Situation
from ...model.story import RunStory
from ...model.text.health_words import health_clause
from .. import quantity
from .level import Bounds, level_of, limit_in
from .run_progress import bounds_now

FRESH_S = 60.0
"""An older sample says nothing about now; machines are sampled every second or two."""

if TYPE_CHECKING:
    from ...model.observation import GpuSample, HostSample


def current_readings(
    story: RunStory, gpu: "GpuSample | None", host: "HostSample | None", bounds: Mapping[str, Bounds]
) -> list[HealthReading]:
    """One for each metric that was judged and each utilisation that is read, by metric.

    A metric that the newest samples do not have keeps the value at which its level changed last.
    """
    found = dict(story.health)
    for metric, value, unit in _values(gpu, host):
        row = metric.rpartition(".")[2]
        if metric in found or row == "util":
            level = level_of(story, (metric,), bounds[row], value)
            found[metric] = HealthReading(metric=metric, value=value, unit=unit, level=level)
    return [found[metric] for metric in sorted(found)]


def _values(gpu: "GpuSample | None", host: "HostSample | None") -> Iterator[tuple[str, float, str]]:
    for reading in gpu.gpus if gpu is not None else ():
        name = f"gpu{reading.index}"
        if reading.temp_c is not None:
            yield f"{name}.temp", reading.temp_c, "°C"
        if reading.util_pct is not None and reading.own is not False:
            yield f"{name}.util", reading.util_pct, "%"
        if reading.mem_used_bytes is not None and reading.mem_total_bytes:
            yield f"{name}.vram", 100.0 * reading.mem_used_bytes / reading.mem_total_bytes, "%"
    if host is None:
        return
    if host.ram_used_bytes is not None and host.ram_total_bytes:
        yield "ram_used", 100.0 * host.ram_used_bytes / host.ram_total_bytes, "%"
    for metric, value in (
        ("ram_available", host.ram_available_bytes),
        ("swap_used", host.swap_used_bytes),
        ("disk_free", host.disk_free_bytes),
    ):
        if value is not None:
            yield metric, value, "B"


def reason_now(incident: Incident, now: Situation) -> str:
    """The reason of an open incident; of one about a reading, with its newest value, and its time if that is not now.

    For example "GPU 0 too hot: 86 °C (limit 85)".
    """
    if not incident.open or incident.kind not in {"health", "disk"}:
        return incident.reason
    readings = current_readings(now.story, now.gpu, now.host, bounds_now(now))
    found = next((r for r in readings if r.metric == incident.class_), None)
    if found is None or found.value is None:
        return incident.reason
    limit = limit_in(bounds_now(now)[found.metric.rpartition(".")[2]], found.level)
    sample = now.gpu if found.metric.startswith("gpu") else now.host
    clause = health_clause(found.metric, found.value, found.unit, found.level, limit)
    if sample is None or now.age_s(sample.t) <= FRESH_S:
        return clause
    return f"{clause}, read at {quantity.clock(now.story.wall0 + sample.t, now.now_wall)}"
