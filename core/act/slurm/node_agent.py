"""Writes what a job does on one node into a file of its run, a JSON object per line. Standard library only.

``python3 agent.py DIRECTORY INTERVAL_S`` is started on each node of a job, in a step of its own. The file is copied
into the attempt's directory, beside copies of ``processes.py``, ``rank_files.py``, ``trainbeat.py`` and ``pynvml.py``,
so that a node needs no trainwatch. It writes ``nodes/NODE.jsonl`` there: readers count lines and compare no clocks. A
value that cannot be read is left out. It starts nothing and stops nothing.

``agent.py --save DIRECTORY [SIGNAL] [--stop] [--last] [--json]`` asks the training on this node for a checkpoint: on
the page of ``trainbeat.py`` if it uses one, else by a signal (``USR1``), which only processes get that catch it.
``--stop``: and to end then. ``--last``: it is ended soon in any case. Without these the page of a job of several nodes
is left alone: only one node would save, and a save that all ranks must join would block the training.
"""
# Stands alone: no import of trainwatch, no newer Python than 3.8.
# ruff: noqa: PTH103, PTH108, PTH110, PTH118, PTH123, PTH202

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import sys
import time
from typing import Any

LIMIT_BYTES = 8 << 20
"""The file begins anew at this size: a week at 10 s is about 30 MB."""
TURN_S = 0.2
"""How soon the last line is written when the training has ended."""
AGENT = b"TRAINWATCH_AGENT=1"
"""Of processes that watch the training and are no part of it."""
STEP = b"SLURM_STEP_ID="


def loaded(directory: str, name: str) -> Any:
    """The module of a file that lies beside this one; None if it cannot be loaded."""
    try:
        found = importlib.util.spec_from_file_location(name, os.path.join(directory, name + ".py"))
        if found is None or found.loader is None:
            return None
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        found.loader.exec_module(module)
        return module
    except Exception:
        return None


