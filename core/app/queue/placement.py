"""On which GPUs a queued run fits: pure. What is not known is no room.

The memory that a run of the queue needs is reserved for it from its start on, because a trainer takes it only minutes
later. A process that the queue did not start may take more at any time: nothing is put beside it unless that is
allowed. Of the GPUs that fit, those with the least load are taken.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ...model.launch.queue import QueueEntry
from ...model.text.memory_words import memory
from ..gpu_survey import GpuSeen

EMPTY_BYTES = 1e9
"""Memory in use without a known process below which a GPU is empty: a desktop takes some hundred MB."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``taken_bytes``: in use or reserved; None = not known. ``alone``: a run has it for itself.

    ``foreign``: who else is there, a clause; empty if nobody is.
    """

    index: int
    total_bytes: float | None
    taken_bytes: float | None
    runs: int = 0
    alone: bool = False
    foreign: str = ""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """``gpus`` None: it fits nowhere now; ``why``: the reason. ``never``: it will not, whatever ends."""

    gpus: tuple[int, ...] | None = None
    why: str = ""
    never: bool = False


def loads(seen: Iterable[GpuSeen], entries: Iterable[QueueEntry], owners: Mapping[int, str]) -> tuple[Load, ...]:
    """The load of each GPU. ``owners``: pid → id of the run that it belongs to, of the processes on GPUs."""
    held = [entry for entry in entries if entry.holds]
    return tuple(_load(gpu, [entry for entry in held if gpu.index in entry.on], owners) for gpu in seen)


def _load(gpu: GpuSeen, held: list[QueueEntry], owners: Mapping[int, str]) -> Load:
    used = gpu.mem_used_bytes
    runs = {entry.run for entry in held if entry.run is not None}
    others = [user for user in gpu.users or () if owners.get(user.pid) not in runs]
    own: dict[str, float | None] = dict.fromkeys(runs, 0.0)
    for user in gpu.users or ():
        run = owners.get(user.pid)
        if run in own and run is not None:
            before = own[run]
            own[run] = None if user.mem_bytes is None or before is None else before + user.mem_bytes
    foreign = ""
    if others:
        pids = ", ".join(str(user.pid) for user in others[:3])
        foreign = f"process{'es' if len(others) > 1 else ''} {pids} that the queue did not start"
    elif used is not None and used - _explained(held, own, listed=gpu.users is not None) > EMPTY_BYTES:
        foreign = f"{memory(used)} in use by processes that are not known"
    reserved = sum(_reserved(entry, own) for entry in held)
    return Load(
        index=gpu.index,
        total_bytes=gpu.mem_total_bytes,
        taken_bytes=None if used is None else used + reserved,
        runs=len(held),
        alone=any(entry.need_bytes is None for entry in held),
        foreign=foreign,
    )


def _explained(held: list[QueueEntry], own: Mapping[str, float | None], *, listed: bool) -> float:
    """Memory in use that runs of the queue may have taken; without bound if one of them needs an unknown amount."""
    if any(entry.need_bytes is None for entry in held):
        return float("inf")
    known = [own.get(entry.run or "") for entry in held]
    return sum(
        (entry.need_bytes or 0.0) if taken is None or not listed or not taken else taken
        for entry, taken in zip(held, known, strict=True)
    )


def _reserved(entry: QueueEntry, own: Mapping[str, float | None]) -> float:
    """What it will still take. Memory that the driver does not report counts as not taken yet."""
    taken = own.get(entry.run or "") or 0.0
    return max(0.0, (entry.need_bytes or 0.0) - taken)


def place(entry: QueueEntry, found: tuple[Load, ...], trouble: str | None = None) -> Placement:
    """The GPUs for an entry: those that it had before if they fit, else the least loaded ones."""
    if entry.wants == 0:
        return Placement(gpus=())
    if trouble is not None or not found:
        return Placement(why=f"no GPU can be read: {trouble or 'there is none'}")
    if len(found) < entry.wants:
        return Placement(why=f"it wants {entry.wants} GPUs, this machine has {len(found)}", never=True)
    largest = sorted((load.total_bytes or 0.0 for load in found), reverse=True)[entry.wants - 1]
    if entry.need_bytes is not None and largest and entry.need_bytes > largest:
        return Placement(why=f"it needs {memory(entry.need_bytes)}, the GPUs have {memory(largest)}", never=True)
    fits = [load for load in found if not objection(entry, load)]
    if len(fits) < entry.wants:
        full = [f"GPU {load.index}: {objection(entry, load)}" for load in found if load not in fits]
        return Placement(why="; ".join(full))
    fits.sort(key=lambda load: (load.index not in entry.on, load.runs, _share(load), load.index))
    return Placement(gpus=tuple(sorted(load.index for load in fits[: entry.wants])))


def objection(entry: QueueEntry, load: Load) -> str:
    """Why it does not fit on a GPU now; empty if it does."""
    if load.taken_bytes is None or load.total_bytes is None:
        return "its memory cannot be read"
    if load.foreign and not entry.beside:
        return load.foreign
    if load.alone:
        return "a run has it for itself"
    if entry.need_bytes is None:
        return f"{load.runs} run{'s' if load.runs > 1 else ''} on it" if load.runs else ""
    free = load.total_bytes - load.taken_bytes
    return "" if free >= entry.need_bytes else f"{memory(max(0.0, free))} left of {memory(load.total_bytes)}"


def _share(load: Load) -> float:
    return (load.taken_bytes or 0.0) / (load.total_bytes or 1.0)
