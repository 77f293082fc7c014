"""Which GPUs are the trainer's."""

from collections.abc import Iterable
from pathlib import Path

GpuChoice = tuple[int | str, ...] | None
"""Indices and UUIDs (or prefixes of UUIDs, as CUDA accepts them); None: all."""


def parse_visible_devices(value: str | None) -> GpuChoice:
    """Parse ``CUDA_VISIBLE_DEVICES`` as CUDA does: the list ends at the first entry that is not a device.

    Not set: all. CUDA's order is the fastest GPU first unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``, so on machines with
    different GPUs the indices may differ from the driver's.
    """
    if value is None:
        return None
    chosen: list[int | str] = []
    for entry in (part.strip() for part in value.split(",")):
        if entry.isdecimal():
            chosen.append(int(entry))
        elif entry.startswith(("GPU-", "MIG-")):
            chosen.append(entry)
        else:
            break
    return tuple(chosen)


def visible_devices_of(pid: int) -> str | None:
    """``CUDA_VISIBLE_DEVICES`` of a process at its start; None if it is not set or not readable."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == b"CUDA_VISIBLE_DEVICES":
            return value.decode("utf-8", "replace")
    return None


def is_own(choice: GpuChoice, index: int, uuid: str | None) -> bool | None:
    """Whether the choice includes this GPU; None: unknown (a MIG slice, or an unknown UUID)."""
    if choice is None:
        return True
    names = [entry for entry in choice if isinstance(entry, str)]
    if index in choice or (uuid is not None and any(uuid.startswith(name) for name in names)):
        return True
    return None if _undecided(names, uuid) else False


def _undecided(names: Iterable[str], uuid: str | None) -> bool:
    return any(name.startswith("MIG-") or uuid is None for name in names)
