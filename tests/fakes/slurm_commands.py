#!/usr/bin/env -S python3 -SE
"""Slurm's commands for tests without a cluster: jobs are processes of this machine, what is known of them lies in files.

Linked as sbatch, squeue, scontrol, scancel and srun into a folder on ``PATH``. ``FAKE_SLURM`` names the folder of
the jobs. It prints what Slurm 22.05 prints for the calls that trainwatch makes, and only for those.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

JOBS = Path(os.environ.get("FAKE_SLURM", ""))


def submit(words: list[str]) -> None:
    script = Path(words[-1])
    number = str(len(list(JOBS.glob("*.json"))) + 1)
    options = [line[8:].strip() for line in script.read_text().splitlines() if line.startswith("#SBATCH ")]
    told = {name: value.strip('"') for name, _, value in (option.partition("=") for option in options)}
    keep(number, {"comment": told["--comment"], "submit": time.strftime("%Y-%m-%dT%H:%M:%S"), "script": str(script),
                  "log": told["--output"], "cwd": told["--chdir"]})  # fmt: skip
    begin(number)
    sys.stdout.write(f"{number}\n")


def begin(number: str) -> None:
    """Start the script under a process of its own, which keeps how it ends. Returns when the script runs."""
    if os.fork():
        while load(number).get("state", "PENDING") == "PENDING":
            time.sleep(0.01)
        return
    os.setsid()
    job = load(number)
    env = os.environ | {"SLURM_JOB_ID": number}
    with open(job["log"], "ab") as log:  # noqa: PTH123
        for handle in (0, 1, 2):
            os.dup2(log.fileno(), handle)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    shell = subprocess.Popen(["bash", job["script"]], cwd=job["cwd"], env=env, start_new_session=True)
    keep(number, job | {"pid": shell.pid, "state": "RUNNING"})
    shell.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)
    left = load(number)
    state = "CANCELLED" if left["state"] == "CANCELLED" else "COMPLETED" if shell.returncode == 0 else "FAILED"
    keep(number, left | {"state": state})
    os._exit(0)


def load(number: str) -> dict[str, Any]:
    path = JOBS / f"{number}.json"
    if not path.exists():
        sys.stderr.write("slurm_load_jobs error: Invalid job id specified\n")
        sys.exit(1)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def keep(number: str, job: dict[str, Any]) -> None:
    fresh = JOBS / f"{number}.{os.getpid()}"
    fresh.write_text(json.dumps(job))
    fresh.replace(JOBS / f"{number}.json")


def show_queue() -> None:
    for path in sorted(JOBS.glob("*.json")):
        job = json.loads(path.read_text())
        fields = (path.stem, job.get("state", "PENDING"), "None", "n1", job["submit"], "UNLIMITED", job["comment"])
        sys.stdout.write("\x1f".join(fields) + "\n")


def control(words: list[str]) -> None:
    if words[:2] == ["show", "config"]:
        sys.stdout.write("ClusterName             = fake\n")
    elif words[:2] == ["show", "job"]:
        job = load(words[2])
        state = job.get("state", "PENDING")
        sys.stdout.write(
            f"JobId={words[2]} JobName=x\n   JobState={state} Reason=None NodeList=n1"
            f" SubmitTime={job['submit']} Comment={job['comment']}\n"
        )


def cancel(words: list[str]) -> None:
    job = load(words[-1])
    name = next((word.partition("=")[2] for word in words if word.startswith("--signal=")), "")
    if job.get("state") != "RUNNING":
        return
    if not name:
        keep(words[-1], job | {"state": "CANCELLED"})
    group = int(str(job["pid"]))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, getattr(signal, f"SIG{name or 'TERM'}"))


def main() -> None:
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    if name == "sbatch":
        submit(words)
    elif name == "squeue":
        show_queue()
    elif name == "scontrol":
        control(words)
    elif name == "scancel":
        cancel(words)
    elif name == "srun" and "TRAINWATCH_AGENT" in os.environ and "FAKE_SLURM_AGENTS" in os.environ:
        pass  # others write what the agents would
    elif name == "srun":
        step = {"SLURM_STEP_ID": "1" if "--overlap" in words else "0"}
        while words and words[0].startswith("--"):
            option, _, value = words.pop(0).partition("=")
            if option == "--jobid":  # from outside the job
                step["SLURM_JOB_ID"] = value
        os.execvpe(words[0], words, os.environ | step)


if __name__ == "__main__":
    main()
