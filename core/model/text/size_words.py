"""Sizes of files and room on disks as text, in GB as they are sold. Memory is in GiB: memory_words."""

import math

SIZE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
MOST_DIGITS = 7
"""Sizes that are the same in so many digits are shown as the same."""


def three_digits(value: float, digits: int = 3) -> str:
    """Three significant digits without an exponent: 0.0912, 2.50, 17.1, 291, 6,120; or so many as told."""
    if not math.isfinite(value):
        return "–"
    magnitude = abs(float(f"{value:.{digits}g}"))
    if magnitude == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(magnitude)))
    return f"{value:,.{min(decimals, max(6, digits))}f}"


def size(size_bytes: float | None, digits: int = 3) -> str:
    """870 MB, 17.1 GB: the size of a file, or room on a disk."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return "–"
    for factor, unit in SIZE_UNITS:
        if abs(size_bytes) >= factor * 0.9995:
            return f"{three_digits(size_bytes / factor, digits)} {unit}"
    return f"{size_bytes:.0f} B"


def size_of(used_bytes: float | None, total_bytes: float | None) -> str:
    """12.1 of 30.0 GB, in the unit of the total."""
    if used_bytes is None or total_bytes is None:
        return size(used_bytes)
    for factor, unit in SIZE_UNITS:
        if total_bytes >= factor:
            used = used_bytes / factor
            shown = f"{used:.2f}" if abs(used) < 1 else three_digits(used)
            return f"{shown} of {three_digits(total_bytes / factor)} {unit}"
    return f"{used_bytes:.0f} of {total_bytes:.0f} B"


def sizes_apart(need_bytes: float, free_bytes: float | None) -> tuple[str, str]:
    """Both in words, with as many digits as tell them apart; the second empty if it is unknown."""
    if free_bytes is None:
        return size(need_bytes), ""
    for digits in range(3, MOST_DIGITS):
        if size(need_bytes, digits) != size(free_bytes, digits):
            return size(need_bytes, digits), size(free_bytes, digits)
    return size(need_bytes), size(free_bytes)
