"""Which engine starts the attempts of a run."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..model.observation import GpuReading
from ..model.run import RunSpec
from .engine import Engine
from .evidence.capture import KernelTail, no_kernel_log
from .local_engine import LocalEngine
from .stop.save_request import AskToSave


def engine_of(
    spec: RunSpec,
    *,
    base_env: Mapping[str, str],
    save: AskToSave = (None, None),
    shared: Path | None = None,
    gpus_now: Callable[[], Sequence[GpuReading] | None] = lambda: None,
    kernel_tail: KernelTail = no_kernel_log,
    wsl: bool = False,
) -> Engine:
    """The engine that the run names. Parameters as of the two classes."""
    local = LocalEngine(spec, base_env=base_env, save=save, gpus_now=gpus_now, kernel_tail=kernel_tail, wsl=wsl)
    match spec.engine:
        case "local":
            return local
        case "slurm":
            from .slurm.slurm_engine import SlurmEngine  # a third of a megabyte that only such runs need

            return SlurmEngine(spec, local, save=save, shared=shared)
