"""The sensor of the machine: memory, swap, disk, processor, pressure."""

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, monotonic
from typing import Any, NamedTuple, Unpack

import msgspec

from ...model.machine_details import HostDetails, Mount, Traffic
from ...model.observation import HostSample
from ...model.ports import AttemptTarget, DetailDesk
from ...mounts import MountPoint, mount_points
from ...processes import PAGE_BYTES, file_text
from ..sampler import Common, Sampler
from .disk_space import DiskSpace

# The memory limit of a control group (a container, a systemd unit), v2 and v1.
#
# A process that exceeds it is killed although the host has free memory; psutil's ``virtual_memory()`` shows the host.

UNLIMITED_BYTES = 1 << 60
"""v1 writes "no limit" as a number close to 2^63. No machine has an exbibyte."""


class MemoryLimit(NamedTuple):
    """The tightest limit of the group and its parents. ``used_bytes``: without cache that can be dropped at once.

    ``folder``: of the group that has it.
    """

    limit_bytes: int
    used_bytes: int
    oom_kills: int | None
    folder: Path | None = None


class _Layout(NamedTuple):
    """File names of one cgroup version."""

    limit: str
    used: str
    cache: str
    events: str


_V2 = _Layout("memory.max", "memory.current", "inactive_file", "memory.events")
_V1 = _Layout("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control")


def memory_limit(pid: int | str = "self", *, proc: Path = Path("/proc")) -> MemoryLimit | None:
    """The limit of a process, or None (no limit, no cgroups, not readable)."""
    return _limit_in(file_text(f"{proc}/{pid}/cgroup"), proc)


def _limit_in(cgroup: str, proc: Path) -> MemoryLimit | None:
    """The same by the text of ``/proc/PID/cgroup``."""
    found = [_read(folder, layout) for layout, folder in _groups(cgroup, file_text(f"{proc}/self/mountinfo"))]
    return min((limit for limit in found if limit is not None), key=lambda limit: limit.limit_bytes, default=None)


@lru_cache(maxsize=4)
def _groups(cgroup: str, mountinfo: str) -> list[tuple[_Layout, Path]]:
    """The folders of the memory groups in the text of ``/proc/PID/cgroup``, each up to its mount point.

    For a path outside the mount (``/../…``) only the mount point. The texts seldom change.
    """
    found: list[tuple[_Layout, Path]] = []
    mounts: dict[_Layout, MountPoint] = {}
    for each in mount_points(mountinfo):
        if each.kind == "cgroup2":
            mounts[_V2] = each
        elif each.kind == "cgroup" and "memory" in each.options.split(","):
            mounts[_V1] = each
    for line in cgroup.splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        layout = _V2 if number == "0" and not controllers else _V1 if "memory" in controllers.split(",") else None
        if layout is not None and layout in mounts:
            # In a container the mount shows only a part of the hierarchy, but paths begin at its root.
            root = mounts[layout].root
            below = path[len(root) :] if root != "/" and path.startswith(root) else path
            parts = [] if ".." in below.split("/") else [part for part in below.split("/") if part]
            point = mounts[layout].point
            found += [(layout, Path(point, *parts[:depth])) for depth in range(len(parts), -1, -1)]
    return found


def _read(folder: Path, layout: _Layout) -> MemoryLimit | None:
    limit = file_text(f"{folder}/{layout.limit}").strip()
    if not limit.isdecimal() or int(limit) >= UNLIMITED_BYTES:
        return None
    used = file_text(f"{folder}/{layout.used}").strip()
    if not used.isdecimal():
        return None
    droppable = value_in(file_text(f"{folder}/memory.stat"), layout.cache) or 0
    kills = value_in(file_text(f"{folder}/{layout.events}"), "oom_kill")
    return MemoryLimit(int(limit), max(0, int(used) - droppable), kills, folder)


def value_in(text: str, name: str) -> int | None:
    """The number behind a name at the beginning of a line, as in ``/proc/vmstat``; None: there is none."""
    value = f"\n{text}".partition(f"\n{name} ")[2].split(maxsplit=1)[:1]
    return int(value[0]) if value and value[0].isdecimal() else None


