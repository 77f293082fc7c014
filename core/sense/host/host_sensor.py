"""The sensor of the machine: memory, swap, disk, processor, pressure."""

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Unpack

import msgspec

from ...model.observation import HostSample, Observation
from ...model.supervision_ports import AttemptTarget, DetailDesk, Inbox, NoDetails
from ..process.proc_stat import kernel_text
from ..sampler import Common, Sampler
from .disk_space import DiskSpace, mount_points

if TYPE_CHECKING:
    from .host_details import HostDetailReadings

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
    groups = _groups(kernel_text(f"{proc}/{pid}/cgroup"), proc)
    found = (_read(folder, layout) for layout, base, path in groups for folder in _upwards(base, path))
    return min((limit for limit in found if limit is not None), key=lambda limit: limit.limit_bytes, default=None)


def limit_again(known: MemoryLimit) -> MemoryLimit | None:
    """The same limit now: for a process that has ended, whose group may still be there. None if it is gone."""
    found = [] if known.folder is None else [_read(known.folder, layout) for layout in (_V2, _V1)]
    return next((limit for limit in found if limit is not None), None)


def _groups(cgroup: str, proc: Path) -> list[tuple[_Layout, Path, str]]:
    """(layout, mount point, path below it) of the memory groups in the text of ``/proc/PID/cgroup``."""
    mounts = _mounts(proc)
    groups = []
    for line in cgroup.splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        layout = _V2 if number == "0" and not controllers else _V1 if "memory" in controllers.split(",") else None
        if layout is not None and layout in mounts:
            root, point = mounts[layout]
            # In a container the mount shows only a part of the hierarchy, but paths begin at its root.
            below = path[len(root) :] if root != "/" and path.startswith(root) else path
            groups.append((layout, point, below))
    return groups


def _mounts(proc: Path) -> dict[_Layout, tuple[str, Path]]:
    """Layout → (part of the hierarchy that is mounted, mount point), from mountinfo (proc(5))."""
    mounts = {}
    for each in mount_points(kernel_text(f"{proc}/self/mountinfo")):
        if each.kind == "cgroup2":
            mounts[_V2] = (each.root, Path(each.point))
        elif each.kind == "cgroup" and "memory" in each.options.split(","):
            mounts[_V1] = (each.root, Path(each.point))
    return mounts


