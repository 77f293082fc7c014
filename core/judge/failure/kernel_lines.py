"""Kernel log lines about the GPU and memory: NVIDIA Xid numbers, the OOM killer, WSL2's GPU channel."""

from ..text.patterns import LazyPattern
from .catalogue import CompiledCatalogue, Proof

XID = LazyPattern(r"NVRM: Xid \(?[^)]*\)?: (?P<number>\d{1,4})")
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