SECTOR_BYTES = 512
"""Unit of /proc/diskstats, whatever the disk's own sector size (Documentation/admin-guide/iostats.rst)."""
_PARTS = re.compile(r"(?:loop|ram|zram|dm-|md|sr|fd)\d+|(?:[shv]d[a-z]+|xvd[a-z]+)\d+|(?:nvme\d+n\d+|mmcblk\d+)p\d+")
"""Devices of /proc/diskstats whose bytes another one counts, too, and those in memory."""
_QUIET_NETWORKS = re.compile(r"lo|(?:veth|docker|br-|virbr|cni|flannel|tunl|dummy|ifb|sit|gre).*")
"""The loopback, and interfaces inside the machine, whose bytes another one counts, too."""
UPON_OTHERS = re.compile(r"(?:bond|team|vlan|tun|tap|wg|vxlan|macvlan|ppp).*|.+\.\d+")
"""Interfaces whose bytes pass through another one, too: a sum has them once."""


class HostMemory(NamedTuple):
    """``/proc/meminfo`` in bytes; None: not reported."""

    total: float | None
    available: float | None
    swap_total: float | None
    swap_free: float | None


Totals = dict[str, tuple[int, ...]]


class MachineNow(msgspec.Struct, frozen=True):
    """What the kernel says of the whole machine. ``psi_pct``: ``some avg10`` of the memory's pressure, in per cent."""

    memory: HostMemory
    busy: tuple[int, int] | None
    """As ``parse_busy``."""
    psi_pct: float | None
    oom_kills: int | None
    """Processes that were killed for lack of memory since boot."""
    read_s: float
    """When it was read, on the monotonic clock."""
    disks: Totals
    """Of each whole disk: bytes read and written since boot, and ms in which it was busy."""
    networks: Totals
    """Of each interface to the outside: bytes received and sent since boot."""
    swap: tuple[int, int] | None
    """Bytes read back from the swap and written to it since boot."""


def read_machine(proc: Path = Path("/proc")) -> MachineNow:
    vmstat = file_text(f"{proc}/vmstat")
    pressure = re.search(r"^some avg10=([\d.]+)", file_text(f"{proc}/pressure/memory"), re.MULTILINE)
    swap_in, swap_out = value_in(vmstat, "pswpin"), value_in(vmstat, "pswpout")
    return MachineNow(
        memory=read_memory(proc),
        busy=parse_busy(file_text(f"{proc}/stat")),
        psi_pct=None if pressure is None else float(pressure[1]),
        oom_kills=value_in(vmstat, "oom_kill"),
        read_s=monotonic(),
        disks=parse_disks(file_text(f"{proc}/diskstats")),
        networks=parse_networks(file_text(f"{proc}/net/dev")),
        swap=None if swap_in is None or swap_out is None else (swap_in * PAGE_BYTES, swap_out * PAGE_BYTES),
    )


def parse_disks(text: str) -> Totals:
    """The whole disks in ``/proc/diskstats``."""
    lines = [w for line in text.splitlines() if len(w := line.split()) >= 13 and not _PARTS.fullmatch(w[2])]
    return {w[2]: (int(w[5]) * SECTOR_BYTES, int(w[9]) * SECTOR_BYTES, int(w[12])) for w in lines}


def parse_networks(text: str) -> Totals:
    """The interfaces to the outside in ``/proc/net/dev``."""
    lines = ((name.strip(), rest.split()) for name, _, rest in (line.partition(":") for line in text.splitlines()))
    return {
        name: (int(words[0]), int(words[8]))
        for name, words in lines
        if len(words) >= 9 and words[0].isdecimal() and not _QUIET_NETWORKS.fullmatch(name)
    }


def per_second(before: Sequence[int] | None, now: Sequence[int], seconds: float) -> tuple[float, ...] | None:
    """What counters grew by in a second; None if it cannot be told: no earlier value, or one that is larger."""
    if before is None or seconds <= 0 or any(b > n for b, n in zip(before, now, strict=True)):
        return None
    return tuple((n - b) / seconds for b, n in zip(before, now, strict=True))


class TrainerMemory(NamedTuple):
    """Memory that the training may use, in bytes: the host's, or its cgroup's if less. None: not reported."""

    total: float | None
    used: float | None
    available: float | None


