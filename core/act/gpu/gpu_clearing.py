"""Makes the GPUs ready for the next attempt: waits for memory, names its holders, removes ghost utilisation."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...model.observation import GpuReading
from ...model.run import RunSpec
from . import ghost_utilisation
from .gpu_holders import gpu_holders
from .memory_gate import GateReport, wait_until_clear

RESET = "nvidia-smi --gpu-reset (as root, with no process on the GPU) or a reboot ends it"
HOLDERS = 4
"""Most processes that the message names."""


class GpuHelp(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of other packages that clearing needs.

    ``read``: newest readings, None if there is no telemetry. ``peaks``: most bytes that the attempt used, by GPU.
    ``users``: sentences about processes that the driver lists. ``python``: argv of the trainer's interpreter, None if
    unknown. ``touching``: whether a CUDA context may be opened (not under WSL2: its utilisation is unreliable and its
    GPU channel breaks easily).
    """

    read: Callable[[], Sequence[GpuReading] | None]
    peaks: Callable[[], Mapping[int, float]] = dict
    users: Callable[[], Sequence[str]] = tuple
    python: Callable[[], Sequence[str] | None] = lambda: None
    touching: bool = True


def clear_gpus(
    spec: RunSpec,
    baseline: Mapping[int, float],
    aid: GpuHelp,
    env: Mapping[str, str],
    *,
    calm_s: float = ghost_utilisation.CALM_S,
) -> GateReport:
    """Block until the GPUs are ready, or ``restart.gpu_clear_timeout_s`` and the removal of ghosts are over."""
    restart = spec.settings.restart
    tolerance = restart.gpu_clear_tolerance_bytes
    timeout_s = restart.gpu_clear_timeout_s
    report = wait_until_clear(aid.read, baseline, spec.gpus, tolerance, timeout_s, peaks=aid.peaks())
    if not report.clear:
        return _with_holders(report, aid)
    if not report.known or not aid.touching:
        return report

    def look() -> tuple[int, ...]:
        return ghost_utilisation.ghosts(aid.read(), baseline, spec.gpus, tolerance)

    found = ghost_utilisation.lasting_ghosts(look, calm_s=calm_s)
    if not found or ghost_utilisation.cuda_device_in_use():
        return report
    python = aid.python()
    if python is None:
        touched = "no context was opened: the trainer's interpreter is unknown"
    else:
        touched = ghost_utilisation.touch(python, cwd=spec.cwd, env={**env, **spec.env}, own=spec.gpus)
    left = ghost_utilisation.lasting_ghosts(look, calm_s=calm_s)
    detail = (
        f"GPU {_listed(found)} reports 100 % without a process on it, because a process was killed during a kernel; "
        f"{touched}; " + (f"GPU {_listed(left)} still reports 100 %: {RESET}" if left else "it is idle again")
    )
    return msgspec.structs.replace(report, clear=not left, ghosts=found, touched=touched, detail=detail)


def _with_holders(report: GateReport, aid: GpuHelp) -> GateReport:
    """Add the holders: the driver's list has processes of other users, /proc has those that hang while they end."""
    named = dict.fromkeys((*aid.users(), *(f"{holder.sentence}" for holder in gpu_holders() if holder.compute)))
    holders = tuple(named)
    shown = "; ".join(holders[:HOLDERS]) + (f" and {len(holders) - HOLDERS} more" if len(holders) > HOLDERS else "")
    who = f"; held by {shown}" if holders else "; no visible process holds it: a driver reset or a reboot frees it"
    return msgspec.structs.replace(report, holders=holders, detail=report.detail + who)


def _listed(indices: tuple[int, ...]) -> str:
    return ", ".join(map(str, indices))
