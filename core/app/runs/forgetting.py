"""Removal of what is kept about a run. Files of the user's training are not touched."""

import os
import shutil
from pathlib import Path

from ...act.launch.attempt_records import read_start
from ...model.text.suggestion import typed
from ...sense.process.process_identity import is_alive
from ...store.annex import annexes
from ...store.lock import is_held
from ...store.recent_trace import recent_trace_folder
from ...store.run_directory import RunDirectory, RunUnreadable
from ...views.quantity import size as size_text
from ..errors import CliError, ExitCode


def kept_about(run: RunDirectory) -> str:
    """What would be removed, for the question. Raises CliError if it may not be."""
    if is_held(run.lock):
        raise CliError(ExitCode.OWNED, f"{run.id}: a supervisor watches it; end it first: {typed('stop', run.id)}")
    for folder in run.attempt_folders():
        start = read_start(folder)
        if start is not None and is_alive(start.trainer):
            raise CliError(
                ExitCode.OWNED, f"{run.id}: its trainer (pid {start.trainer.pid}) is alive; end it first: "
                f"{typed('kill', run.id)}"
            )  # fmt: skip
    for output in _outputs(run):
        if any(output.is_relative_to(place.resolve()) for place in _places(run)):
            raise CliError(ExitCode.FAILED, f"{run.id}: its outputs are in {output}, which would go with it; move them")
    count, size = 0, 0
    for place in _places(run):
        for below, _, names in os.walk(place):
            sizes = [(Path(below) / name).lstat().st_size for name in names]
            count, size = count + len(sizes), size + sum(sizes)
    attempts = len(run.attempt_folders())
    return (
        f"what is kept about {run.id}: journal, charts, evidence, logs of {attempts} "
        f"attempt{'' if attempts == 1 else 's'} ({count} files, {size_text(size)}, {run.path})"
    )


def forget(run: RunDirectory) -> None:
    """Remove the run's folder, its annexes and what is in memory of its trace. Raises OSError."""
    for place in _places(run):
        going = place.with_name(f".forgotten-{place.name}-{os.getpid()}")
        place.rename(going)
        shutil.rmtree(going)


def _places(run: RunDirectory) -> list[Path]:
    memory = recent_trace_folder(run.trace)  # what a killed supervisor left there
    return [*annexes(run.path), *([memory] if memory is not None and memory.is_dir() else []), run.path]


def _outputs(run: RunDirectory) -> list[Path]:
    try:
        return [Path(folder).resolve() for folder in run.load_spec().output_folders]
    except RunUnreadable:
        return []
