"""Reads what Slurm's commands print. Pure. Source: squeue(1), scontrol(1), sacct(1) of 22.05 to 26.05."""

from collections.abc import Iterable
from typing import NamedTuple

from ...model.launch.elsewhere.job import JobCause, JobPhase

SEPARATOR = "\x1f"
"""Between the fields that squeue is asked for: reasons and comments hold spaces and bars."""
SQUEUE_FIELDS = ("%A", "%T", "%r", "%N", "%V", "%L", "%k")
SQUEUE_FORMAT = SEPARATOR.join(SQUEUE_FIELDS)
SACCT_FIELDS = "JobIDRaw,State,Submit,NodeList"

QUEUED = frozenset({
    "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SUSPENDED", "SPECIAL_EXIT",
    "POWER_UP_NODE", "EXPEDITING",
})  # fmt: skip
RUNNING = frozenset({"RUNNING", "RESIZING", "SIGNALING"})
ENDING = frozenset({"COMPLETING", "STAGE_OUT", "STOPPED", "UPDATE_DB"})
ENDED: dict[str, JobCause] = {
    "COMPLETED": "ok",
    "FAILED": "error",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node",
    "BOOT_FAIL": "node",
    "OUT_OF_MEMORY": "memory",
}

TYPED = ("SubmitLine=", "Command=")
"""Lines of scontrol that hold what a person typed: its words may have the form ``Comment=value``."""
NO_NODES = frozenset({"(null)", "None assigned"})
"""What scontrol and sacct print of a job that has none."""


class Seen(NamedTuple):
    """One job as Slurm shows it. ``left_s``: seconds until its time limit, None = no limit or not known."""

    id: str
    phase: JobPhase
    cause: JobCause | None
    state: str
    reason: str = ""
    nodes: str = ""
    submitted: str = ""
    left_s: float | None = None
    comment: str = ""
    restarts: int | None = None


def phase_of(state: str) -> tuple[JobPhase, JobCause | None]:
    """Phase and cause of a state as any of the commands prints it: ``CANCELLED by 0``, ``COMPLETED+``."""
    word = state.strip().split(maxsplit=1)[0].rstrip("+") if state.strip() else ""
    if word in QUEUED:
        return "queued", None
    if word in RUNNING:
        return "running", None
    if word in ENDING:
        return "ending", None
    if word in ENDED:
        return "ended", ENDED[word]
    return "unknown", None


def read_squeue(text: str) -> dict[str, Seen]:
    """Jobs by id, from ``squeue -h -o SQUEUE_FORMAT``. A line of another form is left out."""
    found = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(SEPARATOR)]
        if len(fields) != len(SQUEUE_FIELDS) or not fields[0].isdecimal():
            continue
        number, state, waits_for, nodes, submitted, left, comment = fields
        phase, cause = phase_of(state)
        found[number] = Seen(
            number,
            phase,
            cause,
            state,
            "" if waits_for == "None" else waits_for,
            nodes,
            submitted,
            duration_s(left),
            "" if comment == "(null)" else comment,
        )
    return found


def read_scontrol(text: str) -> Seen | None:
    """The job of ``scontrol show job ID``; None if the text has none."""
    fields: dict[str, str] = {}
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(TYPED))
    for key, value in _pairs(word for line in lines for word in line.split()):
        fields.setdefault(key, value)
    if "JobId" not in fields or "JobState" not in fields:
        return None
    phase, cause = phase_of(fields["JobState"])
    waits_for = fields.get("Reason", "")
    return Seen(
        fields["JobId"],
        phase,
        cause,
        fields["JobState"],
        "" if waits_for == "None" else waits_for,
        _nodes(fields.get("NodeList", "")),
        fields.get("SubmitTime", ""),
        None,
        "" if fields.get("Comment") == "(null)" else fields.get("Comment", ""),
        int(fields["Restarts"]) if fields.get("Restarts", "").isdecimal() else None,
    )


def read_sacct(text: str, number: str) -> Seen | None:
    """The newest row of a job in ``sacct -D -X -n -P -o SACCT_FIELDS``; None if there is none."""
    rows = [line.split("|") for line in text.splitlines()]
    found = [row for row in rows if len(row) == len(SACCT_FIELDS.split(",")) and row[0].strip() == number]
    if not found:
        return None
    _, state, submitted, nodes = found[-1]
    phase, cause = phase_of(state)
    return Seen(number, phase, cause, state, "", _nodes(nodes), submitted)


def duration_s(text: str) -> float | None:
    """Seconds of ``1-02:03:04``, ``02:03:04`` or ``03:04``; None for ``UNLIMITED``, ``INVALID``, ``NOT_SET``."""
    days, _, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")) or not 2 <= len(parts) <= 3:
        return None
    seconds = 0.0
    for part in parts:
        seconds = 60.0 * seconds + float(part)
    return seconds + 86400.0 * float(days or 0)


def limit_of(text: str) -> float | None:
    """Seconds of a time limit as sbatch takes it: also ``90`` (minutes), ``2-12`` (days, hours), ``2-12:30``."""
    days, dash, clock = text.strip().rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")) or len(parts) > 3:
        return None
    units = (3600.0, 60.0, 1.0) if dash or len(parts) == 3 else (60.0, 1.0)
    seconds = sum(float(part) * unit for part, unit in zip(parts, units, strict=False))
    return seconds + 86400.0 * float(days or 0)


def _nodes(text: str) -> str:
    return "" if text in NO_NODES else text


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key.replace("/", "").replace(":", "").isalnum():
            yield key, value
