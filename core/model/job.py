"""An attempt that runs as a job of Slurm: what is asked for, and what is known of the job."""

from typing import Literal

import msgspec

JobPhase = Literal["queued", "running", "ending", "ended", "unknown"]
"""``unknown``: Slurm did not answer, or does not know the job. It is no end: nothing follows from it."""

JobCause = Literal["ok", "error", "time_limit", "preempted", "node", "memory", "cancelled"]
"""Why a job ended. ``error``: its command failed. ``node``: a node failed. ``cancelled``: a person or a site did it."""

OF_THE_SITE: frozenset[JobCause] = frozenset({"time_limit", "preempted", "node"})
"""Ends that neither the training nor a person caused: the next attempt costs no restart."""

NEVER_ENDS: dict[str, str] = {
    "PartitionNodeLimit": "ask for fewer nodes (slurm.nodes), or for another partition",
    "PartitionTimeLimit": "ask for less time (slurm.time), or for another partition",
    "PartitionConfig": "ask for fewer nodes (slurm.nodes), or for another partition (slurm.partition)",
    "BadConstraints": "no node has what is asked for: correct slurm.gpus, slurm.cpus or slurm.options",
    "DependencyNeverSatisfied": "the job that it waits for did not end as it should: submit it anew",
    "AccountNotAllowed": "name an account that may use the partition (slurm.account)",
    "InvalidAccount": "name an account of yours (slurm.account)",
    "InvalidQOS": "name a QOS of yours (slurm.qos)",
    "QOSNotAllowed": "name a QOS that the partition takes (slurm.qos)",
    "QOSMaxWallDurationPerJobLimit": "ask for less time (slurm.time)",
    "QOSMaxNodePerJobLimit": "ask for fewer nodes (slurm.nodes)",
    "QOSMaxCpuPerJobLimit": "ask for fewer cores (slurm.cpus)",
    "QOSMaxGRESPerJob": "ask for fewer GPUs (slurm.gpus)",
    "QOSMaxMemoryPerJob": "ask for less memory (slurm.options)",
    "AssocMaxWallDurationPerJobLimit": "ask for less time (slurm.time)",
    "AssocMaxNodePerJobLimit": "ask for fewer nodes (slurm.nodes)",
    "AssocMaxCpuPerJobLimit": "ask for fewer cores (slurm.cpus)",
    "AssocMaxGRESPerJob": "ask for fewer GPUs (slurm.gpus)",
    "AssocMaxMemPerJob": "ask for less memory (slurm.options)",
    "JobHeldUser": "`scontrol release` lets it start",
    "JobHeldAdmin": "an operator of the cluster holds it",
    "launch failed requeued held": "its start failed on the node; `scontrol release` lets it start again",
    "job requeued in held state": "`scontrol release` lets it start",
}
"""Reasons of a pending job that do not end by themselves, and what to change. Source: squeue(1), "Job Reason Codes"."""


def never_ends(reason: str) -> str | None:
    """What to change if a pending job waits for this; None if it may end by itself, or is not known.

    Slurm prints blanks or underscores, and may add words: ``launch_failed_requeued_held``.
    """
    plain = reason.strip().strip("()").replace("_", " ")
    return NEVER_ENDS.get(plain) or NEVER_ENDS.get(plain.partition(",")[0].partition(" ")[0])


class JobHandle(msgspec.Struct, frozen=True, kw_only=True):
    """A job, for good: Slurm uses numbers again after a new installation. ``submitted``: as Slurm prints it."""

    cluster: str
    id: str
    submitted: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``job.json`` in the attempt's directory: the newest answer about its job.

    ``state``, ``reason``: Slurm's words. ``left_s``: seconds until the time limit. ``wall``: when it was asked, seconds
    since the epoch. ``attempt_directory``: that of the attempt which started it. ``log_read``: bytes of its log that
    were passed on. ``asked``: the time limit is near, and its training was asked for a checkpoint. ``failed_node``:
    where a task failed first, if Slurm named one node.
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
    asked: bool = False
    failed_node: str = ""


def left_s(job: JobRecord, wall: float) -> float | None:
    """Seconds until its time limit; None = it has none, or that is not known. ``wall``: now, epoch seconds."""
    if job.left_s is None or job.phase not in {"running", "ending"}:
        return None
    return max(0.0, job.left_s - max(0.0, wall - job.wall))


# Where the attempts of a run are started, and what that place can do.

EngineName = Literal["local", "slurm"]
"""On this machine, or as jobs of Slurm."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between engines. Whoever needs to know asks one of these, never for the engine's name.

    ``here``: processes, GPUs, memory and kernel log of the training are those of this machine. ``queues``: an attempt
    may wait for nodes, and has a state, a reason and a time limit that the engine tells. ``pauses``: its processes can
    be stopped and continued. ``commands``: programs that it calls.
    """

    here: bool
    queues: bool
    pauses: bool
    commands: tuple[str, ...] = ()


CAPABILITIES: dict[EngineName, Capabilities] = {
    "local": Capabilities(here=True, queues=False, pauses=True),
    "slurm": Capabilities(
        here=False,
        queues=True,
        pauses=False,
        commands=("sbatch", "squeue", "scontrol", "scancel", "srun"),
    ),
}
