"""Amounts of memory as text, in GiB as the tools of GPUs have them. Sizes of files and disks are in GB."""

import math

GIB = float(2**30)
MIB = float(2**20)
LEAST_GIB = 0.1
"""Smaller amounts are in MiB: 30 MiB says more than 0.03 GiB."""


def gib(amount_bytes: float) -> str:
    """The number of GiB with three digits: 0.26, 5.21, 15.4, 128."""
    value = amount_bytes / GIB
    size = abs(value)
    return f"{value:.2f}" if size < 9.995 else f"{value:.1f}" if size < 99.95 else f"{value:,.0f}"


def memory(amount_bytes: float | None) -> str:
    """15.4 GiB, 0.26 GiB, 30 MiB; ``–`` if unknown."""
    if amount_bytes is None or not math.isfinite(amount_bytes):
        return "–"
    if amount_bytes == 0:
        return "0 GiB"
    if abs(amount_bytes) < LEAST_GIB * GIB:
        return f"{amount_bytes / MIB:.0f} MiB"
    return f"{gib(amount_bytes)} GiB"


def memory_of(used_bytes: float | None, total_bytes: float | None) -> str:
    """14.2 of 15.9 GiB; without a total what is used."""
    if used_bytes is None or not math.isfinite(used_bytes) or not total_bytes:
        return memory(used_bytes)
    return f"{gib(used_bytes)} of {gib(total_bytes)} GiB"
