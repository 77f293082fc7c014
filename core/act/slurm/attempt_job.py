"""What is done with the job of an attempt: prepared before the launch, ended, asked for a checkpoint."""

import sys
from pathlib import Path

import msgspec

from ...model.launch.job import JobRecord
from ...model.preset import Preset
from ...model.run import RunSpec
from ...model.text.json_line import decode_exact
from ..launch import spool
from . import node_agent
from .batch_script import AGENT_FILE, SCRIPT_FILE, batch_script, tag_of
from .commands import Slurm, SlurmError, wait_until_gone
from .job_process import ORDER, RECORD, JobOrder

END_S = 120.0
"""Longest wait for the end of a cancelled job: the site's KillWait (30 s by default) and a slow node."""


def script_of(spec: RunSpec, preset: Preset, argv: tuple[str, ...], folder: Path, attempt: int) -> str:
    """The batch script of an attempt."""
    file = spec.save_file or preset.save_file
    return batch_script(
        spec.settings.slurm,
        argv,
        cwd=spec.cwd,
        directory=str(folder),
        name=spec.name,
        tag=tag_of(spec.id, attempt),
        save_file=None if file is None else str(Path(spec.cwd, file)),
    )


def prepare(spec: RunSpec, preset: Preset, argv: tuple[str, ...], folder: Path, attempt: int) -> tuple[str, ...]:
    """Write the batch script into the attempt's folder. Returns the command that submits and follows it.

    Raises OSError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / SCRIPT_FILE).write_text(script_of(spec, preset, argv, folder, attempt), encoding="utf-8")
    (folder / AGENT_FILE).write_bytes(Path(node_agent.__file__).read_bytes())
    order = JobOrder(tag=tag_of(spec.id), poll_s=spec.settings.slurm.poll_s)
    spool.write(str(folder), ORDER, msgspec.to_builtins(order))
    return (sys.executable, "-P", "-m", "trainwatch.core.act.slurm.job_process", str(folder))


def record_of(folder: str) -> JobRecord | None:
    """What is known of the job of an attempt; None if it was never submitted."""
    try:
        return decode_exact(Path(folder, RECORD).read_bytes(), JobRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def end_job(folder: str, slurm: Slurm | None = None) -> str:
    """Cancel the job of an attempt and wait until it has ended. Returns what is wrong, "" if it has ended."""
    record, slurm = record_of(folder), slurm or Slurm()
    if record is None or record.phase == "ended":
        return ""
    try:
        slurm.cancel(record.handle)
    except SlurmError as error:
        return f"job {record.handle.id} could not be cancelled: {error}"
    if wait_until_gone(slurm, record.handle, END_S):
        return ""
    return f"job {record.handle.id} was cancelled, and Slurm did not say within {END_S:.0f} s that it has ended"
