"""Messages for NVML's return codes and throttle bits: what it is, and what to do."""

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
"""nvmlClocksEventReason* (nvml.h). 0x1 means idle and is not throttling."""

DRIVER_MESSAGES = {
    4: "No permission to use the NVIDIA driver: check the rights of /dev/nvidia* (in a container: the NVIDIA runtime)",
    9: "No NVIDIA GPU seen: driver not loaded (modprobe nvidia; under WSL2 update the Windows driver)",
    12: "No NVIDIA GPU seen: no driver is installed (libnvidia-ml.so.1 not found)",
    17: "The operating system blocks the NVIDIA driver",
    18: "NVIDIA driver and library versions differ, the driver was updated while loaded: reboot (or reload the nvidia "
    "modules) before the next launch; running processes may continue",
    999: "The NVIDIA driver answers with an unknown error: look at dmesg for NVRM; in a container restart it (a "
    "systemctl daemon-reload on the host takes its GPUs away)",
}
"""NVML return codes of the whole driver."""

GPU_MESSAGES = {
    4: "no permission to read this GPU",
    15: "lost: it no longer answers on the bus; reboot to get it back",
    16: "needs a reset: end its processes, then nvidia-smi --gpu-reset, or reboot",
    999: "the driver answers with an unknown error",
}
"""NVML return codes of one GPU."""


def driver_message(code: int, text: str) -> str:
    """A sentence for a code of the whole driver."""
    return DRIVER_MESSAGES.get(code) or f"The NVIDIA driver cannot be used: {text} (NVML {code})"


def gpu_message(code: int) -> str:
    """A sentence for a code of one GPU."""
    return GPU_MESSAGES.get(code) or DRIVER_MESSAGES.get(code) or f"cannot be read (NVML {code})"


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Reasons why the clocks are reduced; empty if they are not."""
    return tuple(word for bit, word in THROTTLE_BITS if bits & bit)


def no_answer(seconds: float) -> str:
    """A sentence for a driver that does not answer."""
    return f"GPU telemetry has not answered for {seconds:.0f} s"
