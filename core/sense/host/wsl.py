"""Whether this is Linux on Windows (WSL2), where the GPU is lent by the host over a channel that breaks easily."""

from pathlib import Path

KERNEL_NAMES = ("proc/sys/kernel/osrelease", "proc/version")
GPU_CHANNEL = "dev/dxg"


def is_wsl(root: Path = Path("/")) -> bool:
    """By the kernel's own name; with a self-built kernel, by the GPU channel. ``root``: tests have another one."""
    for name in KERNEL_NAMES:
        try:
            if "microsoft" in (root / name).read_text(errors="replace").lower():
                return True
        except OSError:
            continue
    return (root / GPU_CHANNEL).exists()