class Gpus:
    """NVML of this node, if there is one, by the copy of ``pynvml.py`` that lies beside this file."""

    def __init__(self, directory: str) -> None:
        self.nvml: Any = loaded(directory, "pynvml")
        try:
            self.nvml.nvmlInit()
        except Exception:  # no copy, no driver
            self.nvml = None

    def read(self) -> list[dict[str, Any]] | None:
        """Return a list of GPUs, None if they cannot be read."""
        if self.nvml is None:
            return None
        try:
            found = [self._gpu(index) for index in range(self.nvml.nvmlDeviceGetCount())]
        except self.nvml.NVMLError:
            return None
        own = os.environ.get("CUDA_VISIBLE_DEVICES")
        if own is not None:
            for gpu in found:
                gpu["own"] = str(gpu["index"]) in own.split(",")
        return found

    def _gpu(self, index: int) -> dict[str, Any]:
        nvml = self.nvml
        readings: dict[str, Any] = {
            "util": lambda handle: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            "mem_used": lambda handle: float(nvml.nvmlDeviceGetMemoryInfo(handle).used),
            "mem_total": lambda handle: float(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            "temp": lambda handle: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            "power": lambda handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0,
            "power_limit": lambda handle: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000.0,
        }
        gpu: dict[str, Any] = {"index": index}
        for name, reading in readings.items():
            with contextlib.suppress(nvml.NVMLError):
                gpu[name] = reading(nvml.nvmlDeviceGetHandleByIndex(index))
        if gpu.get("util", 0.0) > 100.0:
            del gpu["util"]
        return gpu


class Processes:
    """The processes of the job's other steps on this node. ``processes.py`` and ``rank_files.py`` lie in the folder."""

    def __init__(self, directory: str) -> None:
        self.job = b"SLURM_JOB_ID=" + os.environ.get("SLURM_JOB_ID", "").encode()
        self.step = STEP + os.environ.get("SLURM_STEP_ID", "").encode()
        self.proc: Any = loaded(directory, "processes")
        ranks = loaded(directory, "rank_files")
        several = int(os.environ.get("SLURM_NNODES", "1")) > 1
        self.ranks: Any = None
        if ranks is not None:
            names = ranks.VARIABLES[:-1]
            self.ranks = ranks.Ranks(self.proc.variables_of, names, own_clock=False, several=several)
        self.known: dict[tuple[int, int], bool] = {}
        """Whether it is part of the training."""
        self.totals: dict[tuple[int, int], Any] = {}
        self.before: tuple[float, dict[tuple[int, int], int]] | None = None

    def tree(self) -> dict[int, Any]:
        """Return the processes of the training by pid."""
        found, known = self.proc.all_processes(), {}
        for process in found.values():
            own = self.known[process.key] if process.key in self.known else self._is_own(process.pid)
            if own is not None:
                known[process.key] = own
        self.known = known
        return {pid: process for pid, process in found.items() if known.get(process.key)}

    def _is_own(self, pid: int) -> bool | None:
        variables = self.proc.variables_of(pid)
        if variables in (None, [b""]):  # another user's, or between fork and exec
            return None
        step = next((each for each in variables if each.startswith(STEP)), self.step)
        return self.job in variables and AGENT not in variables and step != self.step

    def read(self) -> dict[str, Any]:
        """Return what they do; CPU since the last call, bytes since the beginning."""
        now, tree = time.monotonic(), self.tree()
        states: dict[str, int] = {}
        for process in tree.values():
            states[process.state] = states.get(process.state, 0) + 1
            self.totals[process.key] = self.proc.read_io(process.pid) or self.totals.get(process.key)
        totals = [each for each in self.totals.values() if each is not None]
        found: dict[str, Any] = {"procs": len(tree), "states": states}
        found["read_bytes"] = float(sum(each.read_bytes for each in totals))
        found["write_bytes"] = float(sum(each.given_bytes for each in totals))
        living = {process.key: process.own_ticks for process in tree.values()}
        if self.before is not None and now > self.before[0]:
            used = sum(max(0, ticks - self.before[1].get(key, 0)) for key, ticks in living.items())
            found["cpu"] = used / self.proc.TICKS_PER_S / (now - self.before[0])
        self.before = (now, living)
        ranks, agents = ([], []) if self.ranks is None else self.ranks.look(tree, now)
        if ranks or agents:
            told = (each._asdict().items() for each in ranks)
            found["ranks"] = [{key: value for key, value in each if value not in {"", None}} for each in told]
            found["agents"] = [each._asdict() for each in agents]
        return found

    def ended(self, over: bool = False) -> list[dict[str, Any]]:
        """Return what ranks left about their end since the last call. ``over``: the training has ended."""
        left = [] if self.ranks is None else self.ranks.ended(time.monotonic(), over=over)
        return [each._asdict() for each in left]


class Beat:
    """The page of ``trainbeat.py`` on this node, if the training uses it. Its copy lies beside this file."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.join(directory, "job")
        self.page: Any = None
        self.module: Any = loaded(directory, "trainbeat")

    def _open(self) -> Any:
        if self.page is None and self.module is not None:
            try:
                self.page = self.module.Page(self.module.page_path(self.directory))
            except (OSError, ValueError):
                return None
        return self.page

    def read(self) -> dict[str, Any] | None:
        """Return what the training told last, None if it tells nothing here."""
        page = self._open()
        told = None if page is None else page.read()
        if told is None:
            return None
        return {key: told[key] for key in ("step", "total", "loss", "phase") if told[key] is not None}

    def ask(self, stop: bool) -> bool:
        """Ask for a checkpoint. Returns whether the training uses the page."""
        page = self._open()
        if page is None or page.read() is None:
            return False
        page.ask(stop)
        return True

    def remove(self) -> None:
        """The training has ended: its page would stay in the memory of this node."""
        if self.page is not None and os.path.exists(self.page.path):
            os.unlink(self.page.path)


def ask_to_save(directory: str, name: str, stop: bool = False, last: bool = False) -> tuple[bool, str]:
    """Ask the training on this node for a checkpoint. Returns whether it was asked, and a sentence."""
    alone = int(os.environ.get("SLURM_NNODES", "1")) == 1
    if (alone or stop or last) and Beat(directory).ask(stop):
        return True, "it was asked for a checkpoint" + (" and to end then" if stop else "")
    if not name:
        why = "" if alone else ": its other nodes would not save at the same step"
        return False, f"it cannot be asked for a checkpoint here{why}"
    training, number = Processes(directory), int(getattr(signal, "SIG" + name))
    catching = training.proc.catching(training.tree().values(), number)
    told = [str(each.pid) for each in training.proc.signal_each(catching, number)]
    if told:
        return True, "SIG{} was sent to {}".format(name, ", ".join(told))
    return False, f"SIG{name} was not sent: no process of the training catches it, and it would end one that does not"


def main(arguments: list[str]) -> None:
    """Write a line each interval until the job ends."""
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    if arguments[0] == "--save":
        name = next((word for word in arguments[2:] if not word.startswith("--")), "")
        asked, said = ask_to_save(arguments[1], name, "--stop" in arguments, "--last" in arguments)
        as_json = json.dumps({"node": node, "asked": asked, "said": said})
        sys.stdout.write((as_json if "--json" in arguments else f"trainwatch: node {node}: {said}") + "\n")
        return
    directory, interval_s = arguments[0], float(arguments[1])
    folder = os.path.join(directory, "nodes")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, node + ".jsonl")
    gpus, processes, beat, number = Gpus(directory), Processes(directory), Beat(directory), 0
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda which, _frame: over.append(which))
    end = time.monotonic()
    while True:
        while not over and time.monotonic() < end:
            time.sleep(min(TURN_S, max(0.0, end - time.monotonic())))
        end = time.monotonic() + interval_s
        number += 1
        line: dict[str, Any] = {"n": number, "wall": time.time(), "node": node, "process": processes.read()}
        read = gpus.read()
        if read is not None:
            line["gpus"] = read
        told = beat.read()
        if told is not None:
            line["beat"] = told
        left = processes.ended(over=bool(over))
        if left:
            line["ended"] = left
        try:
            anew = os.path.exists(path) and os.path.getsize(path) > LIMIT_BYTES
            with open(path, "w" if anew else "a", encoding="ascii") as file:
                file.write(json.dumps(line) + "\n")
        except OSError:
            pass  # a full disk: the next line may fit
        if over:
            beat.remove()
            return


if __name__ == "__main__":
    main(sys.argv[1:])
