"""Detects WSL2 (Linux on Windows), where the GPU is reached over a channel that breaks easily."""

from pathlib import Path

KERNEL_NAMES = ("proc/sys/kernel/osrelease", "proc/version")
GPU_CHANNEL = "dev/dxg"


def is_wsl(root: Path = Path("/")) -> bool:
    """Detect WSL2 by the kernel's name, or for a self-built kernel by the GPU channel. ``root``: for tests."""
    for name in KERNEL_NAMES:
        try:
            if "microsoft" in (root / name).read_text(errors="replace").lower():
                return True
        except OSError:
            continue
    return (root / GPU_CHANNEL).exists()
