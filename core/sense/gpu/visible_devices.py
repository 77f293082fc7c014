"""Which GPUs are the trainer's."""

from collections.abc import Iterable
from pathlib import Path

GpuChoice = tuple[int | str, ...] | None
"""Indices and UUIDs (or beginnings of UUIDs, as CUDA takes them); None = all."""


def parse_visible_devices(value: str | None) -> GpuChoice:
    """``CUDA_VISIBLE_DEVICES`` as CUDA reads it: the list ends at the first entry that names no device.

    Not set: all. CUDA counts in its own order (fastest first) unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``; on machines
    with unequal GPUs the indices may differ from the driver's.
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
    """``CUDA_VISIBLE_DEVICES`` with which a process was started; None where it is not set or may not be seen."""
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
    """Whether the choice names this GPU; None = cannot be said (a MIG slice, or its UUID is not known)."""
    if choice is None:
        return True
    names = [entry for entry in choice if isinstance(entry, str)]
    if index in choice or (uuid is not None and any(uuid.startswith(name) for name in names)):
        return True
    return None if _undecided(names, uuid) else False


def _undecided(names: Iterable[str], uuid: str | None) -> bool:
    return any(name.startswith("MIG-") or uuid is None for name in names)
