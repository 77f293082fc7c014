"""How the job of an attempt begins: a living one of the run is followed, or one is submitted.

Two jobs in one folder overwrite each other's checkpoints, so nothing is submitted as long as it cannot be told whether
one lives. A job starts after those of the run that have not quite ended (``afterany``).
"""

import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

import trainbeat

from ... import processes, rank_files, spool
from ...model.decision import StartAttempt
from ...model.run import JobHandle, JobRecord, LaunchOrder, RunSpec
from ...model.settings import Slurm as SettingsSlurm
from ...private_folder import make_private
from ...processes import AGENT_VARIABLE, ATTEMPT_VARIABLE
from ..save_request import AskToSave, file_of
from . import node_agent
from .commands import Seen, Slurm, SlurmError, limit_of, wait_until_gone

ORDER = "job_order.json"


class JobOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``job_order.json``. ``tag`` begins the comment of all jobs of the run; ``poll_s``: as in the settings.

    ``settle_s``: after the end of a job its log may still grow for so long: network disks show it late.
    ``exclude``: nodes with a faulty GPU, and those of the settings.
    """

    tag: str
    poll_s: float
    settle_s: float = 2.0
    exclude: tuple[str, ...] = ()


def begin(directory: Path, order: JobOrder, slurm: Slurm, say: Callable[[str], None]) -> JobRecord:
    """Return the job to follow. Raises SlurmError: without an answer nothing is submitted."""
    jobs = [seen for seen in slurm.jobs().values() if seen.comment.startswith(order.tag)]
    alive = [seen for seen in jobs if seen.phase not in {"ended", "ending"}]
    if alive:
        seen = max(alive, key=lambda each: int(each.id))
        say(f"job {seen.id} of this run is alive ({seen.state}): it is followed, and no other is submitted")
        return _followed(directory, seen, slurm)
    ending = [seen.id for seen in jobs if seen.phase == "ending"]
    script = str(directory / SCRIPT_FILE)
    try:
        handle = slurm.submit(script, after=ending, exclude=order.exclude)
    except SlurmError as error:
        if not error.refused or not order.exclude:
            raise
        say(f"without {', '.join(order.exclude)} it was refused ({error}): submitted with all nodes")
        handle = slurm.submit(script, after=ending)
    after = f", to start after job {', '.join(ending)}" if ending else ""
    say(f"job {handle.id} submitted{after}")
    return JobRecord(handle=handle, phase="queued", attempt_directory=str(directory), wall=time.time())


def exit_code(folder: str) -> int | None:
    """The exit status that the script of an attempt wrote; None as long as it has written none."""
    found = spool.read(folder, EXIT_FILE)
    code = None if found is None else found.get("code")
    return code if isinstance(code, int) else None


def _followed(directory: Path, seen: Seen, slurm: Slurm) -> JobRecord:
    """The record of the attempt that started this job, or a new one that begins at the end of its log."""
    for path in sorted(directory.parent.glob(f"*/{spool.JOB}"), reverse=True):
        record = spool.read_job(path.parent)
        if record is not None and record.handle.id == seen.id and record.handle.submitted in {"", seen.submitted}:
            return record
    handle = JobHandle(cluster=slurm.cluster(), id=seen.id, submitted=seen.submitted)
    return JobRecord(handle=handle, phase=seen.phase, attempt_directory=str(directory))


END_S = 120.0
"""Longest wait for the end of a cancelled job: the site's KillWait (30 s by default) and a slow node."""


def prepare(
    spec: RunSpec, launch: LaunchOrder, folder: Path, decision: StartAttempt, *, save: AskToSave
) -> tuple[str, ...]:
    """Write the batch script into the attempt's folder. Returns the command that submits and follows it.

    ``launch``: the training's own command. Raises OSError.
    """
    import pynvml  # a megabyte, for jobs

    make_private(folder)
    (folder / SCRIPT_FILE).write_text(script_of(spec, save, launch.argv, folder, decision.attempt), encoding="utf-8")
    (folder / AGENT_FILE).write_bytes(Path(node_agent.__file__).read_bytes())
    for module in (trainbeat, processes, rank_files, pynvml):  # the agent imports them on the node
        source = Path(str(module.__file__))
        (folder / source.name).write_bytes(source.read_bytes())
    order = JobOrder(
        tag=tag_of(spec.id),
        poll_s=spec.settings.slurm.poll_s,
        exclude=(*spec.settings.slurm.exclude, *decision.exclude) if decision.exclude else (),
    )
    spool.write(str(folder), ORDER, msgspec.to_builtins(order))
    return (sys.executable, "-P", "-m", "trainwatch.core.act.slurm.job_process", str(folder))


