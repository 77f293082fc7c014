"""Program that reads the GPUs through NVML, so that a call of the driver that never returns blocks only this process.

``python -P -m trainwatch.core.sense.gpu.nvml_child PARENT_PID INTERVAL_S`` writes one JSON object per line:

- ``{"kind": "opening"}`` while the driver has not answered the first call yet,
- ``{"kind": "gpus", "gpus": [...]}`` every interval; a GPU that does not answer has a growing ``age_s``; with the
  details of each (``nvml_details``) for DETAILS_S after a byte on standard input,
- ``{"kind": "error", "code": NVML code, "text": …}`` as last line.

One thread reads all GPUs; one that hangs keeps it, and another thread reads the others (``reading_threads``). The
program imports little else of trainwatch and ends with its parent. A value that the driver refuses is null, never 0.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from trainwatch.core.sense.gpu.reading_threads import ReadingThreads

REPORT_WAIT_S = 0.5
"""Wait for slow GPUs before a line is written with their last values."""
DRIVER_WIDE = frozenset({1, 9, 18, 999})
"""Uninitialized, driver not loaded, version mismatch, unknown: if every GPU returns one of them, end, so that a new
process loads the library again."""
GPU_GONE = frozenset({1, 9, 15, 16, 18})
"""After these codes the other getters of a GPU are skipped: the above, GPU lost, reset required."""
DRIVER_WIDE_POLLS = 3
NOT_SUPPORTED = 3
DETAILS_S = 5.0
"""How long details are read after somebody asked for them."""
PCIE_S = 10.0
"""Period of the two PCIe rates, for which the driver waits 20 ms each, while nobody asks for details."""


def _memory(handle: Any) -> dict[str, float]:
    """Version 2 reports reserved memory separately; WSL2 and old drivers have only version 1."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as fault:
        if fault.value in GPU_GONE:
            raise
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {"mem_used": float(memory.used), "mem_total": float(memory.total)}


def _utilisation(handle: Any) -> dict[str, float | None]:
    util = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
    return {"util": float(util) if 0 <= util <= 100 else None}


def _power_limit(handle: Any) -> dict[str, float]:
    try:
        limit = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)
    except pynvml.NVMLError as fault:
        if fault.value in GPU_GONE:
            raise
        limit = pynvml.nvmlDeviceGetPowerManagementLimit(handle)
    return {"power_limit": limit / 1000}


def _text(value: str | bytes) -> str:
    """Older bindings return bytes."""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def _throttle(handle: Any) -> dict[str, int]:
    try:
        return {"throttle": int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))}
    except pynvml.NVMLError as fault:
        if fault.value in GPU_GONE:
            raise
        return {"throttle": int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))}


def _processes(handle: Any) -> dict[str, list[tuple[int, int | None]]]:
    """[pid, bytes or null] of each process."""
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    except pynvml.NVMLError as fault:
        if fault.value in GPU_GONE:
            raise
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)
    return {"procs": [(int(p.pid), p.usedGpuMemory) for p in processes]}


GETTERS: tuple[Callable[[Any], dict[str, Any]], ...] = (
    lambda handle: {"uuid": pynvml.nvmlDeviceGetUUID(handle)},
    lambda handle: {"name": pynvml.nvmlDeviceGetName(handle)},
    lambda handle: {"pci": _text(pynvml.nvmlDeviceGetPciInfo(handle).busId)},
    _memory,
    _utilisation,
    lambda handle: {"temp": float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))},
    lambda handle: {"power": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000},
    _power_limit,
    lambda handle: {"clock_mhz": float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))},
    _throttle,
    _processes,
)


def _pcie(handle: Any) -> dict[str, float]:
    """The driver reports KB/s, which are kibibytes."""
    received = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES) * 1024.0
    return {
        "pcie_received": received,
        "pcie_sent": pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES) * 1024.0,
    }


CHARTED: tuple[Callable[[Any], dict[str, Any]], ...] = (
    lambda handle: {"clock_mem_mhz": float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM))},
    lambda handle: {"fan_pct": float(pynvml.nvmlDeviceGetFanSpeed(handle))},
)
"""For charts alone. Many cards have no fan: that the driver refuses it is no sign that the GPU answers."""


