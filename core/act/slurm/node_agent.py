"""Writes what a job does on one node into a file of its run, a JSON object per line. Standard library only.

``python3 agent.py DIRECTORY INTERVAL_S`` is started on each node of a job, in a step of its own. The file is copied
into the attempt's directory, so that a node needs no trainwatch. It writes ``nodes/NODE.jsonl`` there: readers count
lines and compare no clocks. A value that cannot be read is left out. It starts nothing and stops nothing.

``agent.py --save DIRECTORY [SIGNAL] [--stop] [--last] [--json]`` asks the training on this node for a checkpoint: on
the page of ``heartbeat.py`` if it uses one, else by a signal (``USR1``), which only processes get that catch it.
``--stop``: and to end then. ``--last``: it is ended soon in any case. Without these the page of a job of several nodes
is left alone: only one node would save, and a save that all ranks must join would block the training.
"""
# Stands alone: no import of trainwatch, no newer Python than 3.7.
# ruff: noqa: PTH103, PTH108, PTH110, PTH118, PTH120, PTH123, PTH202, PTH208

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

LIMIT_BYTES = 8 << 20
"""The file begins anew at this size: a week at 10 s is about 30 MB."""
TURN_S = 0.2
"""How soon the last line is written when the training has ended."""
TICKS = os.sysconf("SC_CLK_TCK")
AGENT = b"TRAINWATCH_AGENT=1"
"""Of processes that watch the training and are no part of it."""
RANKS = (b"RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")
ERROR_FILE = b"TORCHELASTIC_ERROR_FILE="
MAX_RESTARTS = b"TORCHELASTIC_MAX_RESTARTS="


class Place(NamedTuple):
    """What the environment of a process of the job tells. ``rank`` None: none. ``folder``: of its log files, or ""."""

    rank: int | None
    folder: str
    most: int | None


class Stat(NamedTuple):
    """Of ``/proc/PID/stat``. ``ticks``: CPU time used."""

    state: str
    parent: str
    ticks: int
    start: int


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


def value_of(variables: list[bytes], name: bytes) -> bytes:
    """The value of a variable, empty if it is not set."""
    return next((v[len(name) :] for v in variables if v.startswith(name)), b"")


def number_in(text: bytes) -> int | None:
    """The number, None if it is none."""
    return int(text) if text.isdigit() else None


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Gpus:
    """NVML of this node, if there is one."""

    def __init__(self) -> None:
        self.library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            self.library = library if library.nvmlInit_v2() == 0 else None
        except (OSError, AttributeError):
            pass

    def read(self) -> list[dict[str, Any]] | None:
        """Return a list of GPUs, None if they cannot be read."""
        library = self.library
        if library is None:
            return None
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return None
        own = os.environ.get("CUDA_VISIBLE_DEVICES")
        found = [self._gpu(library, index) for index in range(count.value)]
        if own is not None:
            indices = set(own.split(","))
            for gpu in found:
                gpu["own"] = str(gpu["index"]) in indices
        return found

    def _gpu(self, library: ctypes.CDLL, index: int) -> dict[str, Any]:
        gpu: dict[str, Any] = {"index": index}
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
            return gpu
        used = _Utilisation()
        if library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(used)) == 0 and used.gpu <= 100:
            gpu["util"] = float(used.gpu)
        memory = _Memory()
        if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0:
            gpu["mem_used"], gpu["mem_total"] = float(memory.used), float(memory.total)
        value = ctypes.c_uint()
        if library.nvmlDeviceGetTemperature(handle, 0, ctypes.byref(value)) == 0:
            gpu["temp"] = float(value.value)
        if library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(value)) == 0:
            gpu["power"] = value.value / 1000.0
        if library.nvmlDeviceGetEnforcedPowerLimit(handle, ctypes.byref(value)) == 0:
            gpu["power_limit"] = value.value / 1000.0
        return gpu


