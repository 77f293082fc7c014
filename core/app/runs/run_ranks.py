"""The ranks of a distributed training now: their processes, and the newest line of each that the log tells apart."""

from pathlib import Path
from typing import Any

import msgspec

from ...model.launch.elsewhere.nodes import Nodes, RankNow, RankTable
from ...model.observation import ProcessSample, Rank

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
        from ...sense.process.node_samples import ranks_of

        process = ProcessSample(t=nodes.t, ranks=ranks_of(nodes.nodes, nodes.t))
    t = None if process is None else process.t
    return RankTable(t=t, ranks=_rows(process, log), nodes=nodes)


def _rows(process: ProcessSample | None, log: str | None) -> tuple[RankNow, ...]:
    """The ranks of a sample, each with what sets it apart from the others."""
    if process is None or not process.ranks:
        return ()
    from ...judge.hang.ranks import with_processes, with_text
    from ...views.state.rank_standing import with_standing

    told = {each.rank: each for each in process.ranks}
    found = with_processes((), process.ranks, process.t)
    if not all(each.line for each in process.ranks):  # else each has a log file of its own
        found = with_text(found, _tail(log), process.t)
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
                last_line_age_s=_age_s(told[each.rank]),
                seen_age_s=told[each.rank].seen_s,
            )
            for each in found
            if each.pid is not None
        ]
    )


def _age_s(rank: Rank) -> float | None:
    return None if rank.line_age_s is None else rank.line_age_s + rank.seen_s


def _pace_s(rank: Rank) -> float | None:
    """Seconds per step between the two lines that are known of it; None if they show no two steps."""
    from ...judge.hang.ranks import step_of

    if rank.line_age_s is None or rank.earlier_age_s is None:
        return None
    now, before = step_of(rank.line), step_of(rank.earlier)
    if now is None or before is None or now <= before:
        return None
    return (rank.earlier_age_s - rank.line_age_s) / (now - before)


def _tail(log: str | None) -> str:
    if log is None:
        return ""
    try:
        with Path(log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
