"""The ranks of a distributed training now: their processes, and the newest line of each that the log tells apart."""

from pathlib import Path
from typing import Any

from ...model.observation import ProcessSample

TAIL_BYTES = 64 * 1024
"""End of the log that is read."""


def ranks_now(process: ProcessSample | None, log: str | None) -> list[dict[str, Any]]:
    """One object for each rank, for ``status --json``; empty if the run has fewer than two."""
    if process is None or not process.ranks:
        return []
    from ...judge.hang.ranks import with_processes, with_text

    found = with_text(with_processes((), process.ranks, process.t), _tail(log), process.t)
    return [
        {"rank": each.rank, "pid": each.pid, "state": each.state, "step": each.step, "last_line": each.line}
        for each in found
        if each.pid is not None
    ]


def _tail(log: str | None) -> str:
    if log is None:
        return ""
    try:
        with Path(log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
