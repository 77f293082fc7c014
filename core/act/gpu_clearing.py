"""Waits before a restart until the GPU memory of the ended processes is released, and names who holds it.

The driver frees a dead process's memory after its last handle closes, which takes seconds for large contexts and does
not happen while a worker survives. A restart before that runs out of memory at once (NVIDIA's resiliency extension
waits for the same reason). Memory of other processes is waited for only while it leaves the run less than it needs.
Holders are found as ``fuser /dev/nvidia*`` lists them, by files and mappings in ``/proc``: NVML lists only processes
with a context, and a process that hangs while it ends holds memory and is not on that list. Processes of other users
are visible only to root.
"""
# It reads every file of every process, so it avoids pathlib.
# ruff: noqa: PTH115, PTH208

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ..model.observation import GpuReading
from ..model.run import RunSpec
from ..model.text import memory

POLL_S = 0.5
"""Polling faster would load the driver."""
HOLDERS = 4
"""Most processes that the message names."""
DEVICES = ("/dev/nvidia", "/dev/dxg")
COMPUTE = ("/dev/nvidia-uvm", "/dev/dxg")
"""Devices that CUDA opens; a desktop or a monitor opens only the others."""
MONITORS = frozenset({"nvidia-smi", "nvtop", "nvitop", "nvidia-persiste"})
STATES = {"D": "stuck in the kernel: only a reboot or a driver reset ends it", "Z": "dead, not yet collected"}


