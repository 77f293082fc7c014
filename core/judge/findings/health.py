"""Health of GPUs, memory and disk."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ...model.fact import HealthChanged
from ...model.observation import GpuSample, HostSample
from ...model.progress import GPU_IS_GONE, SLOWED_BY_FAULT, Level, Metric, health_clause
from ...model.text import size
from ..failure.circumstances import SeenGpu
from ..hang.rules import duration
from ..scales import HOUR_S, LASTS_S, MINUTE_S, SURE_TIMES, TWICE, WHILE_S

# Health levels of temperature, memory and disk, with hysteresis. Bounds come from ``[health]``.
#
# With the profile ``stable`` GPU memory has a lower bound, because that profile is meant to leave room. A value on a
# bound belongs to the milder level. A worse level must hold for a moment and a better one needs a margin, so that a
# value near a bound does not change its level all the time.


class Band(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The level of one metric, and since when its values have been outside it."""

    level: Level = "unknown"
    outside_t: float | None = None


class Change(NamedTuple):
    """A metric changed its level. ``alarm``: the incident that it is (``GPU 3 too hot: 86 °C (limit 85)``), or ""."""

    fact: HealthChanged
    alarm: str


Bands = dict[str, Band]
"""By metric (``gpu0.temp``, ``ram_used`` …). Replaced, never changed in place."""


def gpu_values(sample: GpuSample, *, training: bool) -> Iterator[tuple[str, float]]:
    """Yield metric and value of a GPU sample. VRAM is judged only while training; before, it is always low."""
    for gpu in sample.gpus:
        if gpu.temp_c is not None:
            yield f"gpu{gpu.index}.temp", gpu.temp_c
        if training and gpu.own is not False and gpu.mem_used_bytes is not None and gpu.mem_total_bytes:
            yield f"gpu{gpu.index}.vram", 100.0 * gpu.mem_used_bytes / gpu.mem_total_bytes


def host_values(sample: HostSample) -> Iterator[tuple[str, float]]:
    """Yield metric and value of a host sample."""
    if sample.ram_used_bytes is not None and sample.ram_total_bytes:
        yield "ram_used", 100.0 * sample.ram_used_bytes / sample.ram_total_bytes
    for metric in ("ram_available", "swap_used", "disk_free"):
        if (value := getattr(sample, f"{metric}_bytes")) is not None:
            yield metric, value


def take(
    bands: Bands, values: Iterator[tuple[str, float]], table: dict[str, Metric], t: float
) -> tuple[Bands, tuple[Change, ...]]:
    """Update levels from values. Returns the same dict if nothing changed."""
    new, changes = dict(bands), []
    for name, value in values:
        metric, band = table[name.rpartition(".")[2]], bands.get(name)
        before: Level = "unknown" if band is None else band.level
        level = metric.level_of(value, before)
        new[name] = Band(level=level)
        if level == before:
            continue
        if band is not None and (band.outside_t is None or t - band.outside_t < LASTS_S):
            new[name] = Band(level=before, outside_t=t if band.outside_t is None else band.outside_t)
            continue
        fact = HealthChanged(metric=name, value=value, unit=metric.unit, level=level, before=before)
        alarm = health_clause(name, value, metric.unit, level, metric.limit(level)) if level == metric.alarm else ""
        changes.append(Change(fact, alarm))
    return (bands if new == bands else new), tuple(changes)


