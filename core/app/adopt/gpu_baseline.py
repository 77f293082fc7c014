"""The GPU memory that others held when a trainer was adopted: what is above it after its end is waited for."""

from collections.abc import Set as AbstractSet
from pathlib import Path

from ...act.attempt_launcher import BASELINE
from ...act.launch import spool
from ...act.launch.launching import find_attempt
from ...sense.gpu.gpu_sensor import pids_are_comparable
from ...sense.process.run_tree import tree_pids
from ..gpu_survey import GpuSeen, GpuSurvey, survey

UNKNOWN_SHARE = 0.5
"""Share of a GPU's memory that counts as the others' if the driver does not say whose it is (WSL2, containers): a
trainer that ends gives most of it back, and a desktop keeps its part."""


def record_baseline(folder: Path) -> None:
    """Write the file that a launch writes, for an adopted attempt. Asks the driver; raises OSError."""
    target = find_attempt(folder)
    if target is None:
        return
    pids = tree_pids(target) if pids_are_comparable() else None
    baseline = baseline_of(survey(), pids)
    if baseline:
        spool.write(str(folder), BASELINE, {str(index): used for index, used in baseline.items()})


def baseline_of(found: GpuSurvey, pids: AbstractSet[int] | None) -> dict[int, float]:
    """Bytes of others by GPU index. ``pids``: of the trainer's tree; None: not comparable with the driver's."""
    return {gpu.index: used for gpu in found.gpus if (used := _of_others(gpu, pids)) is not None}


def _of_others(gpu: GpuSeen, pids: AbstractSet[int] | None) -> float | None:
    used = gpu.mem_used_bytes
    if used is None:
        return None
    if pids is None or gpu.users is None:
        return UNKNOWN_SHARE * used
    own = [user.mem_bytes for user in gpu.users if user.pid in pids]
    if any(size is None for size in own):
        return UNKNOWN_SHARE * used
    if not own:  # what no process is listed for may be the trainer's
        listed = min(used, sum(user.mem_bytes or 0.0 for user in gpu.users))
        return listed + UNKNOWN_SHARE * (used - listed)
    return max(0.0, used - sum(size or 0.0 for size in own))
