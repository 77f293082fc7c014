"""What is done with the job of an attempt: prepared before the launch, ended, asked for a checkpoint."""

import contextlib
import sys
from hashlib import sha256
from pathlib import Path

import msgspec

from .... import heartbeat
from ... import rank_files
from ...model.attempt import LaunchOrder
from ...model.decision import StartAttempt
from ...model.launch.elsewhere.job import JobHandle, JobRecord
from ...model.run import RunSpec
from ...private_folder import make_private
from ..adopt.adoption import SESSION_BOUND
from ..launch import spool
from ..processes import ATTEMPT_VARIABLE
from ..stop.save_request import AskToSave, file_of
from . import node_agent
from .batch_script import AGENT_FILE, BEAT_FILE, RANKS_FILE, SCRIPT_FILE, batch_script, options, tag_of
from .commands import Slurm, SlurmError, wait_until_gone
from .job_start import ORDER, RECORD, JobOrder, record_in

END_S = 120.0
"""Longest wait for the end of a cancelled job: the site's KillWait (30 s by default) and a slow node."""


def script_of(spec: RunSpec, save: AskToSave, argv: tuple[str, ...], folder: Path, attempt: int) -> str:
    """The batch script of an attempt."""
    name, file = save[0], file_of(save, spec)
    return batch_script(
        spec.settings.slurm,
        argv,
        cwd=spec.cwd,
        directory=str(folder),
        name=spec.name,
        tag=tag_of(spec.id, attempt),
        save_file=None if file is None else str(file),
        save_signal=name,
    )


def prepare(
    spec: RunSpec,
    launch: LaunchOrder,
    folder: Path,
    decision: StartAttempt,
    *,
    save: AskToSave,
    shared: Path | None,
    again: bool,
) -> tuple[str, ...]:
    """Write the batch script into the attempt's folder. Returns the command that submits and follows it.

    ``launch``: the training's own command and environment. ``shared``: where the runs of this machine keep what they
    ask Slurm together. ``again``: the job of the attempt before may run once more for this one. Raises OSError.
    """
    make_private(folder)
    (folder / SCRIPT_FILE).write_text(script_of(spec, save, launch.argv, folder, decision.attempt), encoding="utf-8")
    (folder / AGENT_FILE).write_bytes(Path(node_agent.__file__).read_bytes())
    (folder / BEAT_FILE).write_bytes(Path(heartbeat.__file__).read_bytes())
    (folder / RANKS_FILE).write_bytes(Path(rank_files.__file__).read_bytes())
    settings = _settings(spec, launch, decision, folder)
    before = _attempt_before(folder) if again else ""
    order = JobOrder(
        tag=tag_of(spec.id),
        poll_s=spec.settings.slurm.poll_s,
        settings=settings,
        before=before if before and _settings_of(before) == settings else "",
        exclude=(*spec.settings.slurm.exclude, *decision.exclude) if decision.exclude else (),
        shared="" if shared is None else str(shared),
    )
    spool.write(str(folder), ORDER, msgspec.to_builtins(order))
    return (sys.executable, "-P", "-m", "trainwatch.core.act.slurm.job_process", str(folder))


def _settings(spec: RunSpec, launch: LaunchOrder, decision: StartAttempt, folder: Path) -> str:
    """A text that is the same for two attempts that differ in their resume point only: Slurm keeps the rest.

    A job that runs once more has the options and the environment of its first submission.
    """
    own = sorted((key, value) for key, value in launch.env.items() if key not in IGNORED)
    asked = options(spec.settings.slurm, spec.cwd, spec.name)
    text = repr((decision.profile, decision.changes, decision.exclude, asked, own)).replace(str(folder), "")
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


IGNORED = frozenset({ATTEMPT_VARIABLE, *SESSION_BOUND})
"""Variables that differ between two starts of a supervisor and mean nothing to a training."""


def _attempt_before(folder: Path) -> str:
    """The newest other attempt that ran as a job; "" if there is none."""
    found = [path.parent for path in folder.parent.glob(f"*/{RECORD}") if path.parent != folder]
    return str(max(found, key=lambda each: each.name)) if found else ""


def _settings_of(folder: str) -> str:
    found = spool.read(folder, ORDER)
    return "" if found is None else str(found.get("settings", ""))


def record_of(folder: str) -> JobRecord | None:
    """What is known of the job of an attempt; None if it was never submitted."""
    return record_in(Path(folder))


def let_run_again(folder: str, slurm: Slurm) -> None:
    """Before the job of an attempt is ended for a restart: it may run once more. If not, another one is submitted."""
    record = record_of(folder)
    if record is not None and record.phase != "ended":
        with contextlib.suppress(SlurmError):
            slurm.allow_requeue(record.handle)


def end_job(folder: str, tag: str, slurm: Slurm) -> str:
    """Cancel the job of an attempt and wait until it has ended. Returns what is wrong, "" if it has ended.

    ``tag``: the comment of the attempt's job, by which one is found whose follower ended before it could note it.
    """
    record = record_of(folder)
    if record is not None and record.phase == "ended":
        return ""
    try:
        handle = _unrecorded(tag, slurm) if record is None else record.handle
    except SlurmError as error:
        return f"it cannot be told whether a job was submitted: {error}"
    if handle is None:
        return ""
    try:
        if slurm.runs_again(handle):  # for a later attempt, which this is not the end of
            return ""
        slurm.cancel(handle)
    except SlurmError as error:
        return f"job {handle.id} could not be cancelled: {error}"
    if wait_until_gone(slurm, handle, END_S):
        return ""
    return f"job {handle.id} was cancelled, and Slurm did not say within {END_S:.0f} s that it has ended"


def _unrecorded(tag: str, slurm: Slurm) -> JobHandle | None:
    found = [seen for seen in slurm.jobs().values() if seen.comment == tag and seen.phase != "ended"]
    return JobHandle(cluster="", id=found[-1].id, submitted=found[-1].submitted) if found else None
