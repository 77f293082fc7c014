"""Stacks of a job's processes, taken on its nodes: a step of its own beside the training, in the job's allocation.

``python -P -m trainwatch.core.act.slurm.node_probe REQUEST`` runs once on each node. It needs this package at the same
path there, as on a shared disk. It stops nothing.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...bound_process import bound
from ...model.job import JobHandle
from ...private_folder import make_private
from .. import processes
from ..evidence import stack_probe
from ..evidence.py_spy import find_py_spy
from ..evidence.stack_capture import StackReport
from .job_start import AGENT_VARIABLE

MOST = 16
"""Processes on each node that are examined."""
STARTS_S = 10.0
"""For the step to start on all nodes."""
ANSWER = "trainwatch-stacks "


def take_stacks(handle: JobHandle, nodes: str, folder: Path, *, pause_s: float, budget_s: float) -> StackReport:
    """Take the stacks on all nodes of a running job. Raises nothing: what is missing is a note."""
    request = {
        "folder": str(folder),
        "log": None,
        "log_lines": 0,
        "rounds": 2,
        "pause_s": pause_s,
        "timeout_s": 5.0,
        "budget_s": budget_s,
        "native": True,
        "py_spy": find_py_spy(),
    }
    argv = (
        *(shutil.which("srun") or "srun", f"--jobid={handle.id}", "--overlap", "--ntasks-per-node=1"),
        *((f"--nodelist={nodes}",) if nodes else ()),
        *(sys.executable, "-P", "-m", __spec__.name, json.dumps(request)),
    )
    try:
        done = subprocess.run(
            bound(argv, at_end=signal.SIGTERM),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=budget_s + STARTS_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return StackReport(files=(), notes=(f"no stacks of job {handle.id}: {fault}",), by="node")
    return _joined(handle, done.stdout, done.stderr)


def _joined(handle: JobHandle, printed: str, complaint: str) -> StackReport:
    answers = [line.removeprefix(ANSWER) for line in printed.splitlines() if line.startswith(ANSWER)]
    if not answers:
        return StackReport(files=(), notes=(f"no stacks of job {handle.id}: {' '.join(complaint.split())[:300]}",))
    found = [msgspec.convert(json.loads(text) | {"by": "node"}, StackReport, strict=False) for text in answers]
    return StackReport(
        files=tuple(file for each in found for file in each.files),
        frames={pid: frames for each in found for pid, frames in each.frames.items()},
        moved={pid: moved for each in found for pid, moved in each.moved.items()},
        native={pid: frames for each in found for pid, frames in each.native.items()},
        notes=tuple(note for each in found for note in each.notes),
        by="node",
    )


def job_processes(job: str, own_step: str) -> Iterator[processes.Process]:
    """The processes of a job's steps on this node, this step left out. What a step started has its variables."""
    for pid, process in processes.all_processes().items():
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        of_step = next((v.partition(b"=")[2].decode() for v in variables if v.startswith(b"SLURM_STEP_ID=")), "")
        if f"{AGENT_VARIABLE}=1".encode() in variables:
            continue
        if f"SLURM_JOB_ID={job}".encode() in variables and of_step not in {"", own_step}:
            yield process


def main(arguments: list[str]) -> int:
    """Print the answer for this node."""
    request: dict[str, Any] = json.loads(arguments[0])
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    folder = Path(request["folder"], node)
    make_private(folder)
    living = job_processes(os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURM_STEP_ID", ""))
    keys = sorted(process.key for process in living if process.state not in processes.DEAD_STATES)[:MOST]
    found = stack_probe.capture(request | {"folder": str(folder), "keys": keys})
    sys.stdout.write(f"{ANSWER}{json.dumps(found)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
