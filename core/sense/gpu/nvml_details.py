"""What the GPU page shows beyond a reading: one dict for ``GpuDetail`` and one list for ``GpuProcess``.

Loaded by the NVML child when somebody looks at that page for the first time. Each getter that the driver refuses leaves
its values out. The two PCIe rates take the driver 20 ms each.
"""

from collections.abc import Callable
from typing import Any

import pynvml

GONE = frozenset({1, 9, 15, 16, 18})
"""NVML codes after which a GPU answers nothing more."""
KIB = 1024.0


def _clock(handle: Any, kind: int) -> float:
    return float(pynvml.nvmlDeviceGetClockInfo(handle, kind))


def _number(name: str) -> Callable[[Any], int]:
    """A getter by its name: an older binding may lack it."""
    return lambda handle: int(getattr(pynvml, name)(handle))


def _pcie(handle: Any, counter: int) -> float:
    """The driver reports KB/s, which are kibibytes."""
    return float(pynvml.nvmlDeviceGetPcieThroughput(handle, counter)) * KIB


def _errors(handle: Any, kind: int) -> int:
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC))


def _compute_mode(handle: Any) -> str | None:
    mode = int(pynvml.nvmlDeviceGetComputeMode(handle))
    return {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}.get(mode)


def _memory_temperature(handle: Any) -> float | None:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP])
    return float(value.value.uiVal) if value.nvmlReturn == 0 and value.value.uiVal else None


CHANGING: dict[str, Callable[[Any], Any]] = {
    "clock_sm_mhz": lambda h: _clock(h, pynvml.NVML_CLOCK_SM),
    "clock_mem_mhz": lambda h: _clock(h, pynvml.NVML_CLOCK_MEM),
    "mem_util_pct": lambda h: float(pynvml.nvmlDeviceGetUtilizationRates(h).memory),
    "encoder_pct": lambda h: float(pynvml.nvmlDeviceGetEncoderUtilization(h)[0]),
    "decoder_pct": lambda h: float(pynvml.nvmlDeviceGetDecoderUtilization(h)[0]),
    "fan_pct": lambda h: float(pynvml.nvmlDeviceGetFanSpeed(h)),
    "pstate": lambda h: int(pynvml.nvmlDeviceGetPerformanceState(h)),
    "mem_temp_c": _memory_temperature,
    "pcie_generation": _number("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie_width": _number("nvmlDeviceGetCurrPcieLinkWidth"),
    "pcie_received": lambda h: _pcie(h, pynvml.NVML_PCIE_UTIL_RX_BYTES),
    "pcie_sent": lambda h: _pcie(h, pynvml.NVML_PCIE_UTIL_TX_BYTES),
    "ecc_corrected": lambda h: _errors(h, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
    "ecc_uncorrected": lambda h: _errors(h, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
}
"""By field of GpuDetail: read each time."""
LASTING: dict[str, Callable[[Any], Any]] = {
    "clock_sm_max_mhz": lambda h: float(pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_SM)),
    "clock_mem_max_mhz": lambda h: float(pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_MEM)),
    "slowdown_c": lambda h: float(
        pynvml.nvmlDeviceGetTemperatureThreshold(h, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    ),
    "shutdown_c": lambda h: float(
        pynvml.nvmlDeviceGetTemperatureThreshold(h, pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)
    ),
    "pcie_generation_max": _number("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie_width_max": _number("nvmlDeviceGetMaxPcieLinkWidth"),
    "ecc": lambda h: bool(pynvml.nvmlDeviceGetEccMode(h)[0]),
    "rows_remapped": lambda h: int(sum(pynvml.nvmlDeviceGetRemappedRows(h)[:2])),
    "rows_pending": lambda h: bool(pynvml.nvmlDeviceGetRemappedRows(h)[2]),
    "mig": lambda h: bool(pynvml.nvmlDeviceGetMigMode(h)[0]),
    "compute_mode": _compute_mode,
    "persistence": lambda h: bool(pynvml.nvmlDeviceGetPersistenceMode(h)),
}
"""Read when somebody begins to look: they change by a person's hand or a reset."""


class Details:
    """The details of one GPU, for the thread that reads it."""

    def __init__(self) -> None:
        self._lasting: dict[str, Any] = {}
        self._versions: dict[str, str] = {}
        self._seen_us = 0

    def read(self, handle: Any, *, first: bool) -> dict[str, Any]:
        """``detail``, ``users`` and versions. ``first``: nobody looked before. Raises NVMLError if the GPU is gone."""
        if first:
            self._lasting, self._versions = _values(handle, LASTING), _system()
        return {
            "detail": {**self._lasting, **_values(handle, CHANGING)},
            "users": self._users(handle),
            **self._versions,
        }

    def _users(self, handle: Any) -> list[dict[str, Any]] | None:
        """Every process on it with its kind; None if the driver lists none of either kind."""
        found: dict[int, dict[str, Any]] = {}
        listed = False
        for kind, read in (
            ("C", pynvml.nvmlDeviceGetComputeRunningProcesses),
            ("G", pynvml.nvmlDeviceGetGraphicsRunningProcesses),
        ):
            try:
                processes = read(handle)
            except pynvml.NVMLError as fault:
                if fault.value in GONE:
                    raise
                continue
            listed = True
            for process in processes:
                known = found.setdefault(int(process.pid), {"pid": int(process.pid), "kind": ""})
                known["kind"] += kind
                known["mem"] = process.usedGpuMemory
        if not listed:
            return None
        for pid, (sm, memory) in self._shares(handle).items():
            if pid in found:
                found[pid] |= {"sm": sm, "mem_util": memory}
        return list(found.values())

    def _shares(self, handle: Any) -> dict[int, tuple[float | None, float | None]]:
        """The newest shares of the GPU's time and of its memory's time by pid."""
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(handle, self._seen_us)
        except pynvml.NVMLError as fault:
            if fault.value in GONE:
                raise
            return {}
        newest: dict[int, Any] = {}
        for sample in samples:
            if sample.pid not in newest or sample.timeStamp > newest[sample.pid].timeStamp:
                newest[sample.pid] = sample
        self._seen_us = max((int(s.timeStamp) for s in samples), default=self._seen_us)
        return {int(pid): (_share(s.smUtil), _share(s.memUtil)) for pid, s in newest.items()}


def _share(value: int) -> float | None:
    return float(value) if 0 <= value <= 100 else None


def _system() -> dict[str, str]:
    """Versions of the driver and of its CUDA."""
    found: dict[str, str] = {}
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        found["driver"] = driver.decode() if isinstance(driver, bytes) else str(driver)
        version = int(pynvml.nvmlSystemGetCudaDriverVersion())
        found["cuda"] = f"{version // 1000}.{version % 1000 // 10}"
    except pynvml.NVMLError:
        pass
    return found


def _values(handle: Any, getters: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, getter in getters.items():
        try:
            value = getter(handle)
        except pynvml.NVMLError as fault:
            if fault.value in GONE:
                raise
            continue
        except Exception:  # noqa: S112  (a field that this binding or driver does not know: unknown)
            continue
        if value is not None:
            found[name] = value
    return found
