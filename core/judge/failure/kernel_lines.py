"""What the kernel says about the GPU and about memory: NVIDIA Xid numbers, the OOM killer, WSL2's GPU channel.

Xid meanings: NVIDIA "XID Errors" documentation (r570). Xids that a crashing program causes itself (13, 31, 43, 45) say
that the *program's* kernel failed; the others say that the device or the driver did.
"""

from typing import NamedTuple

from ...model.failure import FailureClass
from ..text.patterns import LazyPattern


class KernelClue(NamedTuple):
    """A kernel line understood. ``weight`` 0..1 as in the catalogue."""

    failure: FailureClass
    weight: float
    meaning: str


XIDS: dict[int, tuple[FailureClass, float, str]] = {
    8: ("cuda_launch_failure", 0.8, "GPU stopped processing (watchdog)"),
    13: ("cuda_illegal_access", 0.82, "graphics engine exception: an instruction or address of the program"),
    31: ("cuda_illegal_access", 0.88, "GPU memory page fault: an illegal address of the program"),
    32: ("cuda_unknown_error", 0.75, "invalid or corrupted push buffer"),
    38: ("cuda_unknown_error", 0.8, "driver firmware error"),
    43: ("cuda_launch_failure", 0.5, "GPU stopped processing for this program"),
    45: ("unknown", 0.2, "clean-up after an earlier error or a kill"),
    46: ("gpu_lost", 0.9, "GPU stopped processing"),
    48: ("gpu_lost", 0.95, "double-bit ECC error"),
    56: ("gpu_lost", 0.75, "display engine error"),
    61: ("gpu_lost", 0.85, "internal micro-controller breakpoint"),
    62: ("gpu_lost", 0.9, "internal micro-controller halt"),
    63: ("unknown", 0.2, "memory page retired or row remapped: works on, watch it"),
    64: ("gpu_lost", 0.85, "page retirement or row remap failed"),
    68: ("cuda_unknown_error", 0.6, "video processor exception"),
    69: ("cuda_illegal_access", 0.75, "graphics engine class error"),
    74: ("gpu_lost", 0.9, "NVLink error"),
    79: ("gpu_lost", 0.97, "GPU has fallen off the bus"),
    92: ("unknown", 0.2, "high rate of single-bit ECC errors"),
    94: ("gpu_lost", 0.9, "contained ECC error"),
    95: ("gpu_lost", 0.95, "uncontained ECC error"),
    109: ("cuda_unknown_error", 0.85, "context switch time-out"),
    110: ("gpu_lost", 0.9, "security fault"),
    119: ("gpu_lost", 0.93, "GSP firmware time-out"),
    120: ("gpu_lost", 0.93, "GSP firmware error"),
    121: ("gpu_lost", 0.8, "C2C link error"),
    122: ("gpu_lost", 0.75, "SPI access failure"),
    136: ("gpu_lost", 0.85, "link training failed"),
    140: ("gpu_lost", 0.92, "unrecovered ECC error"),
    143: ("gpu_lost", 0.9, "GPU initialization failure"),
    145: ("gpu_lost", 0.85, "NVLink 5 error"),
    149: ("gpu_lost", 0.85, "NVLink 5 error"),
    154: ("gpu_lost", 0.9, "the GPU needs a reset"),
}
_XID = LazyPattern(r"NVRM: Xid \(?[^)]*\)?: (?P<number>\d{1,4})")
_LINES: tuple[tuple[str, FailureClass, float, str], ...] = (
    (r"fallen off the bus|gpu is lost|rminitadapter failed", "gpu_lost", 0.96, "the driver lost the GPU"),
    (r"nvrm: api mismatch", "driver_mismatch", 0.95, "kernel module and driver library differ"),
    (r"out of memory: kill(?:ed)? process|oom-kill:|oom_reaper", "host_oom", 0.93, "the kernel's OOM killer ran"),
    # WSL2: the GPU is reached over a channel to Windows. "Ioctl failed: -22" at start-up is harmless and left out.
    (r"dxg.*(?:device|adapter) (?:was )?(?:removed|lost|stopped)", "gpu_lost", 0.92, "WSL2 lost its GPU"),
    (r"dxg.*channel.*(?:closed|rescind|broken)|hv_vmbus.*dxg.*rescind", "gpu_lost", 0.92, "WSL2 lost its GPU channel"),
    (r"dxg.*(?:0x887a000[5-7]|0xc000026e|status_device_removed)", "gpu_lost", 0.92, "Windows reset or removed the GPU"),
    (
        r"dxg.*(?:make_resident|create_allocation|reserve_gpu_va|map_gpu_va|create_paging).*(?:-12\b|0xc0000017)",
        "cuda_oom",
        0.6,
        "WSL2 could not give GPU memory",
    ),
    (
        r"dxg.*(?:sync_object|synch|dxgvmb_send|vmbus|vm bus|completion).*(?:failed|timed? ?out|-110\b|-19\b)",
        "cuda_unknown_error",
        0.8,
        "WSL2's GPU channel failed",
    ),
    (r"blocked for more than \d+ seconds", "hang", 0.5, "a process was stuck in the kernel"),
)
"""Pattern on the lower-cased line, class, weight, meaning. The first that matches wins."""
_COMPILED = tuple((LazyPattern(row[0]), KernelClue(row[1], row[2], row[3])) for row in _LINES)


def read_kernel_line(text: str) -> KernelClue | None:
    """What a kernel line says; None when it says nothing about why a run ended."""
    found = _XID.search(text)
    if found is not None:
        known = XIDS.get(int(found["number"]))
        if known is not None:
            return KernelClue(known[0], known[1], f"Xid {found['number']}: {known[2]}")
        return KernelClue("cuda_unknown_error", 0.6, f"Xid {found['number']}")
    low = text.lower()
    for pattern, clue in _COMPILED:
        if pattern.search(low):
            return clue
    return None
