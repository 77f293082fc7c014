"""The batch script of an attempt. Pure: the same text is submitted and shown by ``run --dry-run``."""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence

from ...model.settings import Slurm
from ..processes import ATTEMPT_VARIABLE
from .answers import limit_of

EXIT_FILE = "job_exit.json"
"""Written by the script into the attempt's directory when the command has ended: the truth about its exit status."""
STARTED_FILE = "job_started.json"
LOG_FILE = "job.log"
SCRIPT_FILE = "job.sh"
AGENT_FILE = "agent.py"
TAG = "trainwatch"
AGENT_VARIABLE = "TRAINWATCH_AGENT"
"""Set for the agents on the nodes, which are no part of the training."""

AGAIN = "again"
"""File beside a script that is to run once more, named with the number of the restart. Holds the attempt's folder."""
AGAIN_VARIABLE = "TRAINWATCH_AGAIN"
ASKED_FILE = "job_asked.json"
"""Written by the script when the time limit is near and the training was asked for a checkpoint."""
BEAT_FILE = "heartbeat.py"
RANKS_FILE = "rank_files.py"
LAST_TENTHS = 30
"""Tenths of a second for the last lines of the agents."""
INNER = "job"
"""Folder in the attempt's that the training is told (``TRAINWATCH_ATTEMPT``): it is no process tree of this machine."""
NOT_ASKED = 75
"""Exit status of a script that Slurm started again without being asked by an attempt."""
LIMIT_SHARE = 0.25
"""A checkpoint is asked for when at most this part of the time limit is left: a short job has to train, too."""

_AGAIN = r"""
# Slurm starts the text of the first submission again. What it then runs is the script of the attempt that asked for it.
trap : USR2
if [ "${SLURM_RESTART_COUNT:-0}" != 0 ] && [ "${__AGAIN_MARK__:-}" != "$SLURM_RESTART_COUNT" ]; then
  if [ ! -f __AGAIN__-"$SLURM_RESTART_COUNT" ]; then
    echo "trainwatch: Slurm started this job again, and no attempt asked for that: nothing is run"
    exit __NOT_ASKED__
  fi
  next=$(cat __AGAIN__-"$SLURM_RESTART_COUNT")
  export __AGAIN_MARK__=$SLURM_RESTART_COUNT
  exec bash "$next/__SCRIPT__" >> "$next/__LOG__" 2>&1
fi
"""

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
# Before the time limit: a file is touched, and the processes that catch the signal get it, on each node.
save() {
  put __ASKED__ "{\"restarts\": ${SLURM_RESTART_COUNT:-0}}"
  __SAVE__
}
trap save USR2
mkdir -p __INNER__
put __STARTED__ "{\"node\": \"$(hostname)\", \"restarts\": ${SLURM_RESTART_COUNT:-0}}"
__ATTEMPT_MARK__=__INNER__ __COMMAND__ &
child=$!
pass() { kill -s "$1" "$child" 2>/dev/null; }
trap 'pass INT' INT
trap 'pass TERM' TERM
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
# The agents write a last line: what the ranks left about their end.
[ -z "$agent" ] || kill "$agent" 2>/dev/null
for _ in $(seq __LAST_TENTHS__); do kill -0 "$agent" 2>/dev/null || break; sleep 0.1; done
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
    save_signal: str | None = None,
) -> str:
    """The text of the script.

    The command runs once on each node, as one step of ``srun``: what a batch shell starts itself outlives a cancelled
    job at some sites. Slurm itself does not requeue the job; if trainwatch does, it runs the script of the attempt that
    asked for that. Before the time limit ``save_file`` is touched, and the agents ask the training on each node: on the
    page of its heartbeat, or by ``save_signal`` (``USR1``), which is sent only to processes that catch it.
    """
    head = ["#!/bin/bash", *(f"#SBATCH {_of_directive(option)}" for option in options(slurm, cwd, name))]
    head += [f"#SBATCH {_of_directive(option)}" for option in (f"--comment={tag}", f"--output={directory}/{LOG_FILE}")]
    command = shlex.join(("srun", "--kill-on-bad-exit=1", "--unbuffered", *argv))
    quoted = {
        "AGAIN_MARK": AGAIN_VARIABLE,
        "AGAIN": shlex.quote(f"{directory}/{AGAIN}"),
        "NOT_ASKED": str(NOT_ASKED),
        "LAST_TENTHS": str(LAST_TENTHS),
        "SCRIPT": SCRIPT_FILE,
        "LOG": LOG_FILE,
        "STARTED": shlex.quote(f"{directory}/{STARTED_FILE}"),
        "EXIT": shlex.quote(f"{directory}/{EXIT_FILE}"),
        "ASKED": shlex.quote(f"{directory}/{ASKED_FILE}"),
        "PYTHON": shlex.quote(sys.executable),
        "AGENT_MARK": AGENT_VARIABLE,
        "AGENT": shlex.quote(f"{directory}/{AGENT_FILE}"),
        "ATTEMPT_MARK": ATTEMPT_VARIABLE,
        "INNER": shlex.quote(f"{directory}/{INNER}"),
        "DIRECTORY": shlex.quote(directory),
        "SAMPLE_S": f"{slurm.sample_s:g}",
        "SAVE": _save(directory, save_file, save_signal),
        "COMMAND": command,
    }
    parts = (_filled(_AGAIN, quoted), *(f"{line}\n" for line in slurm.setup), _filled(_BODY, quoted))
    return "\n".join(head) + "\n" + "".join(parts)


def options(slurm: Slurm, cwd: str, name: str) -> list[str]:
    """The options of sbatch, without those that differ between two attempts."""
    told = {
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "time": slurm.time,
        "gres": f"gpu:{slurm.gpus}" if slurm.gpus else "",
        "cpus-per-task": str(slurm.cpus) if slurm.cpus else "",
        "exclude": ",".join(slurm.exclude),
    }
    return [
        f"--job-name={TAG}-{name}",
        f"--chdir={cwd}",
        "--open-mode=append",
        "--no-requeue",
        f"--nodes={slurm.nodes}",
        "--ntasks-per-node=1",
        *(f"--{key}={value}" for key, value in told.items() if value),
        f"--signal=B:USR2@{signal_s(slurm):.0f}",
        *slurm.options,
    ]


def signal_s(slurm: Slurm) -> float:
    """Seconds before the time limit at which a checkpoint is asked for."""
    limit_s = limit_of(slurm.time)
    return slurm.signal_s if limit_s is None else max(1.0, min(slurm.signal_s, LIMIT_SHARE * limit_s))


def _save(directory: str, save_file: str | None, save_signal: str | None) -> str:
    """What asks for a checkpoint, in the script. The step of the agents may not start: its end is not waited for."""
    ask = shlex.join(("-I", f"{directory}/{AGENT_FILE}", "--save", directory, *filter(None, (save_signal,)), "--last"))
    lines = [f'[ -z "$agent" ] || {AGENT_VARIABLE}=1 srun --overlap --ntasks-per-node=1 "$python" {ask} < /dev/null &']
    if save_file:
        lines.insert(0, f"touch {shlex.quote(save_file)}")
    return "\n  ".join(lines)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each ``__NAME__`` replaced; the values are not expanded again."""
    return re.sub(r"__([A-Z_]+?)__", lambda found: values[found[1]], text)


def _of_directive(option: str) -> str:
    """An option as sbatch reads it: words are split at spaces, quotes hold them together."""
    name, equals, value = option.partition("=")
    return f'{name}{equals}"{value}"' if " " in value else option
