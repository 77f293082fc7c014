"""What the host page shows beyond a sample: every core, load, temperature, rates of swap, disks and networks.

Sources: proc(5), Documentation/admin-guide/iostats.rst, Documentation/hwmon/sysfs-interface.rst.
"""

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...model.machine_details import HostDetails, Mount, Traffic
from ..sampler import kernel_text

SECTOR_BYTES = 512
"""Unit of /proc/diskstats, whatever the disk's own sector size."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KIB = 1024.0
PARTS = re.compile(r"(?:loop|ram|zram|dm-|md|sr|fd)\d+|(?:[shv]d[a-z]+|xvd[a-z]+)\d+|(?:nvme\d+n\d+|mmcblk\d+)p\d+")
"""Devices of /proc/diskstats whose bytes another one counts, too, and those in memory."""
QUIET_NETWORKS = re.compile(r"lo|(?:veth|docker|br-|virbr|cni|flannel|tunl|dummy|ifb|sit|gre).*")
"""The loopback, and interfaces inside the machine, whose bytes another one counts, too."""
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "x86_pkg_temp", "acpitz")
"""Names of hwmon devices that measure the processor, the best first."""


class Counters(NamedTuple):
    """Since boot. ``cores``: (busy, all) ticks; ``disks``: bytes read, written, ms busy; ``networks``: bytes."""

    t: float
    cores: Mapping[int, tuple[int, int]]
    swap: tuple[int, int] | None
    disks: Mapping[str, tuple[int, int, int]]
    networks: Mapping[str, tuple[int, int]]


def parse_cores(text: str) -> dict[int, tuple[int, int]]:
    """(busy, all) ticks of each core in ``/proc/stat``. Waiting for disks does not count as busy."""
    cores = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 5 and words[0].startswith("cpu") and words[0][3:].isdecimal():
            ticks = [int(word) for word in words[1:9]]  # guest time is part of user time
            cores[int(words[0][3:])] = (sum(ticks) - ticks[3] - ticks[4], sum(ticks))
    return cores


def parse_disks(text: str) -> dict[str, tuple[int, int, int]]:
    """Bytes read, bytes written and ms busy of each whole disk in ``/proc/diskstats``."""
    disks = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 13 and PARTS.fullmatch(words[2]) is None:
            disks[words[2]] = (int(words[5]) * SECTOR_BYTES, int(words[9]) * SECTOR_BYTES, int(words[12]))
    return disks


def parse_networks(text: str) -> dict[str, tuple[int, int]]:
    """Bytes received and sent of each interface to the outside in ``/proc/net/dev``."""
    networks = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and len(words) >= 9 and QUIET_NETWORKS.fullmatch(name.strip()) is None:
            networks[name.strip()] = (int(words[0]), int(words[8]))
    return networks


def parse_swap(text: str) -> tuple[int, int] | None:
    """Bytes read back from the swap and written to it, in ``/proc/vmstat``."""
    found = dict(line.split(" ", 1) for line in text.splitlines() if line.startswith(("pswpin ", "pswpout ")))
    try:
        return int(found["pswpin"]) * PAGE_BYTES, int(found["pswpout"]) * PAGE_BYTES
    except (KeyError, ValueError):
        return None


def parse_cached(text: str) -> float | None:
    """Memory that holds files and can be given back, in ``/proc/meminfo``."""
    kib = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in {"Cached", "Buffers", "SReclaimable"} and rest.split()[0].isdecimal():
            kib[name] = float(rest.split()[0]) * KIB
    return sum(kib.values()) if "Cached" in kib else None


def parse_load(text: str) -> tuple[float, float, float] | None:
    """The three averages of ``/proc/loadavg``."""
    words = text.split()
    try:
        return float(words[0]), float(words[1]), float(words[2])
    except (IndexError, ValueError):
        return None


def parse_mhz(text: str) -> float | None:
    """Mean clock of the cores in ``/proc/cpuinfo``; None if it is not reported (ARM)."""
    found = [float(value) for value in re.findall(r"^cpu MHz\s*: *([\d.]+)", text, re.MULTILINE)]
    return sum(found) / len(found) if found else None


def rates(before: Counters, now: Counters) -> HostDetails:
    """What happened between two readings, per second; a counter that fell (a device came back) is unknown."""
    seconds = now.t - before.t
    cores: Sequence[float | None] = [
        _share(before.cores.get(core), now.cores.get(core)) for core in range(max(now.cores, default=-1) + 1)
    ]
    swap = None if before.swap is None or now.swap is None else per_second(before.swap, now.swap, seconds)
    disks = []
    for name, counted in now.disks.items():
        done = per_second(before.disks.get(name), counted, seconds)
        if counted[0] or counted[1]:
            busy = None if done is None else min(100.0, done[2] / 10.0)  # ms a second
            disks.append(Traffic(name=name, received=_at(done, 0), sent=_at(done, 1), busy_pct=busy))
    networks = []
    for name, bytes_ in now.networks.items():
        done = per_second(before.networks.get(name), bytes_, seconds)
        if any(bytes_):
            networks.append(Traffic(name=name, received=_at(done, 0), sent=_at(done, 1)))
    return HostDetails(
        t=now.t,
        cores_pct=tuple(cores),
        swap_in=_at(swap, 0),
        swap_out=_at(swap, 1),
        disks=tuple(disks),
        networks=tuple(networks),
    )


def _at(values: Sequence[float] | None, number: int) -> float | None:
    return None if values is None else values[number]


def _share(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    if before is None or now is None or now[1] <= before[1]:
        return None
    return min(100.0, 100.0 * max(0, now[0] - before[0]) / (now[1] - before[1]))


def per_second(before: Sequence[int] | None, now: Sequence[int], seconds: float) -> tuple[float, ...] | None:
    """What counters grew by in a second; None if it cannot be told: no earlier value, or one that is larger."""
    if before is None or seconds <= 0 or any(b > n for b, n in zip(before, now, strict=True)):
        return None
    return tuple((n - b) / seconds for b, n in zip(before, now, strict=True))


def local_mounts(mountinfo: str) -> list[str]:
    """Mount points of local disks, one for each device: a call to a dead network mount does not return."""
    found: dict[str, str] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or not kind or kind[0] not in LOCAL_TYPES or "\\" in fields[4]:
            continue
        if fields[2] not in found or len(fields[4]) < len(found[fields[2]]):
            found[fields[2]] = fields[4]
    return sorted(found.values())[:MOST_MOUNTS]


def _room(path: str) -> Mount | None:
    try:
        space = os.statvfs(path)
    except OSError:
        return None
    if not space.f_blocks:
        return None
    return Mount(path=path, free=float(space.f_bavail * space.f_frsize), total=float(space.f_blocks * space.f_frsize))


class HostDetailReadings:
    """Reads the machine while somebody looks; rates need two readings. ``proc``, ``sys``: other places, for tests."""

    def __init__(self, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        self._proc = proc
        self._sys = sys
        self._before: Counters | None = None
        self._sensor: Path | None = None
        self._searched_s = -SEARCH_S

    def look(self, t: float) -> HostDetails:
        """The details at ``t`` run seconds; rates are unknown at the first look."""
        now = Counters(
            t=t,
            cores=parse_cores(self._read("stat")),
            swap=parse_swap(self._read("vmstat")),
            disks=parse_disks(self._read("diskstats")),
            networks=parse_networks(self._read("net/dev")),
        )
        before, self._before = self._before, now
        if before is None or t - before.t > LONGEST_S:
            before = now
        found = rates(before, now)
        return HostDetails(
            t=t,
            cores_pct=found.cores_pct,
            swap_in=found.swap_in,
            swap_out=found.swap_out,
            disks=found.disks,
            networks=found.networks,
            load=parse_load(self._read("loadavg")),
            cpu_mhz=parse_mhz(self._read("cpuinfo")),
            cpu_temp_c=self._temperature(),
            ram_cached_bytes=parse_cached(self._read("meminfo")),
            mounts=tuple(
                mount for path in local_mounts(self._read("self/mountinfo")) if (mount := _room(path)) is not None
            ),
            up_s=self._up_s(),
        )

    def _up_s(self) -> float | None:
        words = self._read("uptime").split()
        try:
            return float(words[0])
        except (IndexError, ValueError):
            return None

    def _temperature(self) -> float | None:
        """The processor's temperature in °C; None if no sensor says that it measures it."""
        if self._sensor is None and time.monotonic() - self._searched_s >= SEARCH_S:
            self._searched_s = time.monotonic()
            self._sensor = self._find_sensor()
        if self._sensor is None:
            return None
        try:
            return int(self._sensor.read_text("ascii")) / 1000.0
        except (OSError, ValueError):
            self._sensor = None
            return None

    def _find_sensor(self) -> Path | None:
        found: dict[str, Path] = {}
        try:
            for folder in (self._sys / "class" / "hwmon").iterdir():
                name = (folder / "name").read_text("ascii", errors="replace").strip()
                value = folder / "temp1_input"
                if value.exists():
                    found.setdefault(name, value)
        except OSError:
            return None
        return next((found[name] for name in CPU_SENSORS if name in found), None)

    def _read(self, name: str) -> str:
        return kernel_text(f"{self._proc}/{name}")


LOCAL_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay", "vfat", "ntfs3"})
MOST_MOUNTS = 8
SEARCH_S = 60.0
"""Period of looking for a temperature sensor on a machine that has shown none."""
LONGEST_S = 10.0
"""A rate over a longer time is not current: no reading was taken in between."""
