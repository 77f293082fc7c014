"""Writes stacks (py-spy), ``/proc`` and the end of the log of a process tree into a folder of text files.

Also a program, ``python -P -m trainwatch.core.act.evidence.stack_probe REQUEST``: the runner starts it as its child,
because Yama allows only descendants of the runner to trace the trainer. A step of a job of Slurm runs it on each node
with the request itself; it needs this package at the same path there.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from ... import processes, spool
from ...model.redact import EDGE
from ...private_folder import make_private
from . import loop_looks
from .capture import WAITING_PLACES, log_tail, main_frames, proc_text, write_file
from .loop_looks import dump

NATIVE_PROCESSES = 4
"""Most native dumps, because each stops its process for some milliseconds."""
SLICE_S = 0.2
"""While waiting for the second dump: period of checking whether a process is left."""


def capture(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request of ``capture.capture_stacks``. Errors of processes and files become notes.

    Returns ``files`` (paths), ``frames`` ({pid: innermost frames of its main thread, newest round}), ``moved`` ({pid:
    whether its main thread's stack differed between the rounds}), ``native`` ({pid: innermost native and Python
    frames}), ``notes`` (sentences about what could not be read).
    """
    probe = _Probe(request)
    probe.collect()
    frames = {pid: [main_frames(text) for text in texts] for pid, texts in probe.stacks.items() if texts}
    return {
        "files": probe.files,
        "frames": {str(pid): dumps[-1] for pid, dumps in frames.items()},
        "moved": {str(pid): dumps[0] != dumps[-1] for pid, dumps in frames.items() if len(dumps) > 1},
        "native": {str(pid): found for pid, found in probe.native.items()},
        "notes": list(dict.fromkeys(probe.notes)),
    }


class _Probe:
    """One request and its results so far."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.folder = Path(request["folder"])
        alive = (process for key in request["keys"] if (process := processes.living(key)) is not None)
        self.processes = list(alive)[: loop_looks.PROCESSES]
        self.stacks: dict[int, list[str]] = {process.pid: [] for process in self.processes}
        self.native: dict[int, tuple[str, ...]] = {}
        self.notes: list[str] = []
        self.files: list[str] = []
        self.begun = time.monotonic()
        self.deadline = self.begun + request["budget_s"]

    def collect(self) -> None:
        """Collect everything, the fast and reliable parts first, because later ones may exceed the budget."""
        request = self.request
        make_private(self.folder)
        if not self.processes:
            self.notes.append("the process tree has ended; only its files can be examined")
        if request["log"] is not None:
            self._write("log-tail.txt", log_tail(request["log"], request["log_lines"], self.notes))
        for process in self.processes:
            self._write(f"proc-{process.pid}.txt", proc_text(process, self.processes, self.notes))
        if not self.processes:
            return
        if request["py_spy"] is None:
            self.notes.append("py-spy was not found; install it beside trainwatch to see Python stacks")
            return
        # The second dump has its share of the budget, however slow the first one is.
        first_s = max(0.0, request["budget_s"] - request["pause_s"]) / 2
        self._round(1, self.begun + first_s if request["rounds"] > 1 else self.deadline)
        for turn in range(2, request["rounds"] + 1):
            self._pause()
            self._round(turn, self.deadline)
        self._below_python()

    def _round(self, turn: int, until: float) -> None:
        for process in self.processes:
            text = self._dump(process, until)
            if text is not None:
                self.stacks[process.pid].append(text)
                self._write(f"stacks-{process.pid}-{turn}.txt", text)

    def _pause(self) -> None:
        """Wait between two dumps, as long as a process is alive that could be dumped the first time."""
        end = min(time.monotonic() + self.request["pause_s"], self.deadline)
        while True:
            self.processes = [p for p in self.processes if self.stacks[p.pid] and processes.is_alive(p.key)]
            left_s = end - time.monotonic()
            if not self.processes or left_s <= 0:
                return
            time.sleep(min(SLICE_S, left_s))

    def _below_python(self) -> None:
        """Native frames of processes that stayed in a call that is not a wait of Python itself."""
        still = [process for process in self.processes if _stays_in_native_code(self.stacks[process.pid])]
        for process in still[:NATIVE_PROCESSES]:
            text = self._dump(process, self.deadline, native=True)
            if text is not None:
                self.native[process.pid] = main_frames(text)
                self._write(f"native-{process.pid}.txt", text)

    def _dump(self, process: processes.Process, until: float, *, native: bool = False) -> str | None:
        left_s = until - time.monotonic()
        if left_s <= 0:
            self.notes.append(f"out of time before process {process.pid} ({process.name})")
            return None
        limit_s = min(self.request["timeout_s"], left_s)
        return dump(self.request["py_spy"], process, limit_s, self.notes, native=native)

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        if write_file(path, text):
            self.files.append(str(path))


def _stays_in_native_code(dumps: list[str]) -> bool:
    frames = [main_frames(text) for text in dumps]
    still = bool(frames) and frames[0] == frames[-1] and bool(frames[-1])
    return still and not WAITING_PLACES.search(frames[-1][0])


def capture_on_node(request: dict[str, Any]) -> dict[str, Any]:
    """The same for the processes of a job of Slurm on this node; this step and the agents are left out."""
    job, own_step = (os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    keys = []
    for pid, process in processes.all_processes().items():
        variables = processes.variables_of(pid) or []
        step = next((v.partition(b"=")[2].decode() for v in variables if v.startswith(b"SLURM_STEP_ID=")), "")
        watches = f"{processes.AGENT_VARIABLE}=1".encode() in variables
        if f"SLURM_JOB_ID={job}".encode() in variables and step not in {"", own_step} and not watches:
            keys.append(process.key)
    folder = Path(request["folder"], os.environ.get("SLURMD_NODENAME") or socket.gethostname())
    make_private(folder)
    return capture(request | {"folder": str(folder), "keys": sorted(keys)})


def main(arguments: list[str]) -> int:
    """Carry out the request file and write the answer beside it; of a request itself (on a node) print it."""
    if arguments[0].startswith("{"):
        sys.stdout.write(json.dumps(capture_on_node(json.loads(arguments[0]))) + "\n")
        return 0
    directory = os.path.dirname(os.path.abspath(arguments[0]))  # noqa: PTH100, PTH120
    request = spool.read(directory, spool.STACKS)
    if request is None:
        return 2
    EDGE.know(os.environ)
    EDGE.know((spool.read(directory, spool.ORDER) or {}).get("env", {}))
    found = loop_looks.look(request) if request.get("loops") else capture(request)
    spool.write(directory, spool.STACKS_DONE, {"request": request["request"]} | found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
