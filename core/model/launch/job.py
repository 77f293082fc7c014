"""An attempt that runs as a job of Slurm: what is asked for, and what is known of the job."""

from typing import Literal

import msgspec

Engine = Literal["local", "slurm"]
"""Where the attempts of a run are started: on this machine, or as jobs of Slurm."""

JobPhase = Literal["queued", "running", "ending", "ended", "unknown"]
"""``unknown``: Slurm did not answer, or does not know the job. It is no end: nothing follows from it."""

JobCause = Literal["ok", "error", "time_limit", "preempted", "node", "memory", "cancelled"]
"""Why a job ended. ``error``: its command failed. ``node``: a node failed. ``cancelled``: a person or a site did it."""

OF_THE_SITE: frozenset[JobCause] = frozenset({"time_limit", "preempted", "node"})
"""Ends that neither the training nor a person caused: the next attempt costs no restart."""

NEVER_ENDS = frozenset({
    "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "BadConstraints", "DependencyNeverSatisfied",
    "InvalidAccount", "InvalidQOS", "AssocMaxJobsLimit", "QOSMaxWallDurationPerJobLimit",
    "AssocMaxWallDurationPerJobLimit", "JobHeldUser", "JobHeldAdmin",
})  # fmt: skip
"""Reasons of a pending job that do not end by themselves. Source: the table of reasons in squeue(1)."""


class JobHandle(msgspec.Struct, frozen=True, kw_only=True):
    """A job, for good: Slurm uses numbers again after a new installation. ``submitted``: as Slurm prints it."""

    cluster: str
    id: str
    submitted: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``job.json`` in the attempt's directory: the newest answer about its job.

    ``state``, ``reason``: Slurm's words. ``left_s``: seconds until the time limit. ``wall``: when it was asked, seconds
    since the epoch. ``attempt_directory``: that of the attempt which submitted it. ``log_read``: bytes of its log that
    were passed on.
    """

    version: int = 1
    handle: JobHandle
    phase: JobPhase
    cause: JobCause | None = None
    state: str = ""
    reason: str = ""
    nodes: str = ""
    left_s: float | None = None
    wall: float = 0.0
    attempt_directory: str = ""
    log_read: int = 0
