"""Whether the end of this process is the end of all others: PID 1 of a container, or a scheduler's job.

There a SIGTERM does not mean "leave the trainer running": it would be killed in some seconds. It saves and ends.
"""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from ...model.settings import Settings
from ...model.story import RunStory
from ...sense.process.proc_stat import read_stat
from ..errors import ExitCode
from .as_init import AS_INIT

SMALL_INITS = frozenset({"tini", "docker-init", "dumb-init", "catatonit", "podman-init", "pause"})
"""Programs that are PID 1 of a container and end with their child (``docker run --init``)."""
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "KUBERNETES_SERVICE_HOST")
"""Variables of schedulers that end a job with SIGTERM and then SIGKILL. LSB: LSF."""
CONTAINER_S, JOB_S = 10.0, 30.0
"""``docker stop`` waits 10 s before SIGKILL; Kubernetes and Slurm (KillWait) wait 30 s."""


def ends_with_us(environ: Mapping[str, str] = os.environ, *, proc: Path = Path("/proc")) -> str | None:
    """Return "container" or "job" if SIGTERM to this process announces the end of all others; None if not."""
    if any(name in environ for name in JOBS):
        return "job"
    if AS_INIT in environ or os.getpid() == 1 or (os.getppid() == 1 and _is_small_init(proc)):
        return "container"
    return None


def others_end_with(pid: int, *, proc: Path = Path("/proc")) -> bool:
    """Whether the end of this other process is the end of a container or a job, or that cannot be told."""
    try:
        names = {word.partition(b"=")[0].decode("utf-8", "replace") for word in _environ(pid, proc)}
    except OSError:
        return True
    found = read_stat(pid)
    if names == {""}:  # a process that is being executed, or one that has ended
        return True
    if found is None or pid == 1 or names & {*JOBS, AS_INIT}:
        return True
    return found.parent == 1 and _is_small_init(proc)


def _environ(pid: int, proc: Path) -> list[bytes]:
    return (proc / str(pid) / "environ").read_bytes().split(b"\0")


def _is_small_init(proc: Path) -> bool:
    try:
        return (proc / "1" / "comm").read_text().strip() in SMALL_INITS
    except OSError:
        return False


def grace_s(kind: str, settings: Settings) -> float:
    """Seconds between SIGTERM and SIGKILL."""
    told = settings.end.grace_s
    return told if told is not None else CONTAINER_S if kind == "container" else JOB_S


def passed_on(story: RunStory, code: int) -> int:
    """The exit status for the container or the job: that of the trainer, or ``code`` if it is not known."""
    last = story.attempt
    if story.state == "finished" or last is None or last.how is None:
        return code
    if isinstance(last.signal, str) and last.signal in signal.Signals.__members__:
        return 128 + signal.Signals[last.signal]
    if isinstance(last.signal, int):
        return 128 + last.signal
    if last.code:
        return last.code
    return code if story.state in {"given_up", "ended_early"} or last.code is None else ExitCode.DONE