class Processes:
    """The processes of the job's other steps on this node."""

    def __init__(self, directory: str = "") -> None:
        self.job = os.environ.get("SLURM_JOB_ID", "").encode()
        self.step = os.environ.get("SLURM_STEP_ID", "").encode()
        self.known: dict[tuple[str, int], Place | None] = {}
        """None: it is no part of the training."""
        self.agents: dict[tuple[str, int], tuple[int | None, float | None]] = {}
        """How often each launcher starts its workers again, and how long it waits for other nodes; None = not known."""
        self.module: Any = loaded(directory, "rank_files") if directory else None
        self.files: Any = None if self.module is None else self.module.RankFiles(own_clock=False)
        self.totals: dict[tuple[str, int], tuple[int, int]] = {}
        self.before: tuple[float, dict[tuple[str, int], int]] | None = None

    def read(self) -> dict[str, Any]:
        """Return what they do; CPU since the last call, bytes since the beginning."""
        now = time.monotonic()
        living: dict[tuple[str, int], int] = {}
        states: dict[str, int] = {}
        parents: dict[str, str] = {}
        ranks: list[tuple[int, int, str, Place]] = []
        for pid in os.listdir("/proc"):
            stat = self._stat(pid) if pid.isdigit() else None
            place = None if stat is None else self._place(pid, stat.start)
            if stat is None or place is None:
                continue
            key = (pid, stat.start)
            living[key] = stat.ticks
            parents[pid] = stat.parent
            states[stat.state] = states.get(stat.state, 0) + 1
            if place.rank is not None:
                ranks.append((place.rank, int(pid), stat.state, place))
            self.totals[key] = self._bytes(pid) or self.totals.get(key, (0, 0))
        found: dict[str, Any] = {"procs": len(living), "states": states}
        found["read_bytes"] = float(sum(each[0] for each in self.totals.values()))
        found["write_bytes"] = float(sum(each[1] for each in self.totals.values()))
        if self.before is not None and now > self.before[0]:
            used = sum(max(0, ticks - self.before[1].get(key, 0)) for key, ticks in living.items())
            found["cpu"] = used / TICKS / (now - self.before[0])
        self.before = (now, living)
        several = len({each[0] for each in ranks}) > 1 or int(os.environ.get("SLURM_NNODES", "1")) > 1
        if several and (ranks or self.agents):
            first: dict[int, tuple[int, str, Place]] = {}
            for rank, number, state, place in sorted(ranks):
                first.setdefault(rank, (number, state, place))  # a loader worker has its parent's rank, a higher pid
            found["ranks"] = [self._rank(rank, *each, now) for rank, each in first.items()]
            found["agents"] = self._agents(first, living, parents)
        self.known = {key: value for key, value in self.known.items() if key in living or value is None}
        return found

    def ended(self, over: bool = False) -> list[dict[str, Any]]:
        """Return what ranks left about their end since the last call. ``over``: the training has ended."""
        if self.files is None:
            return []
        left = self.files.ended(time.monotonic(), over=over)
        return [{"rank": each.rank, "pid": each.pid, "text": each.text, "wall": each.wall} for each in left]

    def _rank(self, rank: int, pid: int, state: str, place: Place, now: float) -> dict[str, Any]:
        told: dict[str, Any] = {"rank": rank, "pid": pid, "state": state}
        if place.folder and self.files is not None:
            seen = self.files.look(place.folder, rank, pid, now)
            told.update((key, value) for key, value in seen._asdict().items() if value not in {"", None})
        return told

    def _agents(
        self, ranks: dict[int, tuple[int, str, Place]], living: dict[tuple[str, int], int], parents: dict[str, str]
    ) -> list[dict[str, Any]]:
        """The launchers of ranks, which may outlive them. ``ranks``: pid, state and place by number."""
        starts = dict(living.keys())
        above = {str(pid): parents[str(pid)] for pid, _, place in ranks.values() if place.folder}
        for pid, parent in above.items():
            if parent in starts:
                place = self.known[pid, starts[pid]]
                key = (parent, starts[parent])
                self.agents[key] = (None if place is None else place.most, self.agents.get(key, (None, None))[1])
        self.agents = {key: called for key, called in self.agents.items() if key in living}
        workers = [parents[str(pid)] for pid, state, _ in ranks.values() if state not in "ZX"]
        return [
            {"pid": int(pid), "workers": workers.count(pid), "max_restarts": most, "join_s": join_s}
            for (pid, _), (most, join_s) in sorted(self.agents.items())
        ]

    @staticmethod
    def _stat(pid: str) -> Stat | None:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        if len(fields) < 22:
            return None
        return Stat(fields[0].decode(), fields[1].decode(), int(fields[11]) + int(fields[12]), int(fields[19]))

    def _place(self, pid: str, start: int) -> Place | None:
        key = (pid, start)
        if key not in self.known:
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            except OSError:
                return None
            job = b"SLURM_JOB_ID=" + self.job in variables and AGENT not in variables
            step = value_of(variables, b"SLURM_STEP_ID=")
            if not (job and step and step != self.step):
                if variables != [b""]:  # between fork and exec
                    self.known[key] = None
                return None
            told = (number_in(value_of(variables, name)) for name in RANKS)
            rank = next((number for number in told if number is not None), None)
            folder = os.path.dirname(value_of(variables, ERROR_FILE).decode(errors="surrogateescape"))
            self.known[key] = Place(rank, folder, number_in(value_of(variables, MAX_RESTARTS)))
            called = None if self.module is None or rank is not None else self.module.torchrun_in(int(pid))
            if called is not None:
                self.agents[key] = (called.most, called.join_s)
        return self.known[key]

    def catching(self, number: int) -> list[int]:
        """Return the job's processes that catch the signal and descend from none that does (loader workers)."""
        parents: dict[int, int] = {}
        caught: set[int] = set()
        self.read()
        for key in self.known:
            if self.known[key] is None:
                continue
            try:
                with open(f"/proc/{key[0]}/status", encoding="utf-8", errors="replace") as file:
                    fields = dict(line.split(":", 1) for line in file if ":" in line)
                parents[int(key[0])] = int(fields["PPid"])
                if int(fields["SigCgt"], 16) >> (number - 1) & 1:
                    caught.add(int(key[0]))
            except (OSError, KeyError, ValueError):
                continue
        return sorted(pid for pid in caught if not caught & set(_above(pid, parents)))

    @staticmethod
    def _bytes(pid: str) -> tuple[int, int] | None:
        try:
            with open(f"/proc/{pid}/io", encoding="ascii") as file:
                values = dict(line.split(": ") for line in file.read().splitlines())
            return int(values["rchar"]), int(values["wchar"])
        except (OSError, KeyError, ValueError):
            return None


def _above(pid: int, parents: dict[int, int]) -> list[int]:
    found: list[int] = []
    while pid in parents and parents[pid] not in found:
        pid = parents[pid]
        found.append(pid)
    return found


class Beat:
    """The page of ``heartbeat.py`` on this node, if the training uses it. Its copy lies beside this file."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.join(directory, "job")
        self.page: Any = None
        self.module: Any = loaded(directory, "heartbeat")

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
    told = []
    for pid in Processes().catching(int(getattr(signal, "SIG" + name))):
        try:
            os.kill(pid, getattr(signal, "SIG" + name))
            told.append(str(pid))
        except OSError:
            pass  # it has ended
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
    gpus, processes, beat, number = Gpus(), Processes(directory), Beat(directory), 0
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
