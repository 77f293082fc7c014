"""The memory pane: RAM, swap, CPU and disk of the machine (or of the cgroup if its limit is lower)."""

import msgspec

from ...model.situation import Situation
from ...model.text.memory_words import GIB
from .. import quantity
from ..state.level import Bounds, level_of
from ..state.run_progress import bounds_now
from .meter import Meter, dimmed, old_words


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """``meters`` in order of importance; ``message``: why there are none; ``note``: their age, if they are old."""

    meters: tuple[Meter, ...] = ()
    message: str | None = None
    note: str | None = None


def memory_view(now: Situation) -> MemoryView:
    """Project the newest host and process samples."""
    host = now.host
    if host is None:
        watched = now.supervisor_alive is not False
        return MemoryView(message="No reading yet" if watched else "No reading: no supervisor is running")
    story, bounds = now.story, bounds_now(now)
    used_pct = None
    if host.ram_used_bytes is not None and host.ram_total_bytes:
        used_pct = 100 * host.ram_used_bytes / host.ram_total_bytes
    meters = [
        Meter(
            label="RAM",
            text=quantity.memory_of(host.ram_used_bytes, host.ram_total_bytes),
            level=level_of(story, ("ram_used", "host.ram_used"), bounds["ram_used"], used_pct),
            series="host.ram_used",
            high=host.ram_total_bytes,
            bounds=_scaled(bounds["ram_used"], host.ram_total_bytes),
        ),
        Meter(
            label="avail",
            text=quantity.memory(host.ram_available_bytes),
            level=level_of(
                story, ("ram_available", "host.ram_available"), bounds["ram_available"], host.ram_available_bytes
            ),
            series="host.ram_available",
            high=host.ram_total_bytes,
            bounds=bounds["ram_available"],
        ),
        Meter(
            label="swap",
            text=quantity.memory(host.swap_used_bytes),
            extra=f"of {quantity.memory(host.swap_total_bytes)}" if host.swap_total_bytes else "",
            level=level_of(story, ("swap_used", "host.swap_used"), bounds["swap_used"], host.swap_used_bytes),
            series="host.swap_used",
            high=max(host.swap_total_bytes or 0.0, 2 * GIB),
            bounds=bounds["swap_used"],
        ),
    ]
    process = now.process
    if process is not None and process.cpu_cores is not None:
        procs = "" if process.procs is None else quantity.plural(process.procs, "process", "processes")
        meters.append(
            Meter(
                label="cpu",
                text=quantity.cores(process.cpu_cores),
                extra=procs,
                level="safe",
                series="process.cpu",
                high=None,
            )
        )
    if host.disk_free_bytes is not None:
        meters.append(
            Meter(
                label="disk",
                text=f"{quantity.size(host.disk_free_bytes)} free",
                level=level_of(story, ("disk_free", "host.disk_free"), bounds["disk_free"], host.disk_free_bytes),
                series="host.disk_free",
                high=None,
                bounds=bounds["disk_free"],
            )
        )
    old = old_words(now.age_s(host.t))
    return MemoryView(meters=tuple(meters if old is None else map(dimmed, meters)), note=old)


def _scaled(bounds: Bounds, total: float | None) -> Bounds:
    """Bounds in per cent as bounds in bytes."""
    return tuple((bound * (total or 0.0) / 100, level) for bound, level in bounds) if total else bounds
