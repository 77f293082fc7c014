"""A stand-in for AMD's binding (amdsmi 7.0): its names, units and errors. FAKE_AMDSMI names a JSON file with its state.

``{"gpus": 2, "power": "N/A", "lost": [1], "hangs": [0], "refuses": true, "no_library": true, "procs": [[pid, bytes]]}``
"""

import enum
import json
import os
import time
from pathlib import Path
from typing import Any

STATE = Path(os.environ.get("FAKE_AMDSMI", "/nonexistent"))


def _state() -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(STATE.read_text())
    except OSError:
        return {}
    return found


if _state().get("no_library"):
    print("Unable to find libamd_smi.so library try installing amd-smi-lib from your package manager")  # noqa: T201
    raise KeyError("libamd_smi.so")


class AmdSmiException(Exception):  # noqa: N818
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.err_code = code

    def get_error_code(self) -> int:
        return self.err_code

    def get_error_info(self, detailed: bool = True) -> str:
        return {34: "AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded"}.get(self.err_code, "AMDSMI_STATUS_NO_DATA")


AmdSmiInitFlags = enum.IntEnum("AmdSmiInitFlags", {"INIT_AMD_GPUS": 2})
AmdSmiMemoryType = enum.IntEnum("AmdSmiMemoryType", {"VRAM": 0})
AmdSmiTemperatureType = enum.IntEnum("AmdSmiTemperatureType", {"EDGE": 0, "JUNCTION": 1})
AmdSmiTemperatureMetric = enum.IntEnum("AmdSmiTemperatureMetric", {"CURRENT": 0})
AmdSmiClkType = enum.IntEnum("AmdSmiClkType", {"GFX": 0})


def amdsmi_init(flag: Any = AmdSmiInitFlags.INIT_AMD_GPUS) -> None:
    assert isinstance(flag, AmdSmiInitFlags)
    if _state().get("refuses"):
        raise AmdSmiLibraryException(34)


def amdsmi_get_processor_handles() -> list[int]:
    return list(range(_state().get("gpus", 0)))


def _look(handle: int) -> Any:
    found = _state()
    while handle in _state().get("hangs", []):
        time.sleep(0.02)
    if handle in found.get("lost", []):
        raise AmdSmiLibraryException(40)
    return found


def amdsmi_get_gpu_device_uuid(handle: int) -> Any:
    _look(handle)
    return f"{handle:02x}ff744c-0000-1000-8000-000000000000"


def amdsmi_get_gpu_asic_info(handle: int) -> Any:
    _look(handle)
    return {"market_name": "AMD Instinct MI300X", "vendor_name": "Advanced Micro Devices Inc"}


def amdsmi_get_gpu_device_bdf(handle: int) -> Any:
    _look(handle)
    return f"0000:{handle:02x}:00.0"


def amdsmi_get_gpu_memory_usage(handle: int, kind: Any) -> Any:
    assert kind is AmdSmiMemoryType.VRAM
    _look(handle)
    return 5_000_000_000


def amdsmi_get_gpu_memory_total(handle: int, kind: Any) -> Any:
    _look(handle)
    return 206_158_430_208


def amdsmi_get_gpu_activity(handle: int) -> Any:
    return {"gfx_activity": _look(handle).get("util", 12), "umc_activity": 3, "mm_activity": "N/A"}


def amdsmi_get_temp_metric(handle: int, kind: Any, metric: Any) -> Any:
    assert metric is AmdSmiTemperatureMetric.CURRENT
    _look(handle)
    if kind is AmdSmiTemperatureType.EDGE:
        raise AmdSmiLibraryException(2)
    return 46


def amdsmi_get_power_info(handle: int) -> Any:
    watts = _look(handle).get("power", 138)
    return {"socket_power": watts, "current_socket_power": watts, "average_socket_power": "N/A", "power_limit": 750}


def amdsmi_get_power_cap_info(handle: int) -> Any:
    _look(handle)
    return {"power_cap": 750_000_000, "max_power_cap": 750_000_000}


def amdsmi_get_clock_info(handle: int, kind: Any) -> Any:
    assert kind is AmdSmiClkType.GFX
    _look(handle)
    return {"clk": 2100, "min_clk": 500, "max_clk": 2100}


def amdsmi_get_gpu_process_list(handle: int) -> Any:
    listed = _look(handle).get("procs", [])
    return [{"name": "python", "pid": pid, "mem": used, "memory_usage": {"vram_mem": used}} for pid, used in listed]
