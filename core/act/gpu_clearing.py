"""Waits before a restart until the GPU memory of the ended processes is released, and names who holds it.

The driver frees a dead process's memory after its last handle closes, which takes seconds for large contexts and does
not happen while a worker survives. A restart before that runs out of memory at once (NVIDIA's resiliency extension
waits for the same reason). Memory of other processes is waited for only while it leaves the run less than it needs.
Holders are found as ``fuser /dev/nvidia*`` lists them, by files and mappings in ``/proc``: NVML lists only processes
with a context, and a process that hangs while it ends holds memory and is not on that list. Processes of other users
are visible only to root.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ..model.observation import GpuReading
from ..model.run import RunSpec
from ..model.text import memory
from ..processes import Process, all_processes, file_text, open_files

TOLERANCE_BYTES = 512e6
"""Memory above the baseline that still counts as released: a driver keeps some for its context."""
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


class Holder(NamedTuple):
    """A process with a GPU open. ``compute``: it has CUDA's device open."""

    process: Process
    compute: bool

    @property
    def sentence(self) -> str:
        """Name, pid and meaning of the state."""
        pid, name, state = self.process.pid, self.process.name, self.process.state
        return f"{name} (pid {pid}, state {state}{f', {STATES[state]}' if state in STATES else ''})"


def clear_gpus(spec: RunSpec, baseline: Mapping[int, float], aid: GpuHelp) -> tuple[bool, str]:
    """Block until the memory of the run's GPUs is released, or ``restart.gpu_clear_timeout_s`` is over.

    Returns whether the next attempt can start, and a sentence.
    Every GPU of the run has to be at most ``TOLERANCE_BYTES`` above its baseline (used bytes per GPU index
    before the attempt began), or to have room for the run: as much is free as the attempt used at most, and the driver
    lists no process of the run on it. A GPU whose memory or baseline is unknown is not waited for, and the sentence
    says so. Who holds it: the driver's list has processes of other users, /proc has those that hang while they end.
    """
    restart, peaks = spec.settings.restart, aid.peaks()
    if not any(peaks.values()):  # The driver never listed a process of the run: what it needs is unknown, not zero.
        peaks = {}
    begun = time.monotonic()
    while True:
        readings, waited_s = aid.read(), time.monotonic() - begun
        if not readings:
            return True, "no GPU telemetry; not waited for"
        rest = tuple(
            _rest(reading, baseline.get(reading.index), peaks.get(reading.index))
            for reading in readings
            # By [run] gpus, else by the trainer's environment, which may leave all.
            if (reading.own is not False if spec.gpus is None else reading.index in spec.gpus)
        )
        clear = all(gpu.clear for gpu in rest)
        if clear or waited_s >= restart.gpu_clear_timeout_s:
            break
        time.sleep(min(POLL_S, restart.gpu_clear_timeout_s - waited_s))
    detail = _detail(rest, waited_s, clear=clear)
    if clear:
        return True, detail
    holders = tuple(dict.fromkeys((*aid.users(), *(each.sentence for each in gpu_holders() if each.compute))))
    shown = "; ".join(holders[:HOLDERS]) + (f" and {len(holders) - HOLDERS} more" if len(holders) > HOLDERS else "")
    who = f"; held by {shown}" if holders else "; no visible process holds it: a driver reset or a reboot frees it"
    return False, detail + who


def _rest(reading: GpuReading, baseline: float | None, peak: float | None) -> GpuRest:
    used, total = reading.mem_used_bytes, reading.mem_total_bytes
    rest = GpuRest(index=reading.index, used_bytes=used, baseline_bytes=baseline, clear=False)
    has_room = None not in {total, used, peak} and not reading.own_mem_bytes and total - used >= peak  # type: ignore[operator]
    return replace(rest, clear=rest.more_bytes <= TOLERANCE_BYTES or has_room)


def _detail(rest: tuple[GpuRest, ...], waited_s: float, *, clear: bool) -> str:
    unknown = [gpu.index for gpu in rest if gpu.used_bytes is None or gpu.baseline_bytes is None]
    doubt = f"; memory of GPU {', '.join(map(str, unknown))} is unknown" if unknown else ""
    if not rest:
        return "no telemetry of the run's GPUs; not waited for"
    if clear:
        if len(unknown) == len(rest):
            return doubt.removeprefix("; ")
        taken = any(gpu.more_bytes > TOLERANCE_BYTES for gpu in rest)
        how = "other processes hold GPU memory, and enough is free" if taken else "GPU memory is released"
        return f"{how} ({waited_s:.1f} s){doubt}"
    held = ", ".join(
        f"GPU {gpu.index} {memory(gpu.used_bytes)} (before: {memory(gpu.baseline_bytes)})"
        for gpu in rest
        if not gpu.clear
    )
    return f"still held after {waited_s:.1f} s: {held}{doubt}"


def gpu_holders() -> tuple[Holder, ...]:
    """Processes with a GPU open, CUDA users first, without this process and its children."""
    found = []
    for process in all_processes().values():
        if os.getpid() in {process.pid, process.parent} or process.name in MONITORS:
            continue
        if opened := _opened(process.pid):
            compute = any(path.startswith(COMPUTE) for path in opened)
            found.append(Holder(process, compute))
    return tuple(sorted(found, key=lambda holder: (not holder.compute, holder.process.pid)))


def _opened(pid: int) -> frozenset[str]:
    """Its GPU devices by open files, else by mappings; empty if it has ended or is another user's."""
    found = {path for _, path, _ in open_files(pid) if path.startswith(DEVICES)}
    lines = () if found else file_text(f"/proc/{pid}/maps").splitlines()
    return frozenset(found or {path for line in lines if (path := line[line.find("/") :]).startswith(DEVICES)})
