"""Whether this machine's GPUs are AMD's, and which of them a trainer sees."""

import importlib.util
from pathlib import Path

from .visible_devices import UNDECIDED, GpuChoice, visible_devices_of

AMD_VARIABLES = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""Each hides GPUs from a program for ROCm: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html."""


def has_amd_gpus(modules: Path = Path("/sys/module")) -> bool:
    """Whether AMD's driver is loaded, NVIDIA's is not, and the binding is installed."""
    if not (modules / "amdgpu").exists() or (modules / "nvidia").exists():
        return False
    return importlib.util.find_spec("amdsmi") is not None


def amd_choice_of(pid: int) -> GpuChoice:
    """All, unless one of AMD_VARIABLES is set: their numbers need not be those of AMD SMI."""
    return None if all(visible_devices_of(pid, name) is None for name in AMD_VARIABLES) else UNDECIDED
