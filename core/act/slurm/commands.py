"""Slurm's commands. Each call has a time limit: an answer that does not come says nothing about a job."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from ...bound_process import NoAnswerError, answer
from ...model.run import JobCause, JobHandle, JobPhase
from ...processes import ATTEMPT_VARIABLE

# Reads what Slurm's commands print. Pure. Source: squeue(1), scontrol(1) of 22.05 to 26.05.

SEPARATOR = "\x1f"
"""Between the fields that squeue is asked for: reasons and comments hold spaces and bars."""
SQUEUE_FIELDS = ("%A", "%T", "%r", "%N", "%V", "%L", "%k")
SQUEUE_FORMAT = SEPARATOR.join(SQUEUE_FIELDS)
HALTED = "SUSPENDED", "STOPPED"
"""It has its nodes, and its processes are stopped until Slurm lets them go on."""
QUEUED = "PENDING CONFIGURING REQUEUED REQUEUE_HOLD REQUEUE_FED RESV_DEL_HOLD SPECIAL_EXIT POWER_UP_NODE EXPEDITING"
PHASES: dict[str, tuple[JobPhase, JobCause | None]] = {
    **dict.fromkeys((*QUEUED.split(), *HALTED), ("queued", None)),
    **dict.fromkeys(("RUNNING", "RESIZING", "SIGNALING"), ("running", None)),
    **dict.fromkeys(("COMPLETING", "STAGE_OUT", "UPDATE_DB"), ("ending", None)),
    "COMPLETED": ("ended", "ok"),
    "FAILED": ("ended", "error"),
    **dict.fromkeys(("CANCELLED", "REVOKED"), ("ended", "cancelled")),
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), ("ended", "time_limit")),
    "PREEMPTED": ("ended", "preempted"),
    **dict.fromkeys(("NODE_FAIL", "BOOT_FAIL"), ("ended", "node")),
    "OUT_OF_MEMORY": ("ended", "memory"),
}

TYPED = ("SubmitLine=", "Command=")
"""Lines of scontrol that hold what a person typed: its words may have the form ``Comment=value``."""
NOTHING = frozenset({"None", "(null)"})
"""What they print for a reason, a comment or a list of nodes that there is not."""
Answer = TypeVar("Answer")
Answered = tuple[list[Answer], str]


class Seen(NamedTuple):
    """One job as Slurm shows it. ``left_s``: seconds until its time limit, None = no limit or not known."""

    id: str
    state: str
    reason: str = ""
    nodes: str = ""
    submitted: str = ""
    left_s: float | None = None
    comment: str = ""

    @property
    def phase(self) -> JobPhase:
        return phase_of(self.state)[0]

    @property
    def cause(self) -> JobCause | None:
        return phase_of(self.state)[1]


def phase_of(state: str) -> tuple[JobPhase, JobCause | None]:
    """Phase and cause of a state as any of the commands prints it: ``CANCELLED by 0``, ``COMPLETED+``."""
    return PHASES.get("".join(state.split()[:1]).rstrip("+"), ("unknown", None))


def read_squeue(text: str) -> dict[str, Seen]:
    """Jobs by id, from ``squeue -h -o SQUEUE_FORMAT``. A line of another form is left out."""
    found = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(SEPARATOR)]
        if len(fields) != len(SQUEUE_FIELDS) or not fields[0].isdecimal():
            continue
        number, state, waits_for, nodes, submitted, left, comment = ("" if f in NOTHING else f for f in fields)
        found[number] = Seen(number, state, waits_for, nodes, submitted, limit_of(left), comment)
    return found


def read_scontrol(text: str) -> Seen | None:
    """The job of ``scontrol show job ID``; None if the text has none."""
    fields: dict[str, str] = {}
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(TYPED))
    for word in (word for line in lines for word in line.split()):
        key, equals, value = word.partition("=")
        if equals and key.replace("/", "").replace(":", "").isalnum():
            fields.setdefault(key, value)
    if "JobId" not in fields or "JobState" not in fields:
        return None
    told = {key: "" if value in NOTHING else value for key, value in fields.items()}
    waits_for, nodes, submitted = (told.get(key, "") for key in ("Reason", "NodeList", "SubmitTime"))
    return Seen(told["JobId"], told["JobState"], waits_for, nodes, submitted, None, told.get("Comment", ""))


def limit_of(text: str) -> float | None:
    """Seconds of ``1-02:03:04``, ``03:04`` and as sbatch takes it ``90`` (minutes), ``2-12`` (days, hours), or None."""
    days, dash, clock = text.strip().rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")) or len(parts) > 3:
        return None
    units = (3600.0, 60.0, 1.0) if dash or len(parts) == 3 else (60.0, 1.0)
    seconds = sum(float(part) * unit for part, unit in zip(parts, units, strict=False))
    return seconds + 86400.0 * float(days or 0)


TIMEOUT_S = 30.0
"""A busy controller answers late; squeue's own limit is 10 s for each of several attempts."""
LOST = ("timed out", "unable to contact", "connection refused", "zero bytes", "try again")
"""The controller did not answer, or may have taken a job before the answer was lost."""
UNKNOWN_JOB = "Invalid job id"


