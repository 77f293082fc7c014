"""The batch script of an attempt. Pure: the same text is submitted and shown by ``run --dry-run``."""

import shlex
import sys
from collections.abc import Sequence

from ...model.settings import Slurm

EXIT_FILE = "job_exit.json"
"""Written by the script into the attempt's directory when the command has ended: the truth about its exit status."""
STARTED_FILE = "job_started.json"
LOG_FILE = "job.log"
SCRIPT_FILE = "job.sh"
AGENT_FILE = "agent.py"
TAG = "trainwatch"
AGENT_VARIABLE = "TRAINWATCH_AGENT"
"""Set for the agents on the nodes, which are no part of the training."""

_BODY = r"""
# The record of the end is written under another name first, so that a reader never sees half of it.
put() { printf '%s\n' "$2" > "$1.$$" && mv -f "$1.$$" "$1"; }
python=$(command -v __PYTHON__ || command -v python3)
agent=
if [ -n "$python" ] && [ -f __AGENT__ ]; then
  __AGENT_MARK__=1 srun --overlap --ntasks-per-node=1 "$python" -I __AGENT__ __DIRECTORY__ __SAMPLE_S__ \
    > /dev/null 2>&1 < /dev/null &
  agent=$!
fi
put __STARTED__ "{\"node\": \"$(hostname)\", \"restarts\": ${SLURM_RESTART_COUNT:-0}}"
__COMMAND__ &
child=$!
pass() { kill -s "$1" "$child" 2>/dev/null; }
trap 'pass INT' INT
trap 'pass TERM' TERM
trap __SAVE__ USR2
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
[ -z "$agent" ] || kill "$agent" 2>/dev/null
put __EXIT__ "{\"code\": $code}"
exit "$code"
"""


def tag_of(run: str, attempt: int | str = "") -> str:
    """The comment of a run's jobs, or the part that all of them begin with."""
    return f"{TAG}:{run}:{attempt}"


def batch_script(
    slurm: Slurm,
    argv: Sequence[str],
    *,
    cwd: str,
    directory: str,
    name: str,
    tag: str,
    save_file: str | None,
) -> str:
    """The text of the script.

    The command runs once on each node, as one step of ``srun``: what a batch shell starts itself outlives a cancelled
    job at some sites. The job is not requeued by Slurm: the next attempt is a submission of its own, which resumes.
    ``save_file``: touched before the time limit. No signal is sent for that: it would end each process that does not
    catch it, and which ones do cannot be told from here.
    """
    options = [
        f"--job-name={TAG}-{name}",
        f"--comment={tag}",
        f"--chdir={cwd}",
        f"--output={directory}/{LOG_FILE}",
        "--open-mode=append",
        "--no-requeue",
        f"--nodes={slurm.nodes}",
        "--ntasks-per-node=1",
    ]
    told = {
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "time": slurm.time,
        "gres": f"gpu:{slurm.gpus}" if slurm.gpus else "",
        "cpus-per-task": str(slurm.cpus) if slurm.cpus else "",
        "exclude": ",".join(slurm.exclude),
    }
    options += [f"--{key}={value}" for key, value in told.items() if value]
    if slurm.time and save_file:
        options.append(f"--signal=B:USR2@{slurm.signal_s:.0f}")
    options += slurm.options
    head = ["#!/bin/bash", *(f"#SBATCH {_of_directive(option)}" for option in options), *slurm.setup]
    command = shlex.join(("srun", "--kill-on-bad-exit=1", "--unbuffered", *argv))
    body = (
        _BODY.replace("__STARTED__", shlex.quote(f"{directory}/{STARTED_FILE}"))
        .replace("__EXIT__", shlex.quote(f"{directory}/{EXIT_FILE}"))
        .replace("__PYTHON__", shlex.quote(sys.executable))
        .replace("__AGENT_MARK__", AGENT_VARIABLE)
        .replace("__AGENT__", shlex.quote(f"{directory}/{AGENT_FILE}"))
        .replace("__DIRECTORY__", shlex.quote(directory))
        .replace("__SAMPLE_S__", f"{slurm.sample_s:g}")
        .replace("__SAVE__", shlex.quote(f"touch {shlex.quote(save_file)}" if save_file else ":"))
        .replace("__COMMAND__", command)
    )
    return "\n".join(head) + "\n" + body


def _of_directive(option: str) -> str:
    """An option as sbatch reads it: words are split at spaces, quotes hold them together."""
    name, equals, value = option.partition("=")
    return f'{name}{equals}"{value}"' if " " in value else option
