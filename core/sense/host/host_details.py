"""What the host page shows beyond a sample: every core, load, temperature, rates of swap, disks and networks.

Read by psutil while somebody looks; samples, which are taken each second, read ``/proc`` themselves (``host_sensor``).
"""

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import psutil

from ...model.machine_details import HostDetails, Mount, Traffic
from .host_sensor import is_outside, is_whole_disk, per_second

CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "x86_pkg_temp", "acpitz")
"""Names of hwmon devices that measure the processor, the best first."""
LOCAL_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay", "vfat", "ntfs3"})
"""A call to a dead network mount does not return."""
MOST_MOUNTS = 8
LONGEST_S = 10.0
"""A rate over a longer time is not current: no reading was taken in between."""


class Counters(NamedTuple):
    """Since boot. ``swap``: bytes in, out; ``disks``: bytes read, written, ms busy; ``networks``: received, sent."""

    t: float
    swap: tuple[int, int] | None
    disks: Mapping[str, tuple[int, int, int]]
    networks: Mapping[str, tuple[int, int]]


def counters(t: float) -> Counters:
    swap = _known(psutil.swap_memory)
    disks, networks = (
        _known(partial(psutil.disk_io_counters, perdisk=True)),
        _known(partial(psutil.net_io_counters, pernic=True)),
    )
    return Counters(
        t,
        None if swap is None else (swap.sin, swap.sout),
        {
            name: (each.read_bytes, each.write_bytes, each.busy_time)
            for name, each in (disks or {}).items()
            if is_whole_disk(name)
        },
        {name: (each.bytes_recv, each.bytes_sent) for name, each in (networks or {}).items() if is_outside(name)},
    )


def _known(read: Callable[[], Any]) -> Any:
    """None: the kernel does not tell it, or this machine has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # psutil's, of a counter that it takes for zero
            return read()
    except (OSError, ValueError, AttributeError, KeyError, IndexError, NotImplementedError):
        return None


def traffic(
    before: Mapping[str, tuple[int, ...]], now: Mapping[str, tuple[int, ...]], seconds: float
) -> tuple[Traffic, ...]:
    """Rates of those that were ever used, per second; a counter that fell (a device came back) is unknown."""
    found = []
    for name, counted in now.items():
        done = per_second(before.get(name), counted, seconds)
        busy = None if done is None or len(done) < 3 else min(100.0, done[2] / 10.0)  # ms a second
        found.append(Traffic(name=name, received=_at(done, 0), sent=_at(done, 1), busy_pct=busy))
    return tuple(each for each in found if any(now[each.name][:2]))


def _at(values: Sequence[float] | None, number: int) -> float | None:
    return None if values is None else values[number]


class HostDetailReadings:
    """Reads the machine while somebody looks; rates need two readings."""

    def __init__(self) -> None:
        self._before: Counters | None = None

    def look(self, t: float) -> HostDetails:
        """The details at ``t`` run seconds; rates are unknown at the first look."""
        now, before = counters(t), self._before
        self._before = now
        cores = _known(partial(psutil.cpu_percent, percpu=True)) or []  # since the call before
        fresh = before is not None and t - before.t <= LONGEST_S
        before = before if before is not None and fresh else now
        seconds = now.t - before.t
        swap = None if before.swap is None or now.swap is None else per_second(before.swap, now.swap, seconds)
        memory, clock = _known(psutil.virtual_memory), _known(psutil.cpu_freq)
        return HostDetails(
            t=t,
            cores_pct=tuple(core if fresh else None for core in cores),
            swap_in=_at(swap, 0),
            swap_out=_at(swap, 1),
            disks=traffic(before.disks, now.disks, seconds),
            networks=traffic(before.networks, now.networks, seconds),
            load=_known(os.getloadavg),
            cpu_mhz=None if clock is None or not clock.current else clock.current,
            cpu_temp_c=_known(_temperature),
            ram_cached_bytes=None if memory is None else float(memory.cached + memory.buffers),
            mounts=tuple(mounts()),
            up_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        )


def _temperature() -> float | None:
    """The processor's temperature in °C; None if no sensor says that it measures it."""
    found = psutil.sensors_temperatures()
    return next((float(found[name][0].current) for name in CPU_SENSORS if found.get(name)), None)


def mounts() -> list[Mount]:
    """The room on local disks, each once."""
    points: dict[str, str] = {}
    for each in _known(partial(psutil.disk_partitions, all=True)) or []:
        known = points.get(each.device)
        if each.fstype in LOCAL_TYPES and (known is None or len(each.mountpoint) < len(known)):
            points[each.device] = each.mountpoint
    found = []
    for point in sorted(points.values())[:MOST_MOUNTS]:
        room = _known(partial(psutil.disk_usage, point))
        if room is not None and room.total:
            found.append(Mount(path=point, free=float(room.free), total=float(room.total)))
    return found