class Reader:
    """Reads one GPU. ``detailed``: with its details, from the next reading on."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.reading: dict[str, Any] = {}
        self.code: int | None = None
        self.detailed = False
        self.fresh = False
        self._handle: Any = None
        self._answered_s = time.monotonic()
        self._read_once = False
        self._details: Any = None
        self._pcie_due_s = self._answered_s + index % PCIE_S  # not all GPUs at once

    def read(self) -> None:
        """Read it. After an error that is none of the driver's, the last reading stays and becomes older."""
        with contextlib.suppress(Exception):
            self.reading, self.code = self._read()
            self._answered_s = time.monotonic()
            self._read_once = True
            self.fresh = True

    def report(self) -> dict[str, Any]:
        """The last reading and its age."""
        age_s = 0.0 if self.fresh else time.monotonic() - self._answered_s
        return {
            "index": self.index,
            "code": self.code,
            "age_s": round(age_s, 3),
            "read": self._read_once,
            **self.reading,
        }

    def _read(self) -> tuple[dict[str, Any], int | None]:
        reading: dict[str, Any] = {}
        codes: list[int] = []
        try:
            if self._handle is None:
                self._handle = pynvml.nvmlDeviceGetHandleByIndex(self.index)
        except pynvml.NVMLError as fault:
            return reading, int(fault.value)
        for getter in GETTERS:
            try:
                reading.update(getter(self._handle))
            except pynvml.NVMLError as fault:
                codes.append(int(fault.value))
                if fault.value in GPU_GONE:
                    self._handle = None
                    return reading, int(fault.value)
            except Exception:  # noqa: S112  (a name that is no text, a field the binding does not know: unknown)
                continue
        silent = len(codes) == len(GETTERS) and NOT_SUPPORTED not in codes
        if not silent:
            try:
                reading.update(self._read_more())
            except pynvml.NVMLError as fault:
                self._handle = None
                return reading, int(fault.value)
        if not self.detailed:
            self._details = None
        return reading, codes[0] if silent else None

    def _read_more(self) -> dict[str, Any]:
        """What is charted only, and details. Raises NVMLError if the GPU is gone."""
        found: dict[str, Any] = {}
        for getter in CHARTED:
            found |= self._known(getter)
        if self.detailed:
            found |= self._read_details()
            detail = found["detail"]
            found |= {name: detail[name] for name in ("pcie_received", "pcie_sent") if name in detail}
        elif time.monotonic() >= self._pcie_due_s:
            self._pcie_due_s = time.monotonic() + PCIE_S
            found |= self._known(_pcie)
        return found

    def _known(self, getter: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What it says; nothing if the driver refuses. Raises NVMLError if the GPU is gone."""
        try:
            return getter(self._handle)
        except pynvml.NVMLError as fault:
            if fault.value in GPU_GONE:
                raise
        except Exception:  # noqa: S110  (a function that the binding does not know: unknown)
            pass
        return {}

    def _read_details(self) -> dict[str, Any]:
        from trainwatch.core.sense.gpu.nvml_details import Details

        first = self._details is None
        if first:
            self._details = Details()
        found: dict[str, Any] = self._details.read(self._handle, first=first)
        return found


class Opening:
    """The first calls of the driver, which may hang, in a thread of their own. ``fault``: code and text of an error."""

    def __init__(self) -> None:
        self.readers: Sequence[Reader] = ()
        self.fault: tuple[int, str] | None = None
        self.done = threading.Event()
        threading.Thread(target=self._open, name="gpu-opening", daemon=True).start()

    def _open(self) -> None:
        try:
            pynvml.nvmlInit()
            self.readers = [Reader(index) for index in range(int(pynvml.nvmlDeviceGetCount()))]
        except Exception as fault:
            self.fault = (int(fault.value), str(fault)) if isinstance(fault, pynvml.NVMLError) else (-1, repr(fault))
        self.done.set()


def write(message: dict[str, Any]) -> None:
    """Write one line to the parent."""
    os.write(1, json.dumps(message).encode() + b"\n")


class Wish:
    """Until when details are wanted, on the monotonic clock."""

    def __init__(self) -> None:
        self.until_s = 0.0

    def renew(self) -> None:
        self.until_s = time.monotonic() + DETAILS_S

    @property
    def stands(self) -> bool:
        return time.monotonic() < self.until_s


def end_with(parent: int) -> None:
    """End when the parent dies, by the kernel's signal (PDEATHSIG); ``listen`` sees the end of standard input."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(0)


def listen(wish: Wish, seconds: float) -> None:
    """Wait. What arrives on standard input meanwhile asks for details; at its end the program ends."""
    until_s = time.monotonic() + seconds
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
        if not os.read(0, 64):
            os._exit(0)
        wish.renew()


def main(parent: int, interval_s: float) -> int:
    """Read and write until the parent ends or the driver fails."""
    wish = Wish()
    end_with(parent)
    opening = Opening()
    while not opening.done.wait(interval_s):
        listen(wish, 0.0)
        write({"kind": "opening"})
    if opening.fault is not None:
        write({"kind": "error", "code": opening.fault[0], "text": opening.fault[1]})
        return 1
    readers = opening.readers
    threads = ReadingThreads(readers)
    driver_wide = 0
    while True:
        due = time.monotonic() + interval_s
        detailed = wish.stands
        for reader in readers:
            reader.detailed = detailed
        threads.read(min(REPORT_WAIT_S, interval_s))
        write({"kind": "gpus", "gpus": [reader.report() for reader in readers]})
        codes = {reader.code for reader in readers}
        driver_wide = driver_wide + 1 if readers and codes <= DRIVER_WIDE else 0
        if driver_wide >= DRIVER_WIDE_POLLS:
            code = next(int(code) for code in codes if code is not None)
            write({"kind": "error", "code": code, "text": str(pynvml.NVMLError(code))})
            return 1
        listen(wish, due - time.monotonic())


if __name__ == "__main__":
    # No clean-up: a thread that hangs in the driver must not keep the process alive.
    os._exit(main(int(sys.argv[1]), float(sys.argv[2])))
