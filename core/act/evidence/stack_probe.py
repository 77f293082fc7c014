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
from .loop_looks import PROCESSES, dump

NATIVE_PROCESSES = 4
"""Most native dumps, because each stops its process for some milliseconds."""
SLICE_S = 0.2
"""While waiting for the second dump: period of checking whether a process is left."""


def capture(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request of ``capture.capture_stacks``. Errors of processes and files become notes.

    Returns ``files`` (paths), ``frames`` ({pid: innermost frames of its main thread, newest round}), ``moved`` ({pid:
    whether its main thread's stack differed between the rounds}, without those of which it did not while the log grew),
    ``native`` ({pid: innermost native and Python frames}), ``notes`` (sentences about what could not be read).
    """
    folder, notes, files = Path(request["folder"]), list[str](), list[str]()
    alive = [process for key in request["keys"] if (process := processes.living(key)) is not None][:PROCESSES]
    stacks: dict[int, list[str]] = {process.pid: [] for process in alive}
    native: dict[int, tuple[str, ...]] = {}
    begun, spy = time.monotonic(), request["py_spy"]
    deadline = begun + request["budget_s"]

    def write(name: str, text: str) -> None:
        if write_file(folder / name, text):
            files.append(str(folder / name))

    def dumped(process: processes.Process, until: float, name: str, *, native: bool = False) -> str | None:
        left_s, text = until - time.monotonic(), None
        if left_s <= 0:
            notes.append(f"out of time before process {process.pid} ({process.name})")
        else:
            text = dump(spy, process, min(request["timeout_s"], left_s), notes, native=native)
        if text is not None:
            write(name, text)
        return text

    # The fast and reliable parts first, because later ones may exceed the budget.
    make_private(folder)
    if not alive:
        notes.append("the process tree has ended; only its files can be examined")
    tail = None if request["log"] is None else log_tail(request["log"], request["log_lines"], notes)
    if tail is not None:
        write("log-tail.txt", tail)
    for process in alive:
        write(f"proc-{process.pid}.txt", proc_text(process, alive, notes))
    if alive and spy is None:
        notes.append("py-spy was not found; install it beside trainwatch to see Python stacks")
    for turn in range(1, 1 + request["rounds"]) if spy is not None else ():
        if turn > 1:
            alive = _after_pause(
                [p for p in alive if stacks[p.pid]], min(time.monotonic() + request["pause_s"], deadline)
            )
        # The second dump has its share of the budget, however slow the first one is.
        first_s = max(0.0, request["budget_s"] - request["pause_s"]) / 2
        for process in alive:
            until = begun + first_s if turn == 1 < request["rounds"] else deadline
            text = dumped(process, until, f"stacks-{process.pid}-{turn}.txt")
            stacks[process.pid] += [] if text is None else [text]
    # Native frames of processes that stayed in a call that is not a wait of Python itself.
    for process in [each for each in alive if _stays_in_native_code(stacks[each.pid])][:NATIVE_PROCESSES]:
        text = dumped(process, deadline, f"native-{process.pid}.txt", native=True)
        native |= {} if text is None else {process.pid: main_frames(text)}
    frames = {pid: [main_frames(text) for text in texts] for pid, texts in stacks.items() if texts}
    moved = {str(pid): dumps[0] != dumps[-1] for pid, dumps in frames.items() if len(dumps) > 1}
    if tail is not None and log_tail(request["log"], request["log_lines"], []) != tail:
        moved = {pid: True for pid, differs in moved.items() if differs}
    return {
        "files": files,
        "frames": {str(pid): dumps[-1] for pid, dumps in frames.items()},
        "moved": moved,
        "native": {str(pid): found for pid, found in native.items()},
        "notes": list(dict.fromkeys(notes)),
    }


def _after_pause(shown: list[processes.Process], end: float) -> list[processes.Process]:
    """Those that are alive between two dumps, at ``end`` or when all are gone."""
    while True:
        shown = [process for process in shown if processes.is_alive(process.key)]
        left_s = end - time.monotonic()
        if not shown or left_s <= 0:
            return shown
        time.sleep(min(SLICE_S, left_s))


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
