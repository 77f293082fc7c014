"""Waits before a restart until the GPU memory of the ended processes is released.

The driver frees a dead process's memory after its last handle closes, which takes seconds for large contexts and does
not happen while a worker survives. A restart before that runs out of memory at once (NVIDIA's resiliency extension
waits for the same reason). Memory that others held before the attempt is the baseline and is not waited for.
"""

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...model.observation import GpuReading
from ...model.text.memory_words import memory

POLL_S = 0.5
"""Polling faster would load the driver."""


class GpuRest(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at the end of the wait. None = unknown."""

    index: int
    used_bytes: float | None
    baseline_bytes: float | None
    clear: bool


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """``clear``: the next attempt can start. ``known``: False if nothing could be read and ``clear`` is assumed.

    ``holders``: processes on GPUs that are not clear. ``ghosts``: GPUs with ghost utilisation; ``touched``: a sentence
    about the context that was opened to remove it.
    """

    clear: bool
    known: bool
    waited_s: float
    released_bytes: float | None
    detail: str
    gpus: tuple[GpuRest, ...] = ()
    holders: tuple[str, ...] = ()
    ghosts: tuple[int, ...] = ()
    touched: str = ""


def wait_until_clear(
    read: Callable[[], Sequence[GpuReading] | None],
    baseline: Mapping[int, float],
    own: tuple[int, ...] | None,
    tolerance_bytes: float,
    timeout_s: float,
    *,
    poll_s: float = POLL_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    cancelled: Callable[[], bool] = lambda: False,
) -> GateReport:
    """Wait until every own GPU is at most ``tolerance_bytes`` above its baseline.

    ``read``: newest reading of all GPUs; None or empty: no telemetry. ``baseline``: used bytes per GPU index before the
    attempt began. ``own``: indices that the trainer may use, None for all. A GPU whose memory or baseline is unknown is
    not waited for, and ``detail`` says so.
    """
    begun = clock()
    first: float | None = None
    while True:
        readings = read()
        waited_s = clock() - begun
        if not readings:
            return GateReport(
                clear=True,
                known=False,
                waited_s=waited_s,
                released_bytes=None,
                detail="no GPU telemetry; not waited for",
            )
        rest = tuple(
            _rest(reading, baseline.get(reading.index), tolerance_bytes)
            for reading in readings
            if own is None or reading.index in own
        )
        used = sum(gpu.used_bytes for gpu in rest if gpu.used_bytes is not None)
        first = used if first is None else first
        known = any(gpu.used_bytes is not None and gpu.baseline_bytes is not None for gpu in rest)
        clear = all(gpu.clear for gpu in rest)
        if clear or waited_s >= timeout_s or cancelled():
            return GateReport(
                clear=clear,
                known=known,
                waited_s=waited_s,
                released_bytes=max(0.0, first - used) if known else None,
                detail=_detail(rest, waited_s, clear=clear),
                gpus=rest,
            )
        sleep(min(poll_s, max(0.0, timeout_s - waited_s)))


def _rest(reading: GpuReading, baseline: float | None, tolerance_bytes: float) -> GpuRest:
    used = reading.mem_used_bytes
    clear = used is None or baseline is None or used <= baseline + tolerance_bytes
    return GpuRest(index=reading.index, used_bytes=used, baseline_bytes=baseline, clear=clear)


def _detail(rest: tuple[GpuRest, ...], waited_s: float, *, clear: bool) -> str:
    unknown = [gpu.index for gpu in rest if gpu.used_bytes is None or gpu.baseline_bytes is None]
    doubt = f"; memory of GPU {', '.join(map(str, unknown))} is unknown" if unknown else ""
    if not rest:
        return "no telemetry of the run's GPUs; not waited for"
    if clear:
        if len(unknown) == len(rest):
            return doubt.removeprefix("; ")
        return f"GPU memory is released ({waited_s:.1f} s){doubt}"
    held = ", ".join(
        f"GPU {gpu.index} {memory(gpu.used_bytes)} (before: {memory(gpu.baseline_bytes)})"
        for gpu in rest
        if not gpu.clear
    )
    return f"still held after {waited_s:.1f} s: {held}{doubt}"