def end_job(folder: str, tag: str, slurm: Slurm) -> str:
    """Cancel the job of an attempt and wait until it has ended. Returns what is wrong, "" if it has ended.

    ``tag``: the comment of the attempt's job, by which one is found whose follower ended before it could note it.
    """
    record = spool.read_job(folder)
    if record is not None and record.phase == "ended":
        return ""
    try:
        handle = None if record is None else record.handle
        for seen in slurm.jobs().values() if record is None else ():
            if seen.comment == tag and seen.phase != "ended":
                handle = JobHandle(cluster="", id=seen.id, submitted=seen.submitted)
    except SlurmError as error:
        return f"it cannot be told whether a job was submitted: {error}"
    if handle is None:
        return ""
    try:
        slurm.cancel(handle)
    except SlurmError as error:
        return f"job {handle.id} could not be cancelled: {error}"
    if wait_until_gone(slurm, handle, END_S):
        return ""
    return f"job {handle.id} was cancelled, and Slurm did not say within {END_S:.0f} s that it has ended"


EXIT_FILE = "job_exit.json"
"""Written by the script into the attempt's directory when the command has ended: the truth about its exit status."""
STARTED_FILE = "job_started.json"
LOG_FILE = "job.log"
SCRIPT_FILE = "job.sh"
AGENT_FILE = "agent.py"
TAG = "trainwatch"

ASKED_FILE = "job_asked.json"
"""Written by the script when the time limit is near and the training was asked for a checkpoint."""
LAST_TENTHS = 30
"""Tenths of a second for the last lines of the agents."""
INNER = "job"
"""Folder in the attempt's that the training is told (``TRAINWATCH_ATTEMPT``): it is no process tree of this machine."""
NOT_ASKED = 75
"""Exit status of a script that Slurm started again without being asked by an attempt."""
LIMIT_SHARE = 0.25
"""A checkpoint is asked for when at most this part of the time limit is left: a short job has to train, too."""

_ONCE = r"""
trap : USR2
if [ "${SLURM_RESTART_COUNT:-0}" != 0 ]; then
  echo "trainwatch: Slurm started this job again, and no attempt asked for that: nothing is run"
  exit __NOT_ASKED__
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
  put __ASKED__ "{}"
  __SAVE__
}
trap save USR2
mkdir -p __INNER__
put __STARTED__ "{\"node\": \"$(hostname)\"}"
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


def script_of(spec: RunSpec, save: AskToSave, argv: Sequence[str], folder: Path, attempt: int) -> str:
    """The batch script of an attempt.

    The command runs once on each node, as one step of ``srun``: what a batch shell starts itself outlives a cancelled
    job at some sites. Slurm does not requeue it. Before the time limit the file to save is touched, and the agents ask
    the training on each node: on the page of its heartbeat, or by a signal, which is sent only to processes that catch
    it.
    """
    slurm, directory = spec.settings.slurm, str(folder)
    told = [*options(slurm, spec.cwd, spec.name), f"--comment={tag_of(spec.id, attempt)}"]
    told = [re.sub(r"(?s)=(.* .*)", r'="\1"', each) for each in (*told, f"--output={directory}/{LOG_FILE}")]  # as words
    head = ["#!/bin/bash", *(f"#SBATCH {each}" for each in told)]
    command = shlex.join(("srun", "--kill-on-bad-exit=1", "--unbuffered", *argv))
    quoted = {
        "NOT_ASKED": str(NOT_ASKED),
        "LAST_TENTHS": str(LAST_TENTHS),
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
        "SAVE": _save(directory, file_of(save, spec), save[0]),
        "COMMAND": command,
    }
    parts = (_filled(_ONCE, quoted), *(f"{line}\n" for line in slurm.setup), _filled(_BODY, quoted))
    return "\n".join(head) + "\n" + "".join(parts)


def options(slurm: SettingsSlurm, cwd: str, name: str) -> list[str]:
    """The options of sbatch, without those that differ between two attempts."""
    told = {
        "partition": slurm.partition,
        "account": slurm.account,
        "time": slurm.time,
        "gres": f"gpu:{slurm.gpus}" if slurm.gpus else "",
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


def signal_s(slurm: SettingsSlurm) -> float:
    """Seconds before the time limit at which a checkpoint is asked for."""
    limit_s = limit_of(slurm.time)
    return slurm.signal_s if limit_s is None else max(1.0, min(slurm.signal_s, LIMIT_SHARE * limit_s))


def _save(directory: str, save_file: Path | None, save_signal: str | None) -> str:
    """What asks for a checkpoint, in the script. The step of the agents may not start: its end is not waited for."""
    ask = shlex.join(("-I", f"{directory}/{AGENT_FILE}", "--save", directory, *filter(None, (save_signal,)), "--last"))
    lines = [f'[ -z "$agent" ] || {AGENT_VARIABLE}=1 srun --overlap --ntasks-per-node=1 "$python" {ask} < /dev/null &']
    if save_file:
        lines.insert(0, f"touch {shlex.quote(str(save_file))}")
    return "\n  ".join(lines)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each ``__NAME__`` replaced; the values are not expanded again."""
    return re.sub(r"__([A-Z_]+?)__", lambda found: values[found[1]], text)
