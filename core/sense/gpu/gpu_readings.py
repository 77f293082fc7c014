"""Messages of the NVML child, and the readings that they become. Pure."""

from collections.abc import Callable
from typing import Any

import msgspec

from ...model.observation import GpuReading
from .nvml_codes import gpu_message, throttle_reasons
from .visible_devices import GpuChoice, is_own


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A process on a GPU. ``kind``: C, G or CG; ``sm``, ``mem_util``: shares of the GPU's time in per cent."""

    pid: int
    kind: str
    mem: int | None = None
    sm: float | None = None
    mem_util: float | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as the child read it ``age_s`` ago (``read`` False: the first reading has taken that long so far).

    ``code``: NVML's error code if the GPU could not be read. ``procs``: [pid, bytes] of each process on it.
    """

    index: int
    code: int | None
    age_s: float
    read: bool
    uuid: str | None = None
    name: str | None = None
    pci: str | None = None
    util: float | None = None
    mem_used: float | None = None
    mem_total: float | None = None
    temp: float | None = None
    power: float | None = None
    power_limit: float | None = None
    clock_mhz: float | None = None
    clock_mem_mhz: float | None = None
    fan_pct: float | None = None
    pcie_received: float | None = None
    pcie_sent: float | None = None
    throttle: int | None = None
    procs: tuple[tuple[int, int | None], ...] | None = None
    detail: dict[str, Any] | None = None
    """By field of GpuDetail; None: details are not read now."""
    users: tuple[User, ...] | None = None
    driver: str | None = None
    cuda: str | None = None


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="opening"):
    """The child runs, and the driver has not answered yet."""


class Devices(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="gpus"):
    gpus: tuple[Device, ...]


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="error"):
    """The driver cannot be used; the child ends."""

    code: int
    text: str


Message = Opening | Devices | Refusal


class GpuList:
    """The GPUs with their last readings. A GPU that is lost or does not answer stays in the list."""

    def __init__(self) -> None:
        self._known: dict[int, GpuReading] = {}

    def answered(
        self,
        devices: Devices,
        *,
        limit_s: float,
        choice: GpuChoice,
        own_pids: Callable[[], frozenset[int]] | None,
    ) -> tuple[GpuReading, ...]:
        """Readings after a message. Values older than ``limit_s`` are unknown. ``own_pids`` None: not comparable."""
        listed = any(device.procs for device in devices.gpus)
        pids = None if own_pids is None else own_pids() if listed else frozenset[int]()
        readings = {d.index: self._reading(d, limit_s, is_own(choice, d.index, d.uuid), pids) for d in devices.gpus}
        for index in self._known.keys() - readings.keys():
            readings[index] = self._without_values(index, "missing: the driver no longer lists it")
        self._known = readings
        return self.readings()

    def readings(self) -> tuple[GpuReading, ...]:
        return tuple(self._known[index] for index in sorted(self._known))

    def silent(self, trouble: str) -> tuple[GpuReading, ...]:
        """The same GPUs without values."""
        self._known = {index: self._without_values(index, trouble) for index in self._known}
        return self.readings()

    def _reading(self, device: Device, limit_s: float, own: bool | None, pids: frozenset[int] | None) -> GpuReading:
        known = self._known.get(device.index)
        if device.age_s > limit_s:
            return self._without_values(device.index, f"no answer for {device.age_s:.0f} s", own=own)
        if own is None and device.uuid is None and known is not None:
            own = known.own  # its UUID was read before it was lost
        return GpuReading(
            index=device.index,
            util_pct=device.util,
            mem_used_bytes=device.mem_used,
            mem_total_bytes=device.mem_total
            if known is None or device.mem_total is not None
            else known.mem_total_bytes,
            temp_c=device.temp,
            power_w=device.power,
            power_limit_w=device.power_limit,
            own=own,
            pci=device.pci or (known.pci if known is not None else None),
            name=device.name or (known.name if known is not None else None),
            clock_mhz=device.clock_mhz,
            clock_mem_mhz=device.clock_mem_mhz,
            fan_pct=device.fan_pct,
            pcie_received=device.pcie_received,
            pcie_sent=device.pcie_sent,
            throttle=None if device.throttle is None else throttle_reasons(device.throttle),
            own_mem_bytes=_own_memory(device.procs, pids),
            trouble=None if device.code is None else gpu_message(device.code),
        )

    def _without_values(self, index: int, trouble: str, *, own: bool | None = None) -> GpuReading:
        known = self._known.get(index, GpuReading(index=index, own=own))
        return GpuReading(
            index=index,
            pci=known.pci,
            name=known.name,
            mem_total_bytes=known.mem_total_bytes,
            own=known.own,
            trouble=trouble,
        )


def _own_memory(procs: tuple[tuple[int, int | None], ...] | None, pids: frozenset[int] | None) -> float | None:
    """Memory of the trainer's processes; None if the driver lists none or no amounts, or pids are not comparable."""
    if procs is None or pids is None:
        return None
    own = [memory for pid, memory in procs if pid in pids]
    return None if any(memory is None for memory in own) else float(sum(memory or 0 for memory in own))