def _upwards(base: Path, group: str) -> list[Path]:
    """Folders from the group up to the mount point. For a path outside the mount (``/../…``) only the mount point."""
    parts = [part for part in group.split("/") if part]
    if ".." in parts:
        parts = []
    return [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def _read(folder: Path, layout: _Layout) -> MemoryLimit | None:
    limit, used = _number(folder / layout.limit), _number(folder / layout.used)
    if limit is None or used is None or limit >= UNLIMITED_BYTES:
        return None
    droppable = _field(folder / "memory.stat", layout.cache) or 0
    return MemoryLimit(limit, max(0, used - droppable), _field(folder / layout.events, "oom_kill"), folder)


def _number(path: Path) -> int | None:
    text = kernel_text(str(path)).strip()
    return int(text) if text.isdecimal() else None


def _field(path: Path, name: str) -> int | None:
    for line in kernel_text(str(path)).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return None


KIB = 1024
MEMINFO_NAMES = frozenset({"MemTotal", "MemAvailable", "SwapTotal", "SwapFree"})


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


class MachineNow(msgspec.Struct, frozen=True):
    """What the kernel says of the whole machine. ``busy``: as ``parse_busy``; ``psi_pct``: as ``parse_pressure``."""

    memory: HostMemory
    busy: tuple[int, int] | None
    psi_pct: float | None
    oom_kills: int | None
    read_s: float = 0.0
    """When it was read, on the monotonic clock."""
    disks: dict[str, tuple[int, int]] | None = None
    """Bytes read and written since boot; None: the kernel lists none."""
    networks: dict[str, tuple[int, int]] | None = None
    """Bytes received and sent since boot."""


def read_machine(proc: Path = Path("/proc")) -> MachineNow:
    return MachineNow(
        memory=read_memory(proc),
        busy=parse_busy(kernel_text(f"{proc}/stat")),
        psi_pct=parse_pressure(kernel_text(f"{proc}/pressure/memory")),
        oom_kills=parse_oom_kills(kernel_text(f"{proc}/vmstat")),
        read_s=monotonic(),
        disks=parse_disks(kernel_text(f"{proc}/diskstats")) or None,
        networks=parse_networks(kernel_text(f"{proc}/net/dev")) or None,
    )


def is_whole_disk(name: str) -> bool:
    """Whether no other device of /proc/diskstats counts its bytes, too, and it is not in memory."""
    return _PARTS.fullmatch(name) is None


def is_outside(name: str) -> bool:
    """Whether an interface leads out of the machine, and no other one counts its bytes, too."""
    return _QUIET_NETWORKS.fullmatch(name) is None


def parse_disks(text: str) -> dict[str, tuple[int, int]]:
    """Bytes read and bytes written of each whole disk in ``/proc/diskstats``."""
    lines = [words for line in text.splitlines() if len(words := line.split()) >= 13 and is_whole_disk(words[2])]
    return {words[2]: (int(words[5]) * SECTOR_BYTES, int(words[9]) * SECTOR_BYTES) for words in lines}


def parse_networks(text: str) -> dict[str, tuple[int, int]]:
    """Bytes received and sent of each interface to the outside in ``/proc/net/dev``, each counted once."""
    networks = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        name, words = name.strip(), rest.split()
        if colon and len(words) >= 9 and is_outside(name) and UPON_OTHERS.fullmatch(name) is None:
            networks[name] = (int(words[0]), int(words[8]))
    return networks


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


def parse_meminfo(text: str) -> HostMemory:
    kib = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in MEMINFO_NAMES and (value := rest.split()) and value[0].isdecimal():
            kib[name] = float(value[0]) * KIB
    return HostMemory(kib.get("MemTotal"), kib.get("MemAvailable"), kib.get("SwapTotal"), kib.get("SwapFree"))


def read_memory(proc: Path = Path("/proc")) -> HostMemory:
    """The memory of this machine now."""
    return parse_meminfo(kernel_text(f"{proc}/meminfo"))


def parse_pressure(text: str) -> float | None:
    """``some avg10`` of a PSI file in per cent, or None."""
    for line in text.splitlines():
        if line.startswith("some "):
            for word in line.split():
                name, _, value = word.partition("=")
                if name == "avg10":
                    return float(value)
    return None


def parse_busy(text: str) -> tuple[int, int] | None:
    """(busy, all) processor ticks since boot from ``/proc/stat``. Waiting for disks does not count as busy."""
    first = text.partition("\n")[0].split()
    if len(first) < 6 or first[0] != "cpu":
        return None
    ticks = [int(t) for t in first[1:9]]  # guest time is part of user time
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def parse_oom_kills(text: str) -> int | None:
    """Processes that the kernel killed for lack of memory since boot, from ``/proc/vmstat``."""
    _, found, rest = f"\n{text}".partition("\noom_kill ")
    return int(rest.partition("\n")[0]) if found else None


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


class Rates(NamedTuple):
    """Bytes a second of the whole machine; None: unknown."""

    disk_read: float | None
    disk_written: float | None
    net_received: float | None
    net_sent: float | None


NO_RATES = Rates(None, None, None, None)


def machine_rates(before: MachineNow, now: MachineNow) -> Rates:
    """Bytes a second of all disks and of all networks, between two readings.

    One device of which it cannot be told, because it is new or its counter was set to zero, makes the sum unknown.
    """
    seconds = now.read_s - before.read_s
    return Rates(*_sum(before.disks, now.disks, seconds), *_sum(before.networks, now.networks, seconds))


Totals = dict[str, tuple[int, int]]


def _sum(before: Totals | None, now: Totals | None, seconds: float) -> tuple[float | None, float | None]:
    each = [per_second((before or {}).get(name), total, seconds) for name, total in (now or {}).items()]
    known = [rate for rate in each if rate is not None]
    if not known or len(known) < len(each):
        return None, None
    return float(round(sum(rate[0] for rate in known))), float(round(sum(rate[1] for rate in known)))


class Host(Sampler):
    """Puts a ``HostSample`` every ``interval_s``.

    Free disk space is that of ``output_dir`` or its nearest existing parent. The cgroup is the trainer's if an attempt
    is followed, else that of this process. ``details``: shown while wanted. ``proc``: another place than ``/proc``, for
    tests.
    """

    name = "host"

    def __init__(
        self,
        *,
        interval_s: float,
        output_dir: str | None = None,
        proc: Path = Path("/proc"),
        details: DetailDesk | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._desk = details or NoDetails()
        self._more: HostDetailReadings | None = None
        self._proc = proc
        self._disk = DiskSpace(None if output_dir is None else Path(output_dir))
        self._busy: tuple[int, int] | None = None
        self._before: MachineNow | None = None
        self._turn = threading.Lock()
        self._limited: tuple[AttemptTarget, MemoryLimit] | None = None
        """The limit that was last read of an attempt: its group can be read after it has ended."""

    def save_to(self, folder: str) -> None:
        """The trainer saves to this folder: its disk is the one that matters."""
        before, self._disk = self._disk, DiskSpace(Path(folder))
        before.close()

    def close(self) -> None:
        self._disk.close()

    def sample(self) -> None:
        """Take a sample. Thread-safe."""
        with self._turn:
            self._sample()

    def _sample(self) -> None:
        machine = read_machine(self._proc)
        memory = machine.memory
        limit = self._limit()
        share = trainer_memory(memory, limit)
        of_group = limit is not None and limit.limit_bytes == share.total
        kills = limit.oom_kills if limit is not None and of_group else machine.oom_kills
        room = self._disk.room()
        rates = NO_RATES if self._before is None else machine_rates(self._before, machine)
        self._before = machine
        self._inbox.put(
            HostSample(
                t=self._clock.now(),
                ram_used_bytes=share.used,
                ram_total_bytes=share.total,
                ram_available_bytes=share.available,
                swap_used_bytes=_difference(memory.swap_total, memory.swap_free),
                swap_total_bytes=memory.swap_total,
                disk_free_bytes=None if room is None else room.free_bytes,
                disk_total_bytes=None if room is None else room.total_bytes,
                disk_free_inodes=None if room is None else room.free_inodes,
                cpu_pct=self._cpu_pct(machine.busy),
                psi_memory_pct=machine.psi_pct,
                disk_read=rates.disk_read,
                disk_written=rates.disk_written,
                net_received=rates.net_received,
                net_sent=rates.net_sent,
                oom_kills=kills,
                oom_counter=None if kills is None else str(limit.folder) if limit and of_group else "machine",
            )
        )

        if self._desk.wanted():
            if self._more is None:
                from .host_details import HostDetailReadings  # psutil, only while the host page is open

                self._more = HostDetailReadings()
            self._desk.put(self._more.look(self._clock.now()))

    def _limit(self) -> MemoryLimit | None:
        target = self.target
        found = None if target is None else memory_limit(target.trainer.pid, proc=self._proc)
        if found is None and self._limited is not None and self._limited[0] is target:
            found = limit_again(self._limited[1])
        if target is not None and found is not None:
            self._limited = (target, found)
        return found or memory_limit(proc=self._proc)

    def _cpu_pct(self, busy: tuple[int, int] | None) -> float | None:
        before, self._busy = self._busy, busy
        if before is None or busy is None or busy[1] <= before[1]:
            return None
        return 100.0 * max(0, busy[0] - before[0]) / (busy[1] - before[1])


# For attempts that run on other machines: of this one only the disk says something about them.


class DiskOnly:
    """An inbox that leaves memory and processor out of host samples."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def put(self, observation: Observation) -> None:
        """Add what concerns the run."""
        if isinstance(observation, HostSample):
            observation = HostSample(
                t=observation.t,
                disk_free_bytes=observation.disk_free_bytes,
                disk_total_bytes=observation.disk_total_bytes,
                disk_free_inodes=observation.disk_free_inodes,
            )
        self._inbox.put(observation)

    def unread(self) -> int:
        return self._inbox.unread()


# Detects WSL2 (Linux on Windows), where the GPU is reached over a channel that breaks easily.

KERNEL_NAMES = ("proc/sys/kernel/osrelease", "proc/version")
GPU_CHANNEL = "dev/dxg"


def is_wsl(root: Path = Path("/")) -> bool:
    """Detect WSL2 by the kernel's name, or for a self-built kernel by the GPU channel. ``root``: for tests."""
    for name in KERNEL_NAMES:
        try:
            if "microsoft" in (root / name).read_text(errors="replace").lower():
                return True
        except OSError:
            continue
    return (root / GPU_CHANNEL).exists()
