"""The details of a message of the NVML child: of each GPU, and of the processes on it with what /proc says of them."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from ...model.machine_details import GpuDetail, GpuDetails, GpuProcess
from ...model.observation import GpuReading
from ...model.supervision_ports import AttemptTarget, Clock, DetailDesk
from ..process.proc_stat import environ_of, read_stat
from ..process.run_tree import CpuShares, UserNames, age_of, command_of, is_another_users, tree_pids
from .nvml_codes import gpu_message, throttle_reasons

# Which GPUs are the trainer's.

GpuChoice = tuple[int | str, ...] | None
"""Indices and UUIDs (or prefixes of UUIDs, as CUDA accepts them); None: all."""


def parse_visible_devices(value: str | None) -> GpuChoice:
    """Parse ``CUDA_VISIBLE_DEVICES`` as CUDA does: the list ends at the first entry that is not a device.

    Not set: all. CUDA's order is the fastest GPU first unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``, so on machines with
    different GPUs the indices may differ from the driver's.
    """
    if value is None:
        return None
    chosen: list[int | str] = []
    for entry in (part.strip() for part in value.split(",")):
        if entry.isdecimal():
            chosen.append(int(entry))
        elif entry.startswith(("GPU-", "MIG-")):
            chosen.append(entry)
        else:
            break
    return tuple(chosen)


def visible_devices_of(pid: int) -> str | None:
    """``CUDA_VISIBLE_DEVICES`` of a process at its start; None if it is not set or not readable."""
    entries = (entry.partition(b"=") for entry in environ_of(pid))
    found = (value for name, _, value in entries if name == b"CUDA_VISIBLE_DEVICES")
    return next((value.decode("utf-8", "replace") for value in found), None)


def is_own(choice: GpuChoice, index: int, uuid: str | None) -> bool | None:
    """Whether the choice includes this GPU; None: unknown (a MIG slice, or an unknown UUID)."""
    if choice is None:
        return True
    names = [entry for entry in choice if isinstance(entry, str)]
    if index in choice or (uuid is not None and any(uuid.startswith(name) for name in names)):
        return True
    return None if _undecided(names, uuid) else False


def _undecided(names: Iterable[str], uuid: str | None) -> bool:
    return any(name.startswith("MIG-") or uuid is None for name in names)


# Messages of the NVML child, and the readings that they become. Pure.


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


class GpuDetailReadings:
    """Puts a GpuDetails for each message that has details, while somebody looks. Used by the sensor's thread."""

    def __init__(self, desk: DetailDesk, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock
        self._names = UserNames()
        self._shares = CpuShares()

    def wanted(self) -> bool:
        """Whether somebody looks."""
        return self._desk.wanted()

    def take(self, devices: Devices, *, own: AttemptTarget | None, comparable: bool, limit_s: float) -> None:
        """Take a message. ``own``: whose processes are own; ``comparable``: pids are those of this machine.

        A GPU that has not answered for ``limit_s`` has no details.
        """
        found = [d for d in devices.gpus if d.detail is not None and d.code is None and d.age_s <= limit_s]
        if not found or not self._desk.wanted():
            return
        pids = None if not comparable else frozenset[int]() if own is None else tree_pids(own)
        self._shares.begin()
        listed = any(device.users is not None for device in found)
        processes = tuple(self._processes(found, pids, comparable=comparable))
        self._desk.put(
            GpuDetails(
                t=self._clock.now(),
                driver=next((d.driver for d in found if d.driver), None),
                cuda=next((d.cuda for d in found if d.cuda), None),
                gpus=tuple(msgspec.convert({**(d.detail or {}), "index": d.index}, GpuDetail) for d in found),
                # Under WSL2 the driver lists nobody, also while a trainer uses the GPU.
                processes=processes if listed and (comparable or processes) else None,
            )
        )

    def _processes(
        self, devices: list[Device], pids: frozenset[int] | None, *, comparable: bool
    ) -> Iterator[GpuProcess]:
        cpu: dict[int, float | None] = {}
        for device in devices:
            for user in device.users or ():
                own = None if pids is None else user.pid in pids
                yield (
                    self._process(device.index, user, own, cpu)
                    if comparable
                    else GpuProcess(gpu=device.index, pid=user.pid, kind=user.kind, mem_bytes=user.mem, sm_pct=user.sm)
                )

    def _process(self, gpu: int, user: User, own: bool | None, cpu: dict[int, float | None]) -> GpuProcess:
        stat = read_stat(user.pid)
        if stat is not None and user.pid not in cpu:
            cpu[user.pid] = self._shares.of(stat, time.monotonic())
        return GpuProcess(
            gpu=gpu,
            pid=user.pid,
            kind=user.kind,
            mem_bytes=user.mem,
            sm_pct=user.sm,
            mem_util_pct=user.mem_util,
            own=own,
            user=self._names.of(user.pid),
            cpu_pct=cpu.get(user.pid),
            rss_bytes=None if stat is None else stat.rss_bytes,
            age_s=None if stat is None else age_of(stat),
            command=None if own is not True and is_another_users(user.pid) else command_of(user.pid),
        )
