"""Program that reads the GPUs through NVML, so that a call of the driver that never returns blocks only this process.

``python -P -m trainwatch.core.sense.gpu.nvml_child PARENT_PID INTERVAL_S`` writes one JSON object per line:

- ``{"kind": "opening"}`` while the driver has not answered the first call yet,
- ``{"kind": "gpus", "gpus": [...]}`` every interval; a GPU that does not answer has a growing ``age_s``; with the
  details of each for DETAILS_S after a byte on standard input,
- ``{"kind": "error", "code": NVML code, "text": …}`` as last line.

A GPU that hangs keeps a thread for itself and delays no other. The program imports nothing else of trainwatch and ends
with its parent. A value that the driver refuses is null, never 0.
"""

import contextlib
import ctypes
import json
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

REPORT_WAIT_S = 0.5
"""Wait for slow GPUs before a line is written with their last values."""
LEAST_WAIT_S = 0.01
"""With less time left, no further thread is started."""
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


def _clock(handle: Any, kind: int) -> float:
    return float(pynvml.nvmlDeviceGetClockInfo(handle, kind))


def _number(name: str) -> Callable[[Any], int]:
    """A getter by its name: an older binding may lack it."""
    return lambda handle: int(getattr(pynvml, name)(handle))


def _pcie(handle: Any, counter: int) -> float:
    """The driver reports KB/s, which are kibibytes."""
    return float(pynvml.nvmlDeviceGetPcieThroughput(handle, counter)) * 1024.0


def _errors(handle: Any, kind: int) -> int:
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC))


def _compute_mode(handle: Any) -> str | None:
    mode = int(pynvml.nvmlDeviceGetComputeMode(handle))
    return {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}.get(mode)


def _memory_temperature(handle: Any) -> float | None:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP])
    return float(value.value.uiVal) if value.nvmlReturn == 0 and value.value.uiVal else None


PCIE: dict[str, Callable[[Any], Any]] = {
    "pcie_received": lambda h: _pcie(h, pynvml.NVML_PCIE_UTIL_RX_BYTES),
    "pcie_sent": lambda h: _pcie(h, pynvml.NVML_PCIE_UTIL_TX_BYTES),
}
CHARTED: dict[str, Callable[[Any], Any]] = {
    "clock_mem_mhz": lambda h: _clock(h, pynvml.NVML_CLOCK_MEM),
    "fan_pct": lambda h: float(pynvml.nvmlDeviceGetFanSpeed(h)),
}
"""For charts alone. Many cards have no fan: that the driver refuses it is no sign that the GPU answers."""
CHANGING: dict[str, Callable[[Any], Any]] = {
    "clock_sm_mhz": lambda h: _clock(h, pynvml.NVML_CLOCK_SM),
    **CHARTED,
    "mem_util_pct": lambda h: float(pynvml.nvmlDeviceGetUtilizationRates(h).memory),
    "encoder_pct": lambda h: float(pynvml.nvmlDeviceGetEncoderUtilization(h)[0]),
    "decoder_pct": lambda h: float(pynvml.nvmlDeviceGetDecoderUtilization(h)[0]),
    "pstate": lambda h: int(pynvml.nvmlDeviceGetPerformanceState(h)),
    "mem_temp_c": _memory_temperature,
    "pcie_generation": _number("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie_width": _number("nvmlDeviceGetCurrPcieLinkWidth"),
    **PCIE,
    "ecc_corrected": lambda h: _errors(h, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
    "ecc_uncorrected": lambda h: _errors(h, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
}
"""By field of GpuDetail: read each time that somebody looks. A getter that the driver refuses leaves its value out."""
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
                if fault.value in GPU_GONE:
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
            if fault.value in GPU_GONE:
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
            if fault.value in GPU_GONE:
                raise
            continue
        except Exception:  # noqa: S112  (a field that this binding or driver does not know: unknown)
            continue
        if value is not None:
            found[name] = value
    return found


class Reader:
    """Reads one GPU. ``detailed``: with its details, from the next reading on. ``done``: nobody is reading it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.reading: dict[str, Any] = {}
        self.code: int | None = None
        self.detailed = False
        self._fresh = False
        self._handle: Any = None
        self._answered_s = time.monotonic()
        self._read_once = False
        self._details: Details | None = None
        self._pcie_due_s = self._answered_s + index % PCIE_S  # not all GPUs at once
        self.done = threading.Event()
        self.done.set()

    def request(self, due: "queue.SimpleQueue[Reader]") -> None:
        """Let it be read, unless somebody is still at it."""
        self._fresh = False
        if self.done.is_set():
            self.done.clear()
            due.put(self)

    def read(self) -> None:
        """After an error that is none of the driver's, the last reading stays and becomes older. May never return."""
        with contextlib.suppress(Exception):
            self.reading, self.code = self._read()
            self._answered_s = time.monotonic()
            self._read_once = self._fresh = True
        self.done.set()

    def report(self) -> dict[str, Any]:
        """The last reading and its age."""
        age_s = 0.0 if self._fresh else time.monotonic() - self._answered_s
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
        if self.detailed:
            first = self._details is None
            self._details = self._details or Details()
            found = self._details.read(self._handle, first=first)
            return found | {name: value for name, value in found["detail"].items() if name in (*CHARTED, *PCIE)}
        due = time.monotonic() >= self._pcie_due_s
        self._pcie_due_s = time.monotonic() + PCIE_S if due else self._pcie_due_s
        return _values(self._handle, CHARTED | PCIE if due else CHARTED)


class Threads:
    """One thread reads all GPUs while they answer. One that does not answer keeps it, and another reads the others."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self._due: queue.SimpleQueue[Reader] = queue.SimpleQueue()
        self._count = 0
        self._more()

    def read(self, limit_s: float) -> None:
        """Read each GPU that nobody is still reading. Waits at most so long, half of what is left for one of them."""
        until_s = time.monotonic() + limit_s
        for reader in self._readers:
            reader.request(self._due)
        for reader in self._readers:
            while not self._due.empty() and (left_s := until_s - time.monotonic()) > LEAST_WAIT_S:
                if reader.done.wait(left_s / 2):
                    break
                if not self._due.empty() and self._count < len(self._readers):
                    self._more()
            reader.done.wait(max(0.0, until_s - time.monotonic()))

    def _more(self) -> None:
        self._count += 1
        threading.Thread(target=self._run, name="gpu-reading", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._due.get().read()


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
    threads = Threads(readers)
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
