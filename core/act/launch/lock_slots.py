"""What a lock file says: two slots of SLOT_BYTES, the supervisor's and the runner's, each a line of JSON.

A slot is padded with blanks and written in place, so that a write needs no new space and never exchanges the file that
is locked. Standard library only: the runner imports this.
"""
# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH115

import json
import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .. import processes

SLOT_BYTES = 2048
FILE_BYTES = 2 * SLOT_BYTES
SUPERVISOR: Literal[0] = 0
RUNNER: Literal[1] = 1
ROLES = ("supervisor", "runner")
VERSION = 1

Role = Literal[0, 1]


class Owner(NamedTuple):
    """The run that holds a lock. ``created`` tells a run from one of the same id whose state folder was deleted."""

    run: str
    created: float
    home: str
    output_dir: str | None = None

    def is_same(self, other: "Owner") -> bool:
        """Whether it is the same run; its folder may have become known later."""
        return self[:3] == other[:3]


class Holder(NamedTuple):
    """What a slot says. ``trainer``: pid and start ticks; ``directory``: of the attempt, in its trainer's environment.

    ``pid_space``: name space of the pids; ``job``: see ``job_of``; ``beats``: counted up while the holder lives.
    """

    owner: Owner
    role: str
    host: str
    boot: str
    pid_space: str
    pid: int
    start_ticks: int
    beats: int
    job: str
    trainer: tuple[int, int] | None = None
    directory: str | None = None

    @property
    def lives(self) -> bool:
        """Whether this holder, its trainer or a process of its attempt lives. Only of this boot and pid name space."""
        keys = ((self.pid, self.start_ticks), self.trainer)
        if any(processes.is_alive(key) for key in keys if key is not None):
            return True
        if self.directory is None:
            return False
        marked = processes.marked_with(self.directory, processes.all_processes().values())
        return any(process.state not in processes.DEAD_STATES for process in marked)


Slots = tuple[Holder | None, Holder | None]


def job_of(environ: Mapping[str, str]) -> str:
    """The scheduler's job and the rank of this process in it; "" outside of one.

    Two tasks of one job differ in their rank, so that each of them takes over only its own lock.
    """
    for name, rank in (
        ("SLURM_JOB_ID", "SLURM_PROCID"),
        ("PBS_JOBID", "PBS_TASKNUM"),
        ("LSB_JOBID", "LSF_PM_TASKID"),
        ("OAR_JOB_ID", ""),
        ("JOB_ID", "SGE_TASK_ID"),
    ):
        if environ.get(name):
            return ":".join((name, environ[name], environ.get(rank) or "0"))
    return ""


def here(owner: Owner, role: Role) -> Holder:
    """The calling process as the holder of a lock."""
    own = processes.own_process()
    return Holder(
        owner=owner,
        role=ROLES[role],
        host=os.uname().nodename,
        boot=processes.boot_id(),
        pid_space=pid_space(),
        pid=own.pid,
        start_ticks=own.start_ticks,
        beats=0,
        job=job_of(os.environ),
    )


def read_slots(descriptor: int) -> Slots | None:
    """What the two slots say (None: empty); None if one of them cannot be read. Raises OSError."""
    found: list[Holder | None] = []
    for slot in (SUPERVISOR, RUNNER):
        text = os.pread(descriptor, SLOT_BYTES, slot * SLOT_BYTES).strip(b"\0 \n")
        try:
            found.append(_holder(json.loads(text)) if text else None)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
            return None
    return found[0], found[1]


def write_slot(descriptor: int, role: Role, holder: Holder | None) -> None:
    """Write a slot (None: empty it). Raises OSError."""
    if os.fstat(descriptor).st_size < FILE_BYTES:
        os.pwrite(descriptor, 2 * _line(b""), 0)
    os.pwrite(descriptor, _line(b"" if holder is None else _text(holder)), role * SLOT_BYTES)
    os.fsync(descriptor)


def pid_space() -> str:
    """The name space of this process's pids: processes of another container cannot be seen."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _line(text: bytes) -> bytes:
    return text.ljust(SLOT_BYTES - 1) + b"\n"


def _text(holder: Holder) -> bytes:
    content = {"trainwatch": VERSION, **holder.owner._asdict(), **holder._asdict()}
    del content["owner"]
    text = json.dumps(content).encode("ascii")
    if len(text) < SLOT_BYTES:
        return text
    # Paths of thousands of characters: what is only for people is left out.
    return json.dumps(content | {"directory": None, "output_dir": None}).encode("ascii")


def _holder(content: dict[str, Any]) -> Holder:
    if content["trainwatch"] > VERSION:
        raise ValueError("written by a newer version")
    trainer = content["trainer"]
    return Holder(
        owner=Owner(
            run=_path(content["run"]),
            created=float(content["created"]),
            home=_path(content["home"]),
            output_dir=_path_or_none(content["output_dir"]),
        ),
        role=str(content["role"]),
        host=str(content["host"]),
        boot=str(content["boot"]),
        pid_space=str(content["pid_space"]),
        pid=int(content["pid"]),
        start_ticks=int(content["start_ticks"]),
        beats=int(content["beats"]),
        job=str(content["job"]),
        trainer=None if trainer is None else (int(trainer[0]), int(trainer[1])),
        directory=_path_or_none(content["directory"]),
    )


def _path(text: str) -> str:
    """The text, if it can be a path. Raises ValueError, TypeError: anybody may have written the file."""
    if b"\0" in os.fsencode(text):
        raise ValueError("no path")
    return text


def _path_or_none(text: str | None) -> str | None:
    return None if text is None else _path(text)
