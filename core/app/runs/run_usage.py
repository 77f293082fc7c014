"""What a run took of its machine, what its ranks did, and the job and nodes that its newest attempt runs as."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ...model.observation import GpuSample, HostSample, Nodes, ProcessSample, Rank, RankNow, RankTable
from ...model.run import JobRecord, left_s
from ...model.story import RunStory
from ...rank_files import tail_of
from ...spool import read_job, read_record
from ...store.history_reader import HistoryReader, Point
from ...views.report import Usage

# What a run took of its machine while it trained, from its metric history.

POINTS = 100
"""Enough for a mean and a peak: a run of a week is read from its coarse tables."""


def usage_of(history: HistoryReader, story: RunStory, gpu: GpuSample | None, host: HostSample | None) -> Usage:
    """Means and peaks from the first printed step to the last one."""
    end_t = story.t + 1.0
    steps = history.series("progress.step", 0.0, end_t, POINTS)
    if not steps:
        return Usage()
    since, until = steps[0][0], steps[-1][0] + 1.0

    own = [reading for reading in (gpu.gpus if gpu is not None else ()) if reading.own is not False]
    names = [f"gpu{reading.index}.{kind}" for reading in own for kind in ("vram", "util", "temp")]
    series = history.charts([*names, "host.ram_used", "host.swap_used"], since, until, POINTS)
    vram = [
        100.0 * mean
        for reading in own
        if reading.mem_total_bytes and (mean := _mean(series[f"gpu{reading.index}.vram"], reading.mem_total_bytes))
    ]
    failed = (i.t for i in story.incidents if i.kind in {"crash", "hang"} and since < i.t < until)
    ends = [since, *sorted(failed), until]
    total = host.ram_total_bytes if host is not None else None
    ram = _mean(series["host.ram_used"], total) if total else None
    return Usage(
        util_pct=_middle(_mean(series[f"gpu{reading.index}.util"]) for reading in own),
        vram_pct=_middle(vram),
        ram_pct=None if ram is None else 100.0 * ram,
        temp_c=max((p[3] for reading in own for p in series[f"gpu{reading.index}.temp"]), default=None),
        swap_bytes=max((p[3] for p in series["host.swap_used"]), default=None),
        alone_s=max((end - begin for begin, end in pairwise(ends)), default=None),
    )


def _mean(points: Sequence[Point], of: float = 1.0) -> float | None:
    return sum(point[2] for point in points) / len(points) / of if points else None


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# The ranks of a distributed training now: their processes, and the newest line of each that the log tells apart.

TAIL_BYTES = 64 * 1024
"""End of the log that is read."""


def ranks_now(process: ProcessSample | None, log: str | None, nodes: Nodes | None = None) -> list[dict[str, Any]]:
    """One object for each rank, for ``status --json``; empty if the run has fewer than two."""
    return [msgspec.to_builtins(row) for row in rank_table(process, log, nodes).ranks]


def rank_table(process: ProcessSample | None, log: str | None, nodes: Nodes | None = None) -> RankTable:
    """The ranks now: of the nodes of a job as each wrote last, else of the newest sample of the processes.

    A sample of a job waits for all its nodes, so that one that writes no more would keep the others from the table.
    """
    if nodes is not None:
        from ...sense.process.ranks import ranks_of

        process = ProcessSample(t=nodes.t, ranks=ranks_of(nodes.nodes, nodes.t))
    t = None if process is None else process.t
    return RankTable(t=t, ranks=_rows(process, log), nodes=nodes)


def _rows(process: ProcessSample | None, log: str | None) -> tuple[RankNow, ...]:
    """The ranks of a sample, each with what sets it apart from the others."""
    if process is None or not process.ranks:
        return ()
    from ...judge.hang.pauses import with_processes, with_text
    from ...views.ranks_page import with_standing

    told = {each.rank: each for each in process.ranks}
    ages = {rank: None if each.line_age_s is None else each.line_age_s + each.seen_s for rank, each in told.items()}
    found = with_processes((), process.ranks, process.t)
    if not all(each.line for each in process.ranks):  # else each has a log file of its own
        found = with_text(found, tail_of(log, TAIL_BYTES), process.t)
    return with_standing(
        [
            RankNow(
                rank=each.rank,
                pid=each.pid,
                node=each.node or None,
                state=each.state,
                step=each.step,
                sec_per_step=_pace_s(told[each.rank]),
                last_line=each.line,
                last_line_age_s=ages[each.rank],
                seen_age_s=told[each.rank].seen_s,
            )
            for each in found
            if each.pid is not None
        ]
    )


def _pace_s(rank: Rank) -> float | None:
    """Seconds per step between the two lines that are known of it; None if they show no two steps."""
    from ...judge.hang.pauses import step_of

    if rank.line_age_s is None or rank.earlier_age_s is None:
        return None
    now, before = step_of(rank.line), step_of(rank.earlier)
    if now is None or before is None or now <= before:
        return None
    return (rank.earlier_age_s - rank.line_age_s) / (now - before)


# The job that the newest attempt of a run runs as, and its nodes, from the files of the attempt.

NODES_FILE = "nodes.json"


def job_of(log: str | None) -> JobRecord | None:
    """The job of the attempt whose log this is; None if it runs as none."""
    return None if log is None else read_job(Path(log).parent)


def nodes_of(log: str | None) -> Nodes | None:
    """The nodes of the job of the attempt whose log this is; None as long as none has written."""
    return None if log is None else read_record(Path(log).parent, NODES_FILE, Nodes)


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
