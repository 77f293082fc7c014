"""What the GPU pane shows: meters of each GPU with their levels, or why there is none."""

import msgspec

from ...model.observation import GpuReading
from ...model.situation import Situation
from .. import quantity
from ..state.level import ALL_SAFE, Bounds, level_of
from ..state.run_progress import bounds_now
from .meter import Meter, dimmed, old_words


class GpuView(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``trouble``: why its readings are missing or old."""

    index: int
    name: str
    util: Meter
    vram: Meter
    temp: Meter
    power: Meter
    own: bool | None = None
    trouble: str | None = None
    throttle: str | None = None

    @property
    def meters(self) -> tuple[Meter, ...]:
        """In the order of the pane."""
        return (self.util, self.vram, self.temp, self.power)


class GpuPaneView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there are no readings. ``note``: simulated, or the age. ``t``: when it was read, run seconds."""

    gpus: tuple[GpuView, ...] = ()
    t: float = 0.0
    message: str | None = None
    note: str | None = None


def gpu_pane_view(now: Situation) -> GpuPaneView:
    """Project the newest GPU sample."""
    sample = now.gpu
    if sample is None:
        return GpuPaneView(message=_nothing_yet(now))
    note = "SIMULATED" if sample.simulated else None
    old = old_words(now.age_s(sample.t))
    if sample.gpus and old is not None:
        note = old if note is None else f"{note}, {old}"
    if not sample.gpus:
        if sample.trouble:
            return GpuPaneView(message=sample.trouble, note=note)
        return GpuPaneView(message="No NVIDIA GPU seen on this machine", note=note)
    gpus = tuple(gpu_view(now, g, sample.trouble) for g in sample.gpus)
    if old is not None:
        gpus = tuple(
            msgspec.structs.replace(
                g, util=dimmed(g.util), vram=dimmed(g.vram), temp=dimmed(g.temp), power=dimmed(g.power)
            )
            for g in gpus
        )
    if sample.trouble:
        note = sample.trouble if note is None else f"{note}, {sample.trouble}"
    return GpuPaneView(gpus=gpus, t=sample.t, note=note)


def _nothing_yet(now: Situation) -> str:
    if now.supervisor_alive is False:
        return "No reading: no supervisor is running"
    return "No reading yet"


def gpu_view(now: Situation, g: GpuReading, sample_trouble: str | None = None) -> GpuView:
    """Project one GPU. ``sample_trouble``: why none can be read."""
    vram_pct = None
    if g.mem_used_bytes is not None and g.mem_total_bytes:
        vram_pct = 100 * g.mem_used_bytes / g.mem_total_bytes
    prefix, bounds = f"gpu{g.index}", bounds_now(now)
    trouble = g.trouble
    if trouble is None and sample_trouble is None and g.util_pct is None and g.mem_used_bytes is None:
        trouble = "has no readings"
    return GpuView(
        index=g.index,
        name=_short(g.name),
        own=g.own,
        trouble=trouble,
        throttle=", ".join(g.throttle) if g.throttle else None,
        util=Meter(
            label="util",
            text=quantity.percent(g.util_pct),
            level=level_of(now.story, (f"{prefix}.util",), bounds["util"], g.util_pct),
            series=f"{prefix}.util",
            bounds=bounds["util"],
        ),
        vram=Meter(
            label="vram",
            text=quantity.percent(vram_pct) if vram_pct is not None else quantity.memory(g.mem_used_bytes),
            extra=quantity.memory_of(g.mem_used_bytes, g.mem_total_bytes),
            level=level_of(now.story, (f"{prefix}.vram",), bounds["vram"], vram_pct),
            series=f"{prefix}.vram",
            high=g.mem_total_bytes,
            bounds=_scaled(bounds["vram"], g.mem_total_bytes),
            whole=g.mem_total_bytes if vram_pct is not None else None,
        ),
        temp=Meter(
            label="temp",
            text=quantity.UNKNOWN if g.temp_c is None else f"{g.temp_c:.0f} °C",
            level=level_of(now.story, (f"{prefix}.temp",), bounds["temp"], g.temp_c),
            series=f"{prefix}.temp",
            low=20.0,
            bounds=bounds["temp"],
        ),
        power=Meter(
            label="power",
            text=quantity.UNKNOWN if g.power_w is None else f"{g.power_w:.0f} W",
            extra="" if g.power_w is None or not g.power_limit_w else f"of {g.power_limit_w:.0f} W",
            level=level_of(now.story, (f"{prefix}.power",), bounds["power"], g.power_w),
            series=f"{prefix}.power",
            high=g.power_limit_w,
        ),
    )


def _scaled(bounds: Bounds, total_bytes: float | None) -> Bounds:
    """The bounds of VRAM in bytes: its history is kept in bytes, its levels are per cent."""
    if not total_bytes:
        return ALL_SAFE
    return tuple((bound * total_bytes / 100, level) for bound, level in bounds)


def _short(name: str | None) -> str:
    """Without the maker: RTX 4080 for NVIDIA GeForce RTX 4080."""
    if not name:
        return ""
    for word in ("NVIDIA ", "GeForce ", "Graphics Device"):
        name = name.replace(word, "")
    return name.strip()
