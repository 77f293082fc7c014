"""Stacks of a job's processes, taken on its nodes: a step of its own beside the training, in the job's allocation.

``python -P -m trainwatch.core.act.slurm.node_probe REQUEST`` runs once on each node. It needs this package at the same
path there, as on a shared disk. It stops nothing.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...private_folder import make_private
from .. import processes
from ..evidence import stack_probe
from .job_start import AGENT_VARIABLE


def job_processes(job: str, own_step: str) -> Iterator[processes.Process]:
    """The processes of a job's steps on this node, this step left out. What a step started has its variables."""
    for pid, process in processes.all_processes().items():
        variables = processes.variables_of(pid) or []
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
    keys = sorted(process.key for process in living)
    sys.stdout.write(json.dumps(stack_probe.capture(request | {"folder": str(folder), "keys": keys})) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
