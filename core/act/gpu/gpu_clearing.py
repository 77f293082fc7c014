"""Making the GPUs ready for the next attempt: wait for our memory, name who holds it, calm a ghost."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...model.observation import GpuReading
from ...model.run import RunSpec
from . import ghost_utilisation
from .gpu_holders import gpu_holders
from .memory_gate import GateReport, wait_until_clear

RESET = "nvidia-smi --gpu-reset (as root, with nobody on it) or a reboot calms it"
HOLDERS = 4
"""So many are named; a person needs the first ones."""


class GpuHelp(msgspec.Struct, frozen=True, kw_only=True):
    """What is handed in from outside this room.

    ``read``: newest readings, None = nothing to see. ``users``: sentences on processes that the driver lists.
    ``python``: words that start the trainer's interpreter, None where that cannot be told. ``touching``: whether a
    context may be opened at all (not under WSL2, whose utilisation says little and whose channel breaks easily).
    """

    read: Callable[[], Sequence[GpuReading] | None]
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
    """Block until the GPUs are ready or ``restart.gpu_clear_timeout_s`` and what follows it are over."""
    restart = spec.settings.restart
    tolerance = restart.gpu_clear_tolerance_bytes
    report = wait_until_clear(aid.read, baseline, spec.gpus, tolerance, restart.gpu_clear_timeout_s)
    if not report.clear:
        return _with_holders(report, aid)
    if not report.known or not aid.touching:
        return report

    def look() -> tuple[int, ...]:
        return ghost_utilisation.ghosts(aid.read(), baseline, spec.gpus, tolerance)

    found = ghost_utilisation.lasting_ghosts(look, calm_s=calm_s)
    if not found or ghost_utilisation.somebody_computes():
        return report
    python = aid.python()
    if python is None:
        touched = "no context was opened: the trainer's interpreter is not known"
    else:
        touched = ghost_utilisation.touch(python, cwd=spec.cwd, env={**env, **spec.env}, own=spec.gpus)
    left = ghost_utilisation.lasting_ghosts(look, calm_s=calm_s)
    detail = (
        f"GPU {_listed(found)} says 100 % with nothing on it, left by a kill in the middle of a kernel; {touched}; "
        + (f"GPU {_listed(left)} stays busy: {RESET}" if left else "it is calm again")
    )
    return msgspec.structs.replace(report, clear=not left, ghosts=found, touched=touched, detail=detail)


def _with_holders(report: GateReport, aid: GpuHelp) -> GateReport:
    """The driver's list and ours: one knows those of other users, the other those that are stuck while they end."""
    named = dict.fromkeys((*aid.users(), *(f"{holder.sentence}" for holder in gpu_holders() if holder.compute)))
    holders = tuple(named)
    shown = "; ".join(holders[:HOLDERS]) + (f" and {len(holders) - HOLDERS} more" if len(holders) > HOLDERS else "")
    who = f"; held by {shown}" if holders else "; no process is seen that holds it: a driver reset or a reboot frees it"
    return msgspec.structs.replace(report, holders=holders, detail=report.detail + who)


def _listed(indices: tuple[int, ...]) -> str:
    return ", ".join(map(str, indices))
