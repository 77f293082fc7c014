"""Removal of what is kept about a run. Files of the user's training are not touched."""

import contextlib
import os
import shlex
import shutil
from pathlib import Path

from ...act.slurm.commands import Slurm, SlurmError
from ...model.text import plural, typed
from ...spool import read_job
from ...store.history_writer import remove_recent
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, RunUnreadable
from ...views.quantity import size as size_text
from ..errors import CliError, ExitCode
from .output_claim import require_here, trainer_pid


def kept_about(run: RunDirectory) -> str:
    """What would be removed, for the question. Raises CliError if it may not be."""
    if is_held(run.lock):
        raise CliError(ExitCode.OWNED, f"{run.id}: a supervisor watches it; end it first: {typed('stop', run.id)}")
    if (pid := trainer_pid(run)) is not None:
        alive = f"{run.id}: its trainer (pid {pid}) is alive; end it first: {typed('kill', run.id)}"
        raise CliError(ExitCode.OWNED, alive)
    require_here(run, "kill")
    for job in filter(None, map(read_job, run.attempt_folders())):  # the process that followed it may have died
        try:
            seen = None if job.phase == "ended" else Slurm().job(job.handle)
        except SlurmError as error:
            by_hand = f"if that job is over: rm -r {shlex.quote(str(run.path))}"
            raise CliError(ExitCode.FAILED, f"{run.id}: nothing was removed: {error}; {by_hand}") from None
        if seen is not None and seen.phase != "ended":
            raise CliError(ExitCode.OWNED, f"{run.id}: job {seen.id} is {seen.state}; end it first: scancel {seen.id}")
    folders: tuple[str, ...] = ()
    with contextlib.suppress(RunUnreadable):
        folders = run.load_spec().output_folders
    for output in map(Path.resolve, map(Path, folders)):
        if output.is_relative_to(run.path.resolve()):
            raise CliError(ExitCode.FAILED, f"{run.id}: its outputs are in {output}, which would go with it; move them")
    count, size = 0, 0
    for below, _, names in os.walk(run.path):
        sizes = [(Path(below) / name).lstat().st_size for name in names]
        count, size = count + len(sizes), size + sum(sizes)
    attempts = len(run.attempt_folders())
    return (
        f"what is kept about {run.id}: journal, charts, evidence, logs of "
        f"{plural(attempts, 'attempt')} ({plural(count, 'file')}, {size_text(size)}, {run.path})"
    )


def forget(run: RunDirectory) -> None:
    """Remove the run's folder. Raises OSError."""
    with contextlib.suppress(OSError):
        remove_recent(run.history)
    going = run.path.with_name(f".forgotten-{run.path.name}-{os.getpid()}")
    run.path.rename(going)
    shutil.rmtree(going)
