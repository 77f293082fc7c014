"""Collects the evidence of why a job hung or died: stacks from its nodes, the end of its log, the launch record."""

from pathlib import Path

import msgspec

from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ...private_folder import make_private
from ..evidence.capture import BUDGET_S, LOG_LINES, pause_s
from ..evidence.evidence_files import log_tail, write_file
from ..evidence.launch_record import write_launch_record
from ..evidence.stack_capture import StackReport
from .attempt_job import record_of
from .node_probe import take_stacks

SHARE = 0.6
"""Of the time for evidence: the steps have to start on the nodes first."""


def examine_job(target: AttemptTarget, folder: Path, spec: RunSpec) -> StackReport:
    """Collect the evidence into ``folder``. Raises OSError only if the folder cannot be made."""
    make_private(folder)
    notes: list[str] = []
    files = list(write_launch_record(target, spec, folder, notes))
    tail = log_tail(target.log, LOG_LINES, notes) if target.log else ""
    if tail and write_file(folder / "log-tail.txt", tail):
        files.append(str(folder / "log-tail.txt"))
    record = record_of(target.directory)
    if record is None or record.phase != "running":
        words = "was never submitted" if record is None else f"is {record.state or record.phase}"
        return StackReport(files=tuple(files), notes=(*notes, f"no stacks: the job {words}"), by="node")
    report = take_stacks(record.handle, record.nodes, folder, pause_s=pause_s(spec) * SHARE, budget_s=BUDGET_S * SHARE)
    return msgspec.structs.replace(report, files=(*files, *report.files), notes=(*notes, *report.notes))