class GpuHelp(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of other packages that clearing needs.

    ``read``: newest readings, None if there is no telemetry. ``peaks``: most bytes that the attempt used, by GPU.
    ``users``: sentences about processes that the driver lists.
    """

    read: Callable[[], Sequence[GpuReading] | None]
    peaks: Callable[[], Mapping[int, float]] = dict
    users: Callable[[], Sequence[str]] = tuple


class GpuRest(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at the end of the wait. None = unknown."""

    index: int
    used_bytes: float | None
    baseline_bytes: float | None
    clear: bool

    @property
    def more_bytes(self) -> float:
        """What is used beyond the baseline; 0 if that is not known."""
        if self.used_bytes is None or self.baseline_bytes is None:
            return 0.0
        return self.used_bytes - self.baseline_bytes


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """``clear``: the next attempt can start. ``known``: False if nothing could be read and ``clear`` is assumed.

    ``holders``: processes on GPUs that are not clear.
    """

    clear: bool
    known: bool
    waited_s: float
    released_bytes: float | None
    detail: str
    gpus: tuple[GpuRest, ...] = ()
    holders: tuple[str, ...] = ()


class Holder(NamedTuple):
    """A process with a GPU open. ``state`` as in ``/proc/PID/stat``; ``compute``: it has CUDA's device open."""

    pid: int
    name: str
    state: str
    devices: tuple[str, ...]
    compute: bool

    @property
    def sentence(self) -> str:
        """Name, pid and meaning of the state."""
        what = f", {STATES[self.state]}" if self.state in STATES else ""
        return f"{self.name} (pid {self.pid}, state {self.state}{what})"


def clear_gpus(spec: RunSpec, baseline: Mapping[int, float], aid: GpuHelp) -> GateReport:
    """Block until the memory of the run's GPUs is released, or ``restart.gpu_clear_timeout_s`` is over.

    Who holds it: the driver's list has processes of other users, /proc has those that hang while they end.
    """
    restart = spec.settings.restart
    tolerance, timeout_s = restart.gpu_clear_tolerance_bytes, restart.gpu_clear_timeout_s
    report = wait_until_clear(aid.read, baseline, spec.gpus, tolerance, timeout_s, peaks=aid.peaks())
    if report.clear:
        return report
    named = dict.fromkeys((*aid.users(), *(holder.sentence for holder in gpu_holders() if holder.compute)))
    holders = tuple(named)
    shown = "; ".join(holders[:HOLDERS]) + (f" and {len(holders) - HOLDERS} more" if len(holders) > HOLDERS else "")
    who = f"; held by {shown}" if holders else "; no visible process holds it: a driver reset or a reboot frees it"
    return replace(report, holders=holders, detail=report.detail + who)


def wait_until_clear(
    read: Callable[[], Sequence[GpuReading] | None],
    baseline: Mapping[int, float],
    own: tuple[int, ...] | None,
    tolerance_bytes: float,
    timeout_s: float,
    *,
    peaks: Mapping[int, float] = MappingProxyType({}),
    poll_s: float = POLL_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    cancelled: Callable[[], bool] = lambda: False,
) -> GateReport:
    """Wait until every GPU of the run is at most ``tolerance_bytes`` above its baseline, or has room for the run.

    ``read``: newest reading of all GPUs; None or empty: no telemetry. ``baseline``: used bytes per GPU index before the
    attempt began. ``own``: indices that the trainer may use; None: those that its environment leaves it. ``peaks``:
    most bytes that the attempt used, by GPU. A GPU has room if that much is free and the driver lists no process of
    the run on it. One whose memory or baseline is unknown is not waited for, and ``detail`` says so.
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
            _rest(reading, baseline.get(reading.index), peaks.get(reading.index), tolerance_bytes)
            for reading in readings
            if _is_of_run(reading, own)
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
                detail=_detail(rest, waited_s, tolerance_bytes, clear=clear),
                gpus=rest,
            )
        sleep(min(poll_s, max(0.0, timeout_s - waited_s)))


def _is_of_run(reading: GpuReading, own: tuple[int, ...] | None) -> bool:
    """Whether the run may use this GPU: by ``own``, else by the trainer's environment, which may leave all."""
    return reading.own is not False if own is None else reading.index in own


def _rest(reading: GpuReading, baseline: float | None, peak: float | None, tolerance_bytes: float) -> GpuRest:
    used = reading.mem_used_bytes
    rest = GpuRest(index=reading.index, used_bytes=used, baseline_bytes=baseline, clear=False)
    return replace(rest, clear=rest.more_bytes <= tolerance_bytes or _has_room(reading, peak))


def _has_room(reading: GpuReading, peak: float | None) -> bool:
    if reading.mem_total_bytes is None or reading.mem_used_bytes is None or peak is None:
        return False
    return not reading.own_mem_bytes and reading.mem_total_bytes - reading.mem_used_bytes >= peak


def _detail(rest: tuple[GpuRest, ...], waited_s: float, tolerance_bytes: float, *, clear: bool) -> str:
    unknown = [gpu.index for gpu in rest if gpu.used_bytes is None or gpu.baseline_bytes is None]
    doubt = f"; memory of GPU {', '.join(map(str, unknown))} is unknown" if unknown else ""
    if not rest:
        return "no telemetry of the run's GPUs; not waited for"
    if clear:
        if len(unknown) == len(rest):
            return doubt.removeprefix("; ")
        taken = any(gpu.more_bytes > tolerance_bytes for gpu in rest)
        how = "other processes hold GPU memory, and enough is free" if taken else "GPU memory is released"
        return f"{how} ({waited_s:.1f} s){doubt}"
    held = ", ".join(
        f"GPU {gpu.index} {memory(gpu.used_bytes)} (before: {memory(gpu.baseline_bytes)})"
        for gpu in rest
        if not gpu.clear
    )
    return f"still held after {waited_s:.1f} s: {held}{doubt}"


def gpu_holders(
    proc: Path = Path("/proc"), spare: Iterable[int] = (), devices: tuple[str, ...] = DEVICES
) -> tuple[Holder, ...]:
    """Processes with a GPU open, CUDA users first, without this process, its children and ``spare``."""
    excluded = {os.getpid(), *spare}
    found = []
    for entry in _listed(proc):
        if not entry.isdecimal() or int(entry) in excluded:
            continue
        stat = _stat(proc / entry)
        if stat is None or stat[2] in excluded or stat[0] in MONITORS:
            continue
        opened = _opened(proc / entry, devices)
        if opened:
            compute = any(path.startswith(COMPUTE) or "-uvm" in path for path in opened)
            found.append(Holder(int(entry), stat[0], stat[1], opened, compute))
    return tuple(sorted(found, key=lambda holder: (not holder.compute, holder.pid)))


def _opened(process: Path, devices: tuple[str, ...]) -> tuple[str, ...]:
    found = set()
    for number in _listed(process / "fd"):
        try:
            target = os.readlink(process / "fd" / number)
        except OSError:
            continue
        if target.startswith(devices):
            found.add(target)
    if not found:
        try:
            maps = (process / "maps").read_text(errors="replace")
        except OSError:
            maps = ""
        paths = (line.partition("/")[1] + line.partition("/")[2] for line in maps.splitlines() if "/" in line)
        found.update(path for path in paths if path.startswith(devices))
    return tuple(sorted(found))


def _stat(process: Path) -> tuple[str, str, int] | None:
    """(name, state, parent)."""
    try:
        text = (process / "stat").read_text(errors="replace")
    except OSError:
        return None
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    return (head.partition("(")[2], fields[0], int(fields[1])) if len(fields) > 1 else None


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
