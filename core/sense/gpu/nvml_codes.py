"""NVML's codes and bits in words for people: what it is, and what to do."""

THROTTLE_BITS: tuple[tuple[int, str], ...] = (
    (0x002, "clock setting"),
    (0x004, "power cap"),
    (0x008, "hardware slowdown"),
    (0x010, "sync boost"),
    (0x020, "thermal (driver)"),
    (0x040, "thermal (hardware)"),
    (0x080, "power brake"),
    (0x100, "display clock"),
    (0x200, "board limit"),
    (0x400, "reliability"),
)
"""nvmlClocksEventReason* (nvml.h). 0x1, idle, is no throttling."""

DRIVER_TROUBLE = {
    4: "No permission to ask the NVIDIA driver: check the rights of /dev/nvidia* (in a container: the NVIDIA runtime)",
    9: "No NVIDIA GPU seen: driver not loaded (modprobe nvidia; under WSL2 update the Windows driver)",
    12: "No NVIDIA GPU seen: no driver is installed (libnvidia-ml.so.1 not found)",
    17: "The operating system blocks the NVIDIA driver",
    18: "NVIDIA driver and library versions differ, the driver was updated while loaded: reboot (or reload the nvidia "
    "modules) before the next launch; what already runs may go on",
    999: "The NVIDIA driver answers with an unknown error: look at dmesg for NVRM; in a container restart it (a "
    "systemctl daemon-reload on the host takes its GPUs away)",
}
"""NVML return codes of the whole driver."""

GPU_TROUBLE = {
    4: "no permission to read this GPU",
    15: "lost: it no longer answers on the bus; reboot to get it back",
    16: "needs a reset: end its processes, then nvidia-smi --gpu-reset, or reboot",
    999: "the driver answers with an unknown error",
}
"""NVML return codes of one GPU."""


def driver_trouble(code: int, text: str) -> str:
    """A sentence for a code of the whole driver."""
    return DRIVER_TROUBLE.get(code) or f"The NVIDIA driver cannot be asked: {text} (NVML {code})"


def gpu_trouble(code: int) -> str:
    """A sentence for a code of one GPU."""
    return GPU_TROUBLE.get(code) or DRIVER_TROUBLE.get(code) or f"cannot be read (NVML {code})"


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Why the clocks are held down; empty when they are not."""
    return tuple(word for bit, word in THROTTLE_BITS if bits & bit)


def silence(seconds: float) -> str:
    """A sentence for a driver that does not answer."""
    return f"GPU telemetry has not answered for {seconds:.0f} s"
