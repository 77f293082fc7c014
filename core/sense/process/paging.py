"""Bytes that the machine read back because it had dropped them for want of memory (``/proc/vmstat``).

In a swap storm the kernel reads a trainer's own memory back from the disk, and counts it as read by the trainer. That
is no work. A file that is mapped and read for the first time is; the kernel's counters tell the two apart.
"""

from ..kernel_text import kernel_text
from .proc_stat import PAGE_BYTES

COUNTERS = ("pswpin", "workingset_refault_file")
"""Pages read back from the swap, and pages of files read again soon after they were dropped."""


class Paging:
    """Pages read back between two looks. System-wide: the kernel has no such count for one process."""

    def __init__(self, path: str = "/proc/vmstat") -> None:
        self._path = path
        self._before: int | None = None

    def read_back(self) -> int:
        """Bytes since the last look; 0 for the first one, or if it cannot be read."""
        table = kernel_text(self._path)
        try:
            now = pages(table)
        except ValueError:
            return 0
        if not table:
            return 0
        before, self._before = self._before, now
        return 0 if before is None else max(0, now - before) * PAGE_BYTES


def pages(text: str) -> int:
    """Add the counters up. Raises ValueError if one is no number."""
    found = (f"\n{text}".partition(f"\n{name} ")[2].partition("\n")[0] for name in COUNTERS)
    return sum(int(number) for number in found if number)


def worked_for(requested: int, from_disk: int, read_back: int) -> int:
    """Bytes read on purpose: what was requested, and what a mapped file brought beyond that and beyond paging."""
    return requested + max(0, from_disk - requested - read_back)
