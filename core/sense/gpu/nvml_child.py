"""Program that reads the GPUs through NVML, so that a call of the driver that never returns blocks only this process.

``python -P -m trainwatch.core.sense.gpu.nvml_child PARENT_PID INTERVAL_S`` writes one JSON object per line:

- ``{"kind": "opening"}`` while the driver has not answered the first call yet,
- ``{"kind": "gpus", "gpus": [...]}`` every interval, each by the names of ``GpuReading`` on the wire; one that does not
  answer has a growing ``age_s``; with the details of each for DETAILS_S after a byte on standard input,
- ``{"kind": "error", "code": NVML code, "text": …}`` as last line.

Without arguments it writes one line, a ``GpuSurvey`` of ``app/gpu_survey.py``, and ends.

One thread reads the GPUs, and for each that hangs another one the others. The program imports nothing else of
trainwatch and ends with its parent. A value that the driver refuses is null, never 0.
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
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pynvml

REPORT_WAIT_S = 0.5
"""Wait for slow GPUs before a line is written with their last values."""
HELP_SHARE = 0.2
"""Share of that wait after which those that are not being read yet get one more thread."""
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


Getter = Callable[[Any], Any]


def _call(name: str) -> Getter:
    """A call by its name: an older binding may lack it."""
    return lambda handle: getattr(pynvml, name)(handle)  # noqa: PLW0108  (by its name at the call)


def _either(newer: Getter, older: str) -> Getter:
    """The older call if the driver refuses the newer one."""

    def read(handle: Any) -> Any:
        try:
            return newer(handle)
        except pynvml.NVMLError as fault:
            if fault.value in GPU_GONE:
                raise
            return _call(older)(handle)

    return read


def _text(value: str | bytes) -> str:
    """Older bindings return bytes."""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def _share(value: int) -> float | None:
    return float(value) if 0 <= value <= 100 else None


def _clock(handle: Any, kind: int) -> float:
    return float(pynvml.nvmlDeviceGetClockInfo(handle, kind))


def _pcie(handle: Any, counter: int) -> float:
    """The driver reports KB/s, which are kibibytes."""
    return float(pynvml.nvmlDeviceGetPcieThroughput(handle, counter)) * 1024.0


def _errors(handle: Any, kind: int) -> int:
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC))


def _memory_temperature(handle: Any) -> float | None:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP])
    return float(value.value.uiVal) if value.nvmlReturn == 0 and value.value.uiVal else None


_memory = _either(lambda h: pynvml.nvmlDeviceGetMemoryInfo(h, version=pynvml.nvmlMemory_v2), "nvmlDeviceGetMemoryInfo")
"""Version 2 reports reserved memory separately; WSL2 and old drivers have only version 1."""
_power_limit = _either(_call("nvmlDeviceGetEnforcedPowerLimit"), "nvmlDeviceGetPowerManagementLimit")
_throttle = _either(_call("nvmlDeviceGetCurrentClocksEventReasons"), "nvmlDeviceGetCurrentClocksThrottleReasons")
_processes = _either(_call("nvmlDeviceGetComputeRunningProcesses_v3"), "nvmlDeviceGetComputeRunningProcesses_v2")

IDENTITY: dict[str, Getter] = {
    "uuid": _call("nvmlDeviceGetUUID"),
    "name": _call("nvmlDeviceGetName"),
    "pci": lambda h: _text(pynvml.nvmlDeviceGetPciInfo(h).busId),
}
"""Asked until the driver has told all of it."""
GETTERS: dict[str, Getter] = {
    "mem_used": lambda h: float(_memory(h).used),
    "mem_total": lambda h: float(_memory(h).total),
    "util": lambda h: _share(pynvml.nvmlDeviceGetUtilizationRates(h).gpu),
    "temp": lambda h: float(pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU)),
    "power": lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1000,
    "power_limit": lambda h: _power_limit(h) / 1000,
    "clock_mhz": lambda h: _clock(h, pynvml.NVML_CLOCK_SM),
    "throttle_bits": lambda h: int(_throttle(h)),
    "procs": lambda h: [(int(p.pid), p.usedGpuMemory) for p in _processes(h)],
}
CHARTED: dict[str, Getter] = {
    "clock_mem": lambda h: _clock(h, pynvml.NVML_CLOCK_MEM),
    "fan": lambda h: float(pynvml.nvmlDeviceGetFanSpeed(h)),
}
"""For charts alone. Many cards have no fan: that the driver refuses it is no sign that the GPU answers."""
PCIE: dict[str, Getter] = {
    "pcie_in": lambda h: _pcie(h, pynvml.NVML_PCIE_UTIL_RX_BYTES),
    "pcie_out": lambda h: _pcie(h, pynvml.NVML_PCIE_UTIL_TX_BYTES),
}
CHANGING: dict[str, Getter] = {
    "clock_sm_mhz": lambda h: _clock(h, pynvml.NVML_CLOCK_SM),
    "mem_util_pct": lambda h: float(pynvml.nvmlDeviceGetUtilizationRates(h).memory),
    "mem_temp_c": _memory_temperature,
    "pcie_generation": _call("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie_width": _call("nvmlDeviceGetCurrPcieLinkWidth"),
    "ecc_corrected": lambda h: _errors(h, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
    "ecc_uncorrected": lambda h: _errors(h, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
}
"""By field of GpuDetail: read each time that somebody looks. A getter that the driver refuses leaves its value out."""
LASTING: dict[str, Getter] = {
    "clock_sm_max_mhz": lambda h: float(pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_SM)),
    "clock_mem_max_mhz": lambda h: float(pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_MEM)),
    "slowdown_c": lambda h: float(
        pynvml.nvmlDeviceGetTemperatureThreshold(h, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    ),
    "shutdown_c": lambda h: float(
        pynvml.nvmlDeviceGetTemperatureThreshold(h, pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)
    ),
    "pcie_generation_max": _call("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie_width_max": _call("nvmlDeviceGetMaxPcieLinkWidth"),
    "ecc": lambda h: bool(pynvml.nvmlDeviceGetEccMode(h)[0]),
    "rows_remapped": lambda h: int(sum(pynvml.nvmlDeviceGetRemappedRows(h)[:2])),
    "rows_pending": lambda h: bool(pynvml.nvmlDeviceGetRemappedRows(h)[2]),
}
"""Read when somebody begins to look: they change by a person's hand or a reset."""
VERSIONS: dict[str, Getter] = {
    "driver": lambda _: _text(pynvml.nvmlSystemGetDriverVersion()),
    "cuda": lambda _: "{}.{}".format(*divmod(int(pynvml.nvmlSystemGetCudaDriverVersion()) // 10, 100)),
}


def _values(handle: Any, getters: dict[str, Getter]) -> tuple[dict[str, Any], list[int]]:
    """What can be read, and the driver's codes for the rest. Raises NVMLError if the GPU is gone."""
    found: dict[str, Any] = {}
    codes: list[int] = []
    for name, getter in getters.items():
        try:
            value = getter(handle)
        except pynvml.NVMLError as fault:
            if fault.value in GPU_GONE:
                raise
            codes.append(int(fault.value))
        except Exception:  # noqa: S112  (a field that this binding or driver does not know: unknown)
            continue
        else:
            found |= {} if value is None else {name: value}
    return found, codes


class Reader:
    """Reads one GPU whenever it is asked to. ``detailed``: with its details. ``done``: it is not reading."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.code: int | None = None
        self.detailed = False
        self.done = threading.Event()
        self.done.set()
        self._reading: dict[str, Any] = {}
        self._fresh = self._read_once = False
        self._answered_s = time.monotonic()
        self._handle: Any = None
        self._identity: dict[str, Any] = {}
        self._lasting: dict[str, Any] | None = None
        self._shares_us = 0
        self._pcie_due_s = self._answered_s + index % PCIE_S  # not all GPUs at once

    def request(self, asked: "SimpleQueue[Reader]", *, detailed: bool) -> None:
        """Let it be read, unless it is still at it."""
        self._fresh = False
        if self.done.is_set():
            self.detailed = detailed
            self.done.clear()
            asked.put(self)

    def look(self) -> None:
        """After an error that is none of the driver's, the last reading stays and becomes older."""
        with contextlib.suppress(Exception):
            self._reading, self.code = self._read()
            self._answered_s = time.monotonic()
            self._read_once = self._fresh = True
        self.done.set()

    def report(self) -> dict[str, Any]:
        age_s = 0.0 if self._fresh else time.monotonic() - self._answered_s
        state = {"index": self.index, "code": self.code, "age_s": round(age_s, 3), "read": self._read_once}
        return state | self._reading

    def _read(self) -> tuple[dict[str, Any], int | None]:
        try:
            if self._handle is None:
                self._handle, self._identity = pynvml.nvmlDeviceGetHandleByIndex(self.index), {}
            found, codes = _values(self._handle, GETTERS)
            if len(self._identity) < len(IDENTITY) or len(codes) == len(GETTERS):
                self._identity, more = _values(self._handle, IDENTITY)
                if len(codes + more) == len(GETTERS) + len(IDENTITY) and NOT_SUPPORTED not in codes + more:
                    return {}, codes[0]
            return self._identity | found | self._read_more(self._handle), None
        except pynvml.NVMLError as fault:
            self._handle = None
            return {}, int(fault.value)

    def _read_more(self, handle: Any) -> dict[str, Any]:
        """What is charted only, and details. Raises NVMLError if the GPU is gone."""
        due = self.detailed or time.monotonic() >= self._pcie_due_s
        self._pcie_due_s = time.monotonic() + PCIE_S if due else self._pcie_due_s
        found, _ = _values(handle, CHARTED | PCIE if due else CHARTED)
        if not self.detailed:
            self._lasting = None
            return found
        self._lasting = self._lasting or _values(handle, LASTING | VERSIONS)[0]
        return found | {"detail": self._lasting | _values(handle, CHANGING)[0], "users": self._users(handle)}

    def _users(self, handle: Any) -> list[dict[str, Any]] | None:
        """Every process on it, by field of GpuProcess, with its newest shares; None: the driver lists no kind of it."""
        lists, _ = _values(
            handle,
            {
                "C": _call("nvmlDeviceGetComputeRunningProcesses"),
                "G": _call("nvmlDeviceGetGraphicsRunningProcesses"),
                "shares": lambda h: pynvml.nvmlDeviceGetProcessUtilization(h, self._shares_us),
            },
        )
        shares = sorted(lists.pop("shares", []), key=lambda sample: int(sample.timeStamp))
        found: dict[int, dict[str, Any]] = {}
        for kind, processes in lists.items():
            for process in processes:
                known = found.setdefault(int(process.pid), {"gpu": self.index, "pid": int(process.pid), "kind": ""})
                known |= {"kind": known["kind"] + kind, "mem_bytes": process.usedGpuMemory}
        for sample in shares:
            self._shares_us = int(sample.timeStamp)
            if int(sample.pid) in found:
                shares_of = {"sm_pct": _share(sample.smUtil), "mem_util_pct": _share(sample.memUtil)}
                found[int(sample.pid)] |= shares_of
        return list(found.values()) if lists else None


def write(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def end_with(parent: int) -> None:
    """End when the parent dies, by the kernel's signal (PDEATHSIG); ``listen`` sees the end of standard input."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(0)


def listen(seconds: float) -> bool:
    """Wait. Whether somebody asked for details meanwhile; the program ends at the end of standard input."""
    until_s, asked = time.monotonic() + seconds, False
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
        if not os.read(0, 64):
            os._exit(0)
        asked = True
    return asked


def open_driver(interval_s: float) -> list[Reader] | tuple[int, str]:
    """The GPUs, or the code and text of the driver's refusal. The first calls may hang, so a thread makes them."""
    opened: list[list[Reader] | tuple[int, str]] = []

    def call() -> None:
        try:
            pynvml.nvmlInit()
            opened.append([Reader(index) for index in range(int(pynvml.nvmlDeviceGetCount()))])
        except Exception as fault:
            opened.append((int(fault.value), str(fault)) if isinstance(fault, pynvml.NVMLError) else (-1, repr(fault)))

    thread = threading.Thread(target=call, name="gpu-opening", daemon=True)
    thread.start()
    thread.join(interval_s)
    while thread.is_alive():
        listen(0.0)
        write({"kind": "opening"})
        thread.join(interval_s)
    return opened[0]


def work(asked: SimpleQueue[Reader]) -> None:
    while True:
        asked.get().look()


def read(readers: list[Reader], asked: SimpleQueue[Reader], wait_s: float, *, detailed: bool) -> None:
    """Let each GPU be read, and wait for them. While threads are stuck there is one more, at most one for each GPU."""
    until_s = time.monotonic() + wait_s
    for reader in readers:
        reader.request(asked, detailed=detailed)
    for reader in readers:
        while (left_s := until_s - time.monotonic()) > 0 and not reader.done.wait(min(left_s, wait_s * HELP_SHARE)):
            if not asked.empty() and threading.active_count() <= len(readers):
                threading.Thread(target=work, args=(asked,), daemon=True).start()


def main(parent: int, interval_s: float) -> int:
    end_with(parent)
    readers = open_driver(interval_s)
    if isinstance(readers, tuple):
        write({"kind": "error", "code": readers[0], "text": readers[1]})
        return 1
    driver_wide, detailed_until, asked = 0, 0.0, SimpleQueue[Reader]()
    threading.Thread(target=work, args=(asked,), daemon=True).start()
    while True:
        read(readers, asked, min(REPORT_WAIT_S, interval_s), detailed=time.monotonic() < detailed_until)
        write({"kind": "gpus", "gpus": [reader.report() for reader in readers]})
        codes = {reader.code for reader in readers}
        driver_wide = driver_wide + 1 if readers and codes <= DRIVER_WIDE else 0
        if driver_wide >= DRIVER_WIDE_POLLS:
            code = next(int(code) for code in codes if code is not None)
            write({"kind": "error", "code": code, "text": str(pynvml.NVMLError(code))})
            return 1
        now = time.monotonic()  # on whole intervals, as the other sensors: model/text.py next_round
        if listen((now // interval_s + 1.0) * interval_s - now):
            detailed_until = time.monotonic() + DETAILS_S


def survey() -> int:
    """All GPUs once: what is used of each, and by whom; what the driver does not tell is left out."""
    try:
        pynvml.nvmlInit()
        gpus = [{"index": index} | _used_of(index) for index in range(int(pynvml.nvmlDeviceGetCount()))]
        write({"gpus": gpus} | _values(None, VERSIONS)[0])
    except pynvml.NVMLError as fault:
        write({"trouble": str(fault)})
    return 0


def _used_of(index: int) -> dict[str, Any]:
    """Used memory is all that a new process cannot have: also what the driver reserves."""
    asked = {name: (IDENTITY | GETTERS)[name] for name in ("name", "mem_total", "procs")}
    asked["mem_used"] = lambda h: float(pynvml.nvmlDeviceGetMemoryInfo(h).used)
    with contextlib.suppress(pynvml.NVMLError):
        return _values(pynvml.nvmlDeviceGetHandleByIndex(index), asked)[0]
    return {}


if __name__ == "__main__":
    # No clean-up: a thread that hangs in the driver must not keep the process alive.
    os._exit(main(int(sys.argv[1]), float(sys.argv[2])) if sys.argv[1:] else survey())
