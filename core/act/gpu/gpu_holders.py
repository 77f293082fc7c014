"""Processes that have a GPU open, as ``fuser /dev/nvidia*`` lists them: by files and mappings in ``/proc``.

NVML lists only processes with a context. A process that hangs while it ends holds memory and is not on that list.
Processes of other users are visible only to root.
"""
# It reads every file of every process, so it avoids pathlib.
# ruff: noqa: PTH115, PTH208

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DEVICES = ("/dev/nvidia", "/dev/dxg")
COMPUTE = ("/dev/nvidia-uvm", "/dev/dxg")
"""Devices that CUDA opens; a desktop or a monitor opens only the others."""
MONITORS = frozenset({"nvidia-smi", "nvtop", "nvitop", "nvidia-persiste"})
STATES = {"D": "stuck in the kernel: only a reboot or a driver reset ends it", "Z": "dead, not yet collected"}


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
