"""Kernel log lines about the GPU and memory: NVIDIA Xid numbers, the OOM killer, WSL2's GPU channel."""

from ...model.text.patterns import LazyPattern
from .catalogue import CompiledCatalogue, Proof

XID = LazyPattern(r"\b(?i:xid)(?: error| code| event| number)?(?: ?\([^)]*\))?\s?[:=#]?\s?(?P<number>\d{1,3})\b")
"""The driver's own ``NVRM: Xid (PCI:0000:41:00): 79`` and what tools print: ``XID 79``, ``Xid error: 79``."""
GATES = ("Xid", "XID", "NVRM", "dxg", "blocked for more than", "oom-kill", "amdgpu", "Out of memory: Kill")
"""Texts of kernel lines, of which a trainer's log may hold some."""
UNKNOWN_XID = Proof("cuda_unknown_error", 0.6)
"""A number that the catalogue does not list."""


def read_kernel_line(text: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What a kernel line proves, with its meaning; None if it does not show why a run ended."""
    found = XID.search(text)
    if found is not None:
        known = catalogue.xids.get(int(found["number"]), UNKNOWN_XID)
        name = f"Xid {found['number']}"
        return Proof(known.failure, known.weight, f"{name}: {known.meaning}" if known.meaning else name)
    low = text.lower()
    return next((proof for pattern, proof in catalogue.kernel_lines if pattern.search(low)), None)
