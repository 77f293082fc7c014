"""Kernel lines after which a GPU works again only after a reset, and whether the GPU is one of the run's.

Source: NVIDIA's "XID Errors" (the recovery action is a reset of the GPU or of the machine; ``fatal`` in failures.toml).
What cannot be told is not this run's: on a machine with several GPUs of which the run uses some, the line's address
must be that of a GPU of the run.
"""

import re
from typing import NamedTuple

from ...model.text.patterns import LazyPattern
from .catalogue import CompiledCatalogue
from .kernel_lines import XID, read_kernel_line

_ADDRESS = LazyPattern(r"PCI:([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})", re.IGNORECASE)
LOST = "gpu_lost"


class SeenGpu(NamedTuple):
    """A GPU of the machine. ``own``: the run uses it; ``pci``: its address. None = unknown."""

    own: bool | None
    pci: str | None


def names_lost_gpu(text: str, catalogue: CompiledCatalogue) -> bool:
    """Return whether the line says that a GPU is lost until a reset."""
    found = XID.search(text)
    if found is not None:
        return int(found["number"]) in catalogue.fatal_xids
    known = read_kernel_line(text, catalogue)
    return known is not None and known.failure == LOST


def is_of_run(text: str, gpus: tuple[SeenGpu, ...]) -> bool:
    """Return whether the GPU that the line names is one of the run's; False if it cannot be told."""
    found = _ADDRESS.search(text)
    if found is not None and gpus and all(gpu.pci is not None for gpu in gpus):
        address = short_address(found[1])
        gpus = tuple(gpu for gpu in gpus if gpu.pci is not None and short_address(gpu.pci) == address)
    if len(gpus) == 1:
        return gpus[0].own is not False
    return bool(gpus) and all(gpu.own for gpu in gpus)


def short_address(pci: str) -> str:
    """Return bus and device without domain and function: ``0000:01:00``, ``00000000:01:00.0`` and ``1:0`` are one."""
    parts = pci.lower().partition(".")[0].split(":")
    domain = parts[-3].lstrip("0") if len(parts) > 2 else ""
    return ":".join((domain or "0", *(part.lstrip("0") or "0" for part in parts[-2:])))