class SlurmError(RuntimeError):
    """A command failed or did not answer; the message is a sentence. ``refused``: Slurm said no to a submission.

    ``printed``: what it printed before.
    """

    def __init__(self, message: str, *, refused: bool = False, printed: str = "") -> None:
        super().__init__(message)
        self.refused = refused
        self.printed = printed


class Slurm:
    """Calls the commands that are on ``PATH`` of ``env``. Blocking. All methods raise SlurmError."""

    def __init__(self, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._env = dict(os.environ if env is None else env)
        self._env["LC_ALL"] = "C"
        self._env.pop(ATTEMPT_VARIABLE, None)  # the job is no part of the process tree here, even on this node
        for variable in [name for name in self._env if name.startswith(("SQUEUE_", "SBATCH_", "SACCT_"))]:
            del self._env[variable]  # they change formats and options
        self._timeout_s = timeout_s

    def submit(self, script: str, *, after: Sequence[str] = (), exclude: Sequence[str] = ()) -> JobHandle:
        """Submit the script file. Without an answer the job may exist: look for its comment before you submit again.

        ``after``: jobs that have to be over first. ``exclude``: nodes, in place of those that the script names.
        """
        options = [f"--dependency=afterany:{':'.join(after)}"] if after else []
        options += [f"--exclude={','.join(exclude)}"] if exclude else []
        printed = self._call(("sbatch", "--parsable", *options, script), refusal=True)
        number, _, cluster = printed.strip().splitlines()[-1].partition(";")
        if not number.isdecimal():
            raise SlurmError(f"sbatch printed no job number: {printed.strip()[:200]}")
        return JobHandle(cluster=cluster or self.cluster(), id=number)

    def cluster(self) -> str:
        """The name of the cluster; empty if it cannot be told."""
        try:
            printed = self._call(("scontrol", "show", "config"))
        except SlurmError:
            return ""
        found = [line.partition("=")[2] for line in printed.splitlines() if line.startswith("ClusterName")]
        return found[0].strip() if found else ""

    def jobs(self) -> dict[str, Seen]:
        """All jobs of this user that Slurm still shows, by number."""
        return read_squeue(self._call(("squeue", "-h", "-t", "all", "--me", "-o", SQUEUE_FORMAT)))

    def job(self, handle: JobHandle) -> Seen | None:
        """One job, from the controller; None if it does not know it."""
        try:
            found = read_scontrol(self._call(("scontrol", "show", "job", handle.id)))
        except SlurmError as error:
            if UNKNOWN_JOB in str(error):
                return None
            raise
        return found if found is not None and handle.submitted in {"", found.submitted} else None

    def followed(self, handle: JobHandle) -> Seen | None:
        """As ``job``, from the queue as long as that shows it: it also tells how much time is left."""
        found = self.jobs().get(handle.id)
        return found if found is not None and handle.submitted in {"", found.submitted} else self.job(handle)

    def signal(self, handle: JobHandle, name: str) -> None:
        """Send a signal to the steps of the job, not to its batch script."""
        self._call(("scancel", f"--signal={name}", handle.id))

    def on_nodes(self, handle: JobHandle, nodes: str, argv: Sequence[str], answer: type[Answer]) -> Answered[Answer]:
        """Run a command once on each node of a running job, beside its training.

        Returns the objects that the nodes printed, a line each, and why some are missing ("": none is). Other lines
        are those of a site's prologue. Raises nothing.
        """
        where = (f"--nodelist={nodes}",) if nodes else ()
        try:
            why = ""
            printed = self._call(("srun", f"--jobid={handle.id}", "--overlap", "--ntasks-per-node=1", *where, *argv))
        except SlurmError as error:
            why, printed = str(error), error.printed
        found = []
        for line in sorted(printed.splitlines()):
            with contextlib.suppress(ValueError, msgspec.MsgspecError):
                found.append(msgspec.convert(json.loads(line), answer, strict=False))
        return found, why

    def cancel(self, handle: JobHandle) -> None:
        """End the job: SIGTERM, and after the site's KillWait SIGKILL."""
        self._call(("scancel", handle.id))

    def _call(self, argv: Sequence[str], *, refusal: bool = False) -> str:
        try:
            with _kept_from_stops():
                return answer(argv, self._timeout_s, env=self._env)
        except NoAnswerError as fault:
            hint = ": is Slurm installed here, or does a module have to be loaded first?" * (fault.kind == "absent")
            no = fault.kind == "absent" or (fault.kind == "failed" and not any(w in fault.said.lower() for w in LOST))
            raise SlurmError(f"{fault}{hint}", refused=refusal and no, printed=fault.printed) from fault


@contextlib.contextmanager
def _kept_from_stops() -> Iterator[None]:
    """Commands that begin here do not get SIGINT and SIGTERM: a stop goes to all processes of an attempt.

    One that tells Slurm of the stop would be ended by it. A blocked signal comes to this process afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_until_gone(slurm: Slurm, handle: JobHandle, limit_s: float) -> bool:
    """Wait until Slurm says that the job has ended. False: it did not say so in time."""
    end = time.monotonic() + limit_s
    while True:
        with contextlib.suppress(SlurmError):
            found = slurm.job(handle)
            if found is not None and found.phase == "ended":
                return True
        if time.monotonic() >= end:
            return False
        time.sleep(1.0)