def read_memory(proc: Path = Path("/proc")) -> HostMemory:
    text = file_text(f"{proc}/meminfo")
    kib = [value_in(text, f"{name}:") for name in ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")]
    return HostMemory(*(None if value is None else value * 1024.0 for value in kib))


def parse_busy(text: str) -> tuple[int, int] | None:
    """(busy, all) processor ticks since boot from ``/proc/stat``. Waiting for disks does not count as busy."""
    first = text.partition("\n")[0].split()
    if len(first) < 6 or first[0] != "cpu":
        return None
    ticks = [int(t) for t in first[1:9]]  # guest time is part of user time
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def trainer_memory(memory: HostMemory, limit: MemoryLimit | None) -> TrainerMemory:
    """Memory of the cgroup if its limit is tighter than the host's memory, else of the host. Used: not available."""
    total, available = memory.total, memory.available
    if limit is None or (total is not None and limit.limit_bytes >= total):
        return TrainerMemory(total, _difference(total, available), available)
    left = float(max(0, limit.limit_bytes - limit.used_bytes))
    return TrainerMemory(
        float(limit.limit_bytes), float(limit.used_bytes), left if available is None else min(left, available)
    )


def _difference(whole: float | None, part: float | None) -> float | None:
    return None if whole is None or part is None else whole - part


def sum_per_second(before: Totals, now: Totals, seconds: float) -> tuple[float | None, float | None]:
    """Bytes a second of all devices together, in and out.

    One device of which it cannot be told, because it is new or its counter was set to zero, makes the sum unknown.
    """
    each = [per_second(before.get(name), now[name], seconds) for name in now if not UPON_OTHERS.fullmatch(name)]
    known = [rate for rate in each if rate is not None]
    if not known or len(known) < len(each):
        return None, None
    return float(round(sum(rate[0] for rate in known))), float(round(sum(rate[1] for rate in known)))


# What the host page shows beyond a sample, read by psutil while somebody looks.

CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "x86_pkg_temp", "acpitz")
"""Names of hwmon devices that measure the processor, the best first."""
LOCAL_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay", "vfat", "ntfs3"})
"""A call to a dead network mount does not return."""
MOST_MOUNTS = 8
LONGEST_S = 10.0
"""A rate over a longer time is not current: no reading was taken in between."""


def _known(read: Callable[[], Any]) -> Any:
    """None: the kernel does not tell it, or this machine has none."""
    try:
        return read()
    except (OSError, ValueError, AttributeError, KeyError, IndexError, NotImplementedError):
        return None


def traffic(before: Totals, now: Totals, seconds: float) -> tuple[Traffic, ...]:
    """Rates of those that were ever used, per second; a counter that fell (a device came back) is unknown."""
    found = []
    for name, counted in now.items():
        done = per_second(before.get(name), counted, seconds)
        received, sent, *busy_ms = done or (None, None)
        busy = min(100.0, busy_ms[0] / 10.0) if busy_ms and busy_ms[0] is not None else None
        if any(counted[:2]):
            found.append(Traffic(name=name, received=received, sent=sent, busy_pct=busy))
    return tuple(found)


class HostDetailReadings:
    def __init__(self) -> None:
        self._looked_s: float | None = None

    def look(self, t: float, before: MachineNow | None, now: MachineNow) -> HostDetails:
        """The details at ``t`` run seconds; rates are those since the reading before."""
        import psutil  # only while the host page is open

        cores = _known(partial(psutil.cpu_percent, percpu=True)) or []  # since the call before
        known = self._looked_s is not None and now.read_s - self._looked_s <= LONGEST_S
        self._looked_s = now.read_s
        before = before if before is not None and now.read_s - before.read_s <= LONGEST_S else now
        seconds = now.read_s - before.read_s
        swap = None if now.swap is None else per_second(before.swap, now.swap, seconds)
        memory, clock = _known(psutil.virtual_memory), _known(psutil.cpu_freq)
        sensors = _known(psutil.sensors_temperatures) or {}
        return HostDetails(
            t=t,
            cores_pct=tuple(core if known else None for core in cores),
            swap_in=None if swap is None else swap[0],
            swap_out=None if swap is None else swap[1],
            disks=traffic(before.disks, now.disks, seconds),
            networks=traffic(before.networks, now.networks, seconds),
            load=_known(os.getloadavg),
            cpu_mhz=None if clock is None or not clock.current else clock.current,
            cpu_temp_c=next((float(sensors[name][0].current) for name in CPU_SENSORS if sensors.get(name)), None),
            ram_cached_bytes=None if memory is None else float(memory.cached + memory.buffers),
            mounts=tuple(mounts()),
            up_s=clock_gettime(CLOCK_BOOTTIME),
        )


def mounts() -> list[Mount]:
    """The room on local disks, each once."""
    import psutil

    points: dict[str, str] = {}
    for each in _known(partial(psutil.disk_partitions, all=True)) or []:
        known = points.get(each.device)
        if each.fstype in LOCAL_TYPES and (known is None or len(each.mountpoint) < len(known)):
            points[each.device] = each.mountpoint
    rooms = {point: _known(partial(psutil.disk_usage, point)) for point in sorted(points.values())[:MOST_MOUNTS]}
    return [
        Mount(path=point, free=float(room.free), total=float(room.total))
        for point, room in rooms.items()
        if room is not None and room.total
    ]


