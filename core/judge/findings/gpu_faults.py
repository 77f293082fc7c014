"""GPUs that are lost, and GPUs that a fault of cooling or power slows down.

Source: NVML (GPU is lost, needs a reset; reasons of reduced clocks). Known false alarms, and what prevents them: power
caps, clock settings and the driver's own limit at a high temperature are usual and do not count; a moment of heat does
not, it must last for HOLD_S; a fault that comes and goes is one, until it has been away for AWAY_S. Lost is told of the
GPUs that the run uses or may use; slowed down of every GPU of the machine, because they share air and power.
"""

from collections.abc import Iterator

import msgspec

from ...model.health import GPU_IS_GONE, SLOWED_BY_FAULT
from ...model.observation import GpuReading, GpuSample

HOLD_S = 10.0
AWAY_S = 60.0


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``since_t``, ``seen_t``: first and last time that it was seen, run seconds. ``told``: it is an incident."""

    since_t: float
    seen_t: float
    text: str
    severe: bool = False
    told: bool = False


Faults = dict[str, Fault]
"""By class of the incident (``gpu0.lost``, ``gpu3.slowed``). Replaced, never changed in place."""


def take(known: Faults, sample: GpuSample, t: float) -> tuple[Faults, tuple[str, ...], tuple[str, ...]]:
    """Return the faults after a sample, those that begin to count, and those that are over. The same dict if alike."""
    seen = dict(_seen(sample))
    if not seen and not known:
        return known, (), ()
    new: Faults = {}
    begun: list[str] = []
    for name in dict.fromkeys((*known, *seen)):
        before, found = known.get(name), seen.get(name)
        if found is None:
            assert before is not None
            if sample.gpus and t - before.seen_t >= AWAY_S:
                continue
            new[name] = before
            continue
        text, severe = found
        since_t = t if before is None else before.since_t
        told = before is not None and before.told
        if not told and t - since_t >= HOLD_S:
            told = True
            begun.append(name)
        new[name] = Fault(since_t=since_t, seen_t=t, text=text, severe=severe, told=told)
    return new, tuple(begun), tuple(name for name, fault in known.items() if fault.told and name not in new)


def _seen(sample: GpuSample) -> Iterator[tuple[str, tuple[str, bool]]]:
    for gpu in sample.gpus:
        if gpu.trouble and gpu.own is not False and gpu.trouble.startswith(GPU_IS_GONE):
            yield f"gpu{gpu.index}.lost", (f"GPU {gpu.index} {gpu.trouble}", gpu.own is True)
        slowed = slowed_by(gpu)
        if slowed:
            yield f"gpu{gpu.index}.slowed", (f"GPU {gpu.index} is slowed down by {slowed}", False)


def slowed_by(gpu: GpuReading) -> str:
    """The faults that reduce its clocks, as text; empty if none does."""
    return " and ".join(each for each in gpu.throttle or () if each in SLOWED_BY_FAULT)
