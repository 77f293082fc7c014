"""Program that reads AMD GPUs through AMD's own binding (amdsmi), with the messages of ``nvml_child``.

Not tried on a real card: written after the binding of ROCm 7.0 and its documentation,
https://rocm.docs.amd.com/projects/amdsmi/en/latest/reference/amdsmi-py-api.html. What it does not give is unknown:
reasons for reduced clocks, and details. Memory in bytes, temperature in °C, power in W, clock in MHz.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from trainwatch.core.sense.gpu.nvml_child import Driver, Reader, main
from trainwatch.core.sense.gpu.nvml_codes import AMD

LEAST_MICROWATTS = 10_000
"""The binding gave power limits in W before ROCm 6 and gives them in µW now; no GPU draws 10 kW or less than 10 mW."""


def _number(value: Any) -> float | None:
    """None for what the library does not know ("N/A")."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and value != "N/A" else None


def _power(smi: Any, handle: Any) -> dict[str, float | None]:
    """Newer cards report the current power, older ones only an average; the value that a card does not report is 0."""
    found = smi.amdsmi_get_power_info(handle)
    known = [_number(found.get(name)) for name in ("current_socket_power", "average_socket_power", "socket_power")]
    return {"power": next((watts for watts in known if watts and watts < 0xFFFF), None)}


def _power_limit(smi: Any, handle: Any) -> dict[str, float | None]:
    cap = _number(smi.amdsmi_get_power_cap_info(handle)["power_cap"])
    return {"power_limit": cap / 1e6 if cap is not None and cap >= LEAST_MICROWATTS else cap or None}


def _memory(smi: Any, handle: Any) -> dict[str, float]:
    vram = smi.AmdSmiMemoryType.VRAM
    used, total = smi.amdsmi_get_gpu_memory_usage(handle, vram), smi.amdsmi_get_gpu_memory_total(handle, vram)
    return {"mem_used": float(used), "mem_total": float(total)}


def _utilisation(smi: Any, handle: Any) -> dict[str, float | None]:
    util = _number(smi.amdsmi_get_gpu_activity(handle)["gfx_activity"])
    return {"util": util if util is not None and 0 <= util <= 100 else None}


def _temperature(smi: Any, handle: Any) -> dict[str, float]:
    """Temperature at the edge of the chip; data-centre accelerators report only the hottest place (junction)."""
    kinds, now = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
    try:
        return {"temp": float(smi.amdsmi_get_temp_metric(handle, kinds.EDGE, now))}
    except smi.AmdSmiLibraryException:
        return {"temp": float(smi.amdsmi_get_temp_metric(handle, kinds.JUNCTION, now))}


def _clock(smi: Any, handle: Any) -> dict[str, float | None]:
    return {"clock_mhz": _number(smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX)["clk"])}


def _processes(smi: Any, handle: Any) -> dict[str, list[tuple[int, int | None]]]:
    """[pid, bytes or null] of each process."""
    found = [(p["pid"], _number(p["memory_usage"]["vram_mem"])) for p in smi.amdsmi_get_gpu_process_list(handle)]
    return {"procs": [(int(pid), None if used is None else int(used)) for pid, used in found]}


GETTERS: tuple[Callable[[Any, Any], dict[str, Any]], ...] = (
    lambda smi, handle: {"uuid": _text(smi.amdsmi_get_gpu_device_uuid(handle))},
    lambda smi, handle: {"name": _text(smi.amdsmi_get_gpu_asic_info(handle)["market_name"])},
    lambda smi, handle: {"pci": _text(smi.amdsmi_get_gpu_device_bdf(handle))},
    _memory,
    _utilisation,
    _temperature,
    _power,
    _power_limit,
    _clock,
    _processes,
)


class AmdReader(Reader):
    def __init__(self, index: int, smi: Any, handle: Any) -> None:
        super().__init__(index)
        self._smi, self._amd_handle = smi, handle

    def _read(self) -> tuple[dict[str, Any], int | None]:
        """An error of one value leaves it unknown. A GPU that gives none of the measured ones cannot be read."""
        reading: dict[str, Any] = {}
        codes = []
        for getter in GETTERS:
            try:
                reading.update(getter(self._smi, self._amd_handle))
            except self._smi.AmdSmiLibraryException as fault:
                codes.append(AMD + int(fault.get_error_code()))
            except Exception:  # noqa: S112  (a field that this version of the binding does not have: unknown)
                continue
        return reading, codes[0] if len(codes) == len(GETTERS) else None


def _open() -> Sequence[Reader]:
    """Raises ImportError, OSError or KeyError without the library, AmdSmiException if the driver refuses."""
    with contextlib.redirect_stdout(sys.stderr):  # the binding prints there if it finds no library
        smi = importlib.import_module("amdsmi")
    smi.amdsmi_init(smi.AmdSmiInitFlags.INIT_AMD_GPUS)
    return [AmdReader(index, smi, handle) for index, handle in enumerate(smi.amdsmi_get_processor_handles())]


def _fault(error: Exception) -> tuple[int, str]:
    code = getattr(error, "get_error_code", None)
    known = getattr(error, "get_error_info", None)
    return (AMD + int(code()) if callable(code) else AMD), str(known()) if callable(known) else repr(error)


DRIVER = Driver(_open, _fault, lambda code: f"AMD SMI {code - AMD}", frozenset())

if __name__ == "__main__":
    # No clean-up: a thread that hangs in the driver must not keep the process alive.
    os._exit(main(int(sys.argv[1]), float(sys.argv[2]), DRIVER))
