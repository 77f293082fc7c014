"""How well a run used its machine, against the targets of a balanced run. Pure.

Source: docs/sources.md, SDXL LoRA on 16 GB of VRAM: the machine is used well and keeps a margin for a night of 8 to 12
hours. A run on another machine may miss some of them for good reasons; nothing follows from it.
"""

from collections.abc import Iterator, Sequence

import msgspec

from .. import quantity

UTIL_PCT = 95.0
VRAM_PCT = (90.0, 98.0)
RAM_PCT = (60.0, 70.0)
TEMP_C = 80.0
SWAP_BYTES = 1e9
NIGHT_S = 8 * 3600.0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was read while the run trained: means, and the highest temperature and swap; None = no reading.

    ``alone_s``: its longest time without a crash or hang.
    """

    util_pct: float | None = None
    vram_pct: float | None = None
    ram_pct: float | None = None
    temp_c: float | None = None
    swap_bytes: float | None = None
    alone_s: float | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``met``: whether the value is within the target."""

    what: str
    value: str
    target: str
    met: bool


def targets(usage: Usage) -> tuple[Target, ...]:
    """The targets that there is a reading for; none for a run without a GPU."""
    if usage.util_pct is None and usage.vram_pct is None:
        return ()
    return tuple(_rows(usage))


def _rows(usage: Usage) -> Iterator[Target]:
    if (util := usage.util_pct) is not None:
        yield Target(what="GPU utilisation", value=f"{util:.0f} %", target=f"> {UTIL_PCT:.0f} %", met=util > UTIL_PCT)
    if usage.vram_pct is not None:
        yield _within("GPU memory", usage.vram_pct, VRAM_PCT)
    if usage.ram_pct is not None:
        yield _within("RAM", usage.ram_pct, RAM_PCT)
    if (temp := usage.temp_c) is not None:
        yield Target(what="hottest GPU", value=f"{temp:.0f} °C", target=f"< {TEMP_C:.0f} °C", met=temp < TEMP_C)
    if (swap := usage.swap_bytes) is not None:
        most = f"< {quantity.memory(SWAP_BYTES)}"
        yield Target(what="most swap", value=quantity.memory(swap), target=most, met=swap < SWAP_BYTES)
    if (alone := usage.alone_s) is not None:
        night = quantity.duration(NIGHT_S)
        yield Target(what="longest without a crash", value=quantity.duration(alone), target=night, met=alone >= NIGHT_S)


def _within(what: str, value: float, bounds: tuple[float, float]) -> Target:
    low, high = bounds
    return Target(what=what, value=f"{value:.0f} %", target=f"{low:.0f}–{high:.0f} %", met=low <= value <= high)


TARGET_HEAD = ("while it trained", "", "target", "met")


def target_cells(rows: Sequence[Target]) -> list[tuple[str, ...]]:
    """what, value, target, yes or no."""
    return [(row.what, row.value, row.target, "yes" if row.met else "no") for row in rows]
