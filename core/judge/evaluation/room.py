"""Where an evaluation of a checkpoint can run without a risk for the training: a GPU, the CPU, or nowhere now.

What is not known gives no room: memory that is not reported, a GPU of which it is not known who uses it, a need for GPU
memory that was not told. After the end of the training there is nothing to endanger, and only the RAM limit holds.
"""

import msgspec

from ...model.observation import GpuReading, GpuSample, HostSample
from ...model.settings import Evaluate, Health

EMPTY_BYTES = 1e9
"""Memory in use below which a GPU is empty: a desktop takes some hundred MB, a process that computes more."""
EMPTY_PCT = 5.0
RESERVE_SHARE = 0.05
"""Share of a GPU's memory that stays free on the training's GPU: allocations fluctuate from step to step."""
LEAST_RAM_BYTES = 0.5e9
"""RAM without which no evaluation begins: Python with a framework needs this much."""


class GpuRoom(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``own``: the training uses it, None = not known. ``least_free_bytes``: in this attempt, without evaluations."""

    index: int
    own: bool | None = None
    free_bytes: float | None = None
    least_free_bytes: float | None = None
    total_bytes: float | None = None
    empty: bool = False


class Room(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The newest readings. ``gpus`` None: the GPUs were not read yet."""

    gpus: tuple[GpuRoom, ...] | None = None
    ram_available_bytes: float | None = None


class Spot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where it runs. ``gpu`` None: on the CPU. ``own``: on a GPU that the training uses."""

    gpu: int | None = None
    own: bool = False
    memory_bytes: float = 0.0

    @property
    def words(self) -> str:
        return "CPU" if self.gpu is None else f"GPU {self.gpu}"


def with_gpus(room: Room, sample: GpuSample, *, evaluating: bool) -> Room:
    """Take a sample. While something is evaluated, the least free memory says nothing about the training."""
    before = {gpu.index: gpu for gpu in room.gpus or ()}
    return msgspec.structs.replace(
        room, gpus=tuple([_gpu(gpu, before.get(gpu.index), evaluating=evaluating) for gpu in sample.gpus])
    )


def _gpu(reading: GpuReading, before: GpuRoom | None, *, evaluating: bool) -> GpuRoom:
    used, total = reading.mem_used_bytes, reading.mem_total_bytes
    free = None if used is None or total is None or reading.trouble is not None else total - used
    least = before.least_free_bytes if before is not None else None
    if free is not None and not evaluating:
        least = free if least is None else min(least, free)
    return GpuRoom(
        index=reading.index,
        own=reading.own,
        free_bytes=free,
        least_free_bytes=least,
        total_bytes=total,
        empty=used is not None and used < EMPTY_BYTES and reading.util_pct is not None and reading.util_pct < EMPTY_PCT,
    )


def with_host(room: Room, sample: HostSample) -> Room:
    return msgspec.structs.replace(room, ram_available_bytes=sample.ram_available_bytes)


def begin_attempt(room: Room) -> Room:
    """Forget the least free memory: another attempt has another peak."""
    gpus = None if room.gpus is None else tuple(msgspec.structs.replace(g, least_free_bytes=None) for g in room.gpus)
    return msgspec.structs.replace(room, gpus=gpus)


def spot(room: Room, settings: Evaluate, health: Health, *, training: bool) -> Spot | None:
    """The best place for an evaluation now; None if there is none."""
    memory = _memory(room, settings, health, training=training)
    if memory is None or (training and (settings.where == "after" or room.gpus is None)):
        return None
    gpus = room.gpus or ()
    if settings.where != "cpu":
        other = [
            g for g in gpus if (g.own is False or not training) and g.empty and _fits(g, settings.gpu_memory_bytes)
        ]
        if other:
            most = max(other, key=lambda g: g.free_bytes or 0.0)
            return Spot(gpu=most.index, own=most.own is not False, memory_bytes=memory)
        own = [g for g in gpus if g.own and training and _fits_beside(g, settings)]
        if own:
            return Spot(gpu=max(own, key=lambda g: g.least_free_bytes or 0.0).index, own=True, memory_bytes=memory)
    return Spot(memory_bytes=memory) if settings.where != "gpu" or not (training or gpus) else None


def _memory(room: Room, settings: Evaluate, health: Health, *, training: bool) -> float | None:
    """RAM that it may take; None if too little is left for the training."""
    available = room.ram_available_bytes
    if available is None:
        return None if training else settings.memory_bytes
    left = available - health.ram_available_danger_bytes if training else available
    return min(settings.memory_bytes, left) if left >= min(LEAST_RAM_BYTES, settings.memory_bytes) else None


def _fits(gpu: GpuRoom, need_bytes: float) -> bool:
    return gpu.free_bytes is not None and gpu.free_bytes >= need_bytes


def _fits_beside(gpu: GpuRoom, settings: Evaluate) -> bool:
    need, least = settings.gpu_memory_bytes, gpu.least_free_bytes
    if not need or least is None or gpu.free_bytes is None or gpu.total_bytes is None:
        return False
    return min(least, gpu.free_bytes) - need >= RESERVE_SHARE * gpu.total_bytes


def danger(room: Room, held: Spot, health: Health) -> str:
    """Why an evaluation that runs beside the training must end; empty if it need not."""
    available = room.ram_available_bytes
    if available is not None and available < health.ram_available_danger_bytes:
        return "RAM is short: what is left is for the training"
    for gpu in room.gpus or ():
        if held.own and gpu.index == held.gpu and _is_nearly_full(gpu):
            return f"the memory of GPU {gpu.index} is nearly full: what is left is for the training"
    return ""


def _is_nearly_full(gpu: GpuRoom) -> bool:
    if gpu.free_bytes is None or gpu.total_bytes is None:
        return False
    return gpu.free_bytes < 0.5 * RESERVE_SHARE * gpu.total_bytes
