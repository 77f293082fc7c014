"""The result of one check, and the machine that is checked."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ...model.run import RunSpec
from ...sense.host.host_sensor import is_wsl, memory_limit, read_memory
from ...store.home import runs_folder
from ...store.run_directory import RunDirectory
from ..gpu_survey import GpuSurvey, survey
from ..runs.known_runs import home

GB = 1e9


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``found``: a sentence. ``remedy``: what to do about a warning or a failure.

    ``name``: from its row in the table. ``errno``: of the system, if it is that.
    """

    name: str = ""
    result: Literal["pass", "warn", "fail"]
    found: str
    remedy: str = ""
    errno: int | None = None


def passed(found: str) -> Check:
    return Check(result="pass", found=found)


def warned(found: str, remedy: str) -> Check:
    """The check found a risk; the run may still succeed."""
    return Check(result="warn", found=found, remedy=remedy)


def failed(found: str, remedy: str, errno: int | None = None) -> Check:
    """The run would fail."""
    return Check(result="fail", found=found, remedy=remedy, errno=errno)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, read once. ``root``: the root of its file system (tests use another).

    Memory in bytes, of the cgroup if that is the tighter limit; None = unknown. ``home``: trainwatch's state folder.
    """

    gpus: GpuSurvey = GpuSurvey()
    ram_total_bytes: float | None = None
    ram_available_bytes: float | None = None
    swap_used_bytes: float | None = None
    kernel: str = ""
    environ: Mapping[str, str] = {}
    home: Path
    root: Path = Path("/")

    @property
    def wsl(self) -> bool:
        """Whether this is WSL: Linux in a virtual machine on Windows."""
        return "microsoft" in self.kernel.lower() or is_wsl(self.root)

    def run(self, spec: RunSpec) -> RunDirectory:
        """The folder of a run, which may not exist yet."""
        return RunDirectory(runs_folder(self.home) / spec.id)

    @property
    def vram_bytes(self) -> float | None:
        """Memory of the smallest GPU; None without a GPU."""
        return min((g.mem_total_bytes for g in self.gpus.gpus if g.mem_total_bytes is not None), default=None)


def look_at_machine(answer: Callable[[], GpuSurvey] = survey, *, gpus: bool = True) -> Machine:
    """Query driver, kernel and environment; may block for some seconds.

    ``answer``: what the driver says. ``gpus`` False: it is not asked.
    """
    memory = read_memory()
    total, available = memory.total or 0.0, memory.available or 0.0
    limit = memory_limit()
    if limit is not None and limit.limit_bytes < total:
        total = float(limit.limit_bytes)
        available = min(available, float(max(0, limit.limit_bytes - limit.used_bytes)))
    return Machine(
        gpus=answer() if gpus else GpuSurvey(),
        ram_total_bytes=total,
        ram_available_bytes=available,
        swap_used_bytes=(memory.swap_total or 0.0) - (memory.swap_free or 0.0),
        kernel=os.uname().release,
        environ=os.environ,
        home=home(),
    )


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
