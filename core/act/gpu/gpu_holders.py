"""Who has a GPU open, as ``fuser /dev/nvidia*`` tells it: by the files and mappings of every process in ``/proc``.

The driver lists only processes with a context that it still knows; one that is stuck while it ends holds memory and is
on no list of NVML. Processes of other users are seen only by root.
"""
# A look at every file of every process: kept fast.
# ruff: noqa: PTH115, PTH208

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DEVICES = ("/dev/nvidia", "/dev/dxg")
COMPUTE = ("/dev/nvidia-uvm", "/dev/dxg")
"""Opened for CUDA; a desktop or a monitor opens only the others."""
MONITORS = frozenset({"nvidia-smi", "nvtop", "nvitop", "nvidia-persiste"})
STATES = {"D": "stuck in the kernel: only a reboot or a driver reset ends it", "Z": "dead, not yet collected"}


class Holder(NamedTuple):
    """One process with a GPU open. ``state`` as in ``/proc/PID/stat``; ``compute``: it has CUDA's device open."""

    pid: int
    name: str
    state: str
    devices: tuple[str, ...]
    compute: bool

    @property
    def sentence(self) -> str:
        """Name, pid, and what its state means."""
        what = f", {STATES[self.state]}" if self.state in STATES else ""
        return f"{self.name} (pid {self.pid}, state {self.state}{what})"


def gpu_holders(
    proc: Path = Path("/proc"), spare: Iterable[int] = (), devices: tuple[str, ...] = DEVICES
) -> tuple[Holder, ...]:
    """Everybody who has a GPU open but this process, its children and ``spare``; who computes comes first."""
    ours = {os.getpid(), *spare}
    found = []
    for entry in _listed(proc):
        if not entry.isdecimal() or int(entry) in ours:
            continue
        said = _stat(proc / entry)
        if said is None or said[2] in ours or said[0] in MONITORS:
            continue
        opened = _opened(proc / entry, devices)
        if opened:
            compute = any(path.startswith(COMPUTE) or "-uvm" in path for path in opened)
            found.append(Holder(int(entry), said[0], said[1], opened, compute))
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
