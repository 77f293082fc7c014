"""The memory limit of a control group (a container, a systemd unit), v2 and v1.

A process that exceeds it is killed although the host has free memory; psutil's ``virtual_memory()`` shows the host.
"""

import time
from pathlib import Path
from typing import NamedTuple

from ..kernel_text import kernel_text

UNLIMITED_BYTES = 1 << 60
"""v1 writes "no limit" as a number close to 2^63. No machine has an exbibyte."""

GROUPS_S = 10.0
"""Longest time until a limit that was set or lifted is seen. What is used is read each time."""


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
    return MemoryLimits(pid, proc=proc).now()


class MemoryLimits:
    """``memory_limit`` of one process, once a second: only the groups that have a limit are read each time."""

    def __init__(self, pid: int | str = "self", *, proc: Path = Path("/proc")) -> None:
        self.pid = pid
        self._proc = proc
        self._cgroup = f"{proc}/{pid}/cgroup"
        self._group = ""
        self._until = 0.0
        self._limited: list[tuple[Path, _Layout]] = []

    def now(self) -> MemoryLimit | None:
        group = kernel_text(self._cgroup)
        if group != self._group or time.monotonic() >= self._until:
            self._group, self._until = group, time.monotonic() + GROUPS_S
            self._limited = [
                (folder, layout)
                for layout, base, path in _groups(group, self._proc)
                for folder in _upwards(base, path)
                if _read(folder, layout) is not None
            ]
        limits = [limit for folder, layout in self._limited if (limit := _read(folder, layout)) is not None]
        return min(limits, key=lambda limit: limit.limit_bytes, default=None)


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
    for line in kernel_text(f"{proc}/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            mounts[_V2] = (fields[3], Path(fields[4]))
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            mounts[_V1] = (fields[3], Path(fields[4]))
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