# GPUs that are lost, and GPUs that a fault of cooling or power slows down.
#
# Source: NVML (GPU is lost, needs a reset; reasons of reduced clocks). Known false alarms, and what prevents them:
# power caps, clock settings and the driver's own limit at a high temperature are usual and do not count; a moment of
# heat does not, it must last for LASTS_S; a fault that comes and goes is one, until it has been away for MINUTE_S. Lost
# is told of the GPUs that the run uses or may use; slowed down of every GPU of the machine, because they share air and
# power.


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``since_t``, ``seen_t``: first and last time that it was seen, run seconds."""

    since_t: float
    seen_t: float
    text: str
    severe: bool = False

    @property
    def counts(self) -> bool:
        """Whether it has lasted, and is an incident."""
        return self.seen_t - self.since_t >= LASTS_S


Faults = dict[str, Fault]
"""By class of the incident (``gpu0.lost``, ``gpu3.slowed``). Replaced, never changed in place."""


def take_faults(known: Faults, sample: GpuSample, t: float) -> Faults:
    """Return the faults after a sample, without those that are over."""
    seen = dict(_seen(sample))
    new = {n: each for n, each in known.items() if n in seen or not sample.gpus or t - each.seen_t < MINUTE_S}
    for name, (text, severe) in seen.items():
        since_t = new[name].since_t if name in new else t
        new[name] = Fault(since_t=since_t, seen_t=t, text=text, severe=severe)
    return new


def _seen(sample: GpuSample) -> Iterator[tuple[str, tuple[str, bool]]]:
    for gpu in sample.gpus:
        if gpu.trouble and gpu.own is not False and gpu.trouble.startswith(GPU_IS_GONE):
            yield f"gpu{gpu.index}.lost", (f"GPU {gpu.index} {gpu.trouble}", gpu.own is True)
        if slowed := " and ".join(each for each in gpu.throttle or () if each in SLOWED_BY_FAULT):
            yield f"gpu{gpu.index}.slowed", (f"GPU {gpu.index} is slowed down by {slowed}", False)


# When the disk will be full, from how much free space each checkpoint took and how often one comes.
#
# Free space is measured over some minutes: a trainer that deletes its old checkpoints takes none, one that also writes
# optimizer states takes more than the size of the file. Other programs write to the disk, too, so a checkpoint counts
# at most twice its own size. Source: runs that died in a save at night because the disk was full. Known false alarms:
# another program that writes as much; so the forecast names its numbers, and only warns.

CLASS = "filling"
SAVES = 5
"""Newest checkpoints whose free space is remembered."""
HORIZON_S = 6 * HOUR_S
"""If the end of the training is unknown, a disk that is full within this time is reported."""
LEAST_BYTES = 1e6
"""Less per checkpoint comes from other files."""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``seen``: (active seconds, free bytes) after each of the newest checkpoints; ``saves``: how many there were."""

    saves: int = 0
    seen: tuple[tuple[float, float], ...] = ()


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """``full_s``: seconds until no further checkpoint fits, infinite if none takes any. Measured over ``span_s``."""

    full_s: float
    each_bytes: float
    every_s: float
    span_s: float

    @property
    def is_sure(self) -> bool:
        """Saves within a few minutes (a short run, a burst) prove nothing, unless it is full soon."""
        return self.span_s >= WHILE_S / 2 or self.full_s <= WHILE_S

    @property
    def sentence(self) -> str:
        """With what it rests on."""
        hours = self.full_s / 3600.0
        when = f"about {hours:.1f} h" if hours >= 1.0 else duration(self.full_s)
        each = f"each checkpoint takes {size(self.each_bytes)}, one comes every {duration(self.every_s)}"
        return f"the disk will be full in {when}: {each}; free some space or keep fewer"


def with_free(use: DiskUse, now: float, free_bytes: float, saves: int) -> DiskUse:
    """Take the free space after ``saves`` complete checkpoints of this run; fewer than before = some were deleted."""
    if saves == use.saves:
        return use
    if saves < use.saves:
        return DiskUse(saves=saves)
    return DiskUse(saves=saves, seen=(*use.seen, (now, free_bytes))[-SAVES:])


def forecast(use: DiskUse, now: float, free_bytes: float, size_bytes: float | None = None) -> Forecast | None:
    """Return when the disk will be full; None if that is unknown.

    ``size_bytes``: size of the largest checkpoint, None = unknown.
    """
    if len(use.seen) < SURE_TIMES:
        return None
    (first_t, first_free), (last_t, last_free) = use.seen[0], use.seen[-1]
    times, span_s = len(use.seen) - 1, last_t - first_t
    each, every = (first_free - last_free) / times, span_s / times
    if size_bytes is not None:
        each = min(each, TWICE * size_bytes)
    takes = each >= LEAST_BYTES and every > 0.0
    full_s = int(free_bytes / each) * every + max(0.0, every - (now - last_t)) if takes else math.inf
    return Forecast(full_s=full_s, each_bytes=each, every_s=every, span_s=span_s)


class DiskLow(msgspec.Struct, frozen=True):
    """The least room that the disk of the output had lately, and when (run seconds)."""

    free_bytes: float
    t: float


class MachineHealth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of the machine.

    ``host``: the newest sample; the room on the disk is that of the newest that has it. ``gpus_of_run``: indexes of
    the GPUs that the trainer used last; empty = unknown. ``gpus_usable``: whether one of them answers; None = unknown.
    ``tight_since``, ``spare_since``: run seconds from which RAM is tight and GPU memory is left; None = it is not.
    """

    host: HostSample = HostSample(t=0.0)
    bands: Bands = {}
    gpu_faults: Faults = {}
    disk: DiskUse = DiskUse()
    disk_low: DiskLow | None = None
    gpu_trouble: str | None = None
    gpus_of_run: tuple[int, ...] = ()
    gpus_usable: bool | None = None
    gpus_seen: tuple[SeenGpu, ...] = ()
    oom_kills_before: int | None = None
    tight_since: float | None = None
    spare_since: float | None = None


def with_host(known: MachineHealth, sample: HostSample) -> MachineHealth:
    """Take a sample. After a change of their counter the number of kills for memory is unknown."""
    before, free, low, kills = known.host, sample.disk_free_bytes, known.disk_low, known.oom_kills_before
    if before.oom_kills is None:
        kills = sample.oom_kills
    elif sample.oom_counter != before.oom_counter:
        kills = None
    elif kills is None:
        kills = before.oom_kills
    # A save that did not fit takes less, and its file may be gone at the end.
    if free is not None and (low is None or free < low.free_bytes or sample.t - low.t > MINUTE_S):
        low = DiskLow(free, sample.t)
    total = before.disk_total_bytes if sample.disk_total_bytes is None else sample.disk_total_bytes
    free = before.disk_free_bytes if free is None else free
    host = msgspec.structs.replace(sample, disk_free_bytes=free, disk_total_bytes=total)
    return msgspec.structs.replace(known, host=host, disk_low=low, oom_kills_before=kills)