class Host(Sampler):
    """Puts a ``HostSample`` every ``interval_s``.

    Free disk space is that of ``output_dir`` or its nearest existing parent. The cgroup is the trainer's if an attempt
    is followed, else that of this process. ``details``: shown while wanted. ``disk_only``: attempts run on other
    machines; of this one only the disk says something about them. ``proc``: another place than ``/proc``, for tests.
    """

    name = "host"

    def __init__(
        self,
        *,
        interval_s: float,
        output_dir: str | None = None,
        proc: Path = Path("/proc"),
        details: DetailDesk | None = None,
        disk_only: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._desk, self._disk_only = details, disk_only
        self._details = HostDetailReadings()
        self._proc = proc
        self._disk = DiskSpace(None if output_dir is None else Path(output_dir))
        self._before: MachineNow | None = None
        self._limited: tuple[AttemptTarget, MemoryLimit] | None = None
        """The limit that was last read of an attempt: its group can be read after it has ended."""

    def save_to(self, folder: str) -> None:
        """The trainer saves to this folder: its disk is the one that matters."""
        self._disk = DiskSpace(Path(folder))

    def sample(self) -> None:
        machine = read_machine(self._proc)
        memory = machine.memory
        limit = self._limit()
        share = trainer_memory(memory, limit)
        of_group = limit is not None and limit.limit_bytes == share.total
        kills = limit.oom_kills if limit is not None and of_group else machine.oom_kills
        room = self._disk.room()
        before, self._before = self._before, machine
        seconds = 0.0 if before is None else machine.read_s - before.read_s
        disk_read, disk_written = sum_per_second({} if before is None else before.disks, machine.disks, seconds)
        received, sent = sum_per_second({} if before is None else before.networks, machine.networks, seconds)
        t = self._clock.now()
        disk = HostSample(
            t=t,
            disk_free_bytes=None if room is None else room.free_bytes,
            disk_total_bytes=None if room is None else room.total_bytes,
            disk_free_inodes=None if room is None else room.free_inodes,
        )
        self._inbox.put(
            disk
            if self._disk_only
            else msgspec.structs.replace(
                disk,
                ram_used_bytes=share.used,
                ram_total_bytes=share.total,
                ram_available_bytes=share.available,
                swap_used_bytes=_difference(memory.swap_total, memory.swap_free),
                swap_total_bytes=memory.swap_total,
                cpu_pct=_cpu_pct(None if before is None else before.busy, machine.busy),
                psi_memory_pct=machine.psi_pct,
                disk_read=disk_read,
                disk_written=disk_written,
                net_received=received,
                net_sent=sent,
                oom_kills=kills,
                oom_counter=None if kills is None else str(limit.folder) if limit and of_group else "machine",
            )
        )

        if self._desk is not None and self._desk.wanted():
            self._desk.put(self._details.look(self._clock.now(), before, machine))

    def _limit(self) -> MemoryLimit | None:
        target, own = self.target, file_text(f"{self._proc}/self/cgroup")
        text = own if target is None else file_text(f"{self._proc}/{target.trainer.pid}/cgroup")
        found = _limit_in(text, self._proc)
        if found is None and self._limited is not None and self._limited[0] is target:
            folder = self._limited[1].folder  # that of a process that has ended may still be there
            again = () if folder is None else (_read(folder, layout) for layout in (_V2, _V1))
            found = next((limit for limit in again if limit is not None), None)
        if target is not None and found is not None:
            self._limited = (target, found)
        return found or (None if text == own else _limit_in(own, self._proc))


def _cpu_pct(before: tuple[int, int] | None, busy: tuple[int, int] | None) -> float | None:
    if before is None or busy is None or busy[1] <= before[1]:
        return None
    return 100.0 * max(0, busy[0] - before[0]) / (busy[1] - before[1])


# Detects WSL2 (Linux on Windows), where the GPU is reached over a channel that breaks easily.

KERNEL_NAMES = ("proc/sys/kernel/osrelease", "proc/version")
GPU_CHANNEL = "dev/dxg"


def is_wsl(root: Path = Path("/")) -> bool:
    """Detect WSL2 by the kernel's name, or for a self-built kernel by the GPU channel. ``root``: for tests."""
    named = any("microsoft" in file_text(root / name).lower() for name in KERNEL_NAMES)
    return named or (root / GPU_CHANNEL).exists()
