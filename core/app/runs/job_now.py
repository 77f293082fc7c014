"""The job that the newest attempt of a run runs as, and its nodes, from the files of the attempt."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...model.job import JobRecord, left_s
from ...model.json_line import decode_exact
from ...model.nodes import Nodes
from ...model.story import RunStory

JOB_FILE, NODES_FILE = "job.json", "nodes.json"
Kind = TypeVar("Kind", JobRecord, Nodes)


def job_of(log: str | None) -> JobRecord | None:
    """The job of the attempt whose log this is; None if it runs as none."""
    return _read(log, JOB_FILE, JobRecord)


def log_of(story: RunStory) -> str | None:
    """The log of the newest attempt."""
    return None if story.attempt is None else story.attempt.log


def nodes_of(log: str | None) -> Nodes | None:
    """The nodes of the job of the attempt whose log this is; None as long as none has written."""
    return _read(log, NODES_FILE, Nodes)


def job_object(job: JobRecord | None, wall: float) -> dict[str, Any] | None:
    """For ``status --json``. ``answer_age_s``: since Slurm was asked last."""
    if job is None:
        return None
    return {
        "cluster": job.handle.cluster,
        "id": job.handle.id,
        "phase": job.phase,
        "cause": job.cause,
        "state": job.state,
        "reason": job.reason,
        "nodes": job.nodes,
        "left_s": left_s(job, wall),
        "answer_age_s": max(0.0, wall - job.wall),
    }


def node_objects(nodes: Nodes | None, now_t: float) -> list[dict[str, Any]]:
    """For ``status --json``, one for each node. ``age_s``: since its newest line came; ``silent``: it should write."""
    if nodes is None:
        return []
    return [
        {
            "node": node.node,
            "age_s": max(0.0, now_t - node.grew_t),
            "silent": nodes.silent_s(node, now_t) is not None,
            "processes": node.process.procs,
            "cpu": node.process.cpu,
            "ranks": [rank.rank for rank in node.process.ranks],
            "gpus": None if node.gpus is None else msgspec.to_builtins(node.gpus),
        }
        for node in nodes.nodes
    ]


def _read(log: str | None, name: str, type_: type[Kind]) -> Kind | None:
    if log is None:
        return None
    try:
        return decode_exact(Path(log).with_name(name).read_bytes(), type_)
    except (OSError, msgspec.MsgspecError):
        return None
