"""Copies of damaged checkpoints that stand where a new run begins: its trainer may write over them."""

from collections.abc import Sequence
from pathlib import Path

from ...checkpoints import copy_aside, folder_for_copies
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode


def keep_before(paths: Sequence[str], output_dir: Path, run: RunDirectory) -> str:
    """Copy them beside the output folder, or into the run's own folder. Returns a clause that says where.

    Raises CliError (exit code 4) if it cannot be done: nothing may be written over then.
    """
    names = ", ".join(Path(path).name for path in paths)
    try:
        made = copy_aside([Path(path) for path in paths], folder_for_copies(output_dir, run.path / "kept"))
    except OSError as error:
        why = f"{error.filename or output_dir}: {error.strerror or error}"
    else:
        if not made.refused:
            return f"kept a copy of {names} in {made.folder}"
        why = made.refused
    raise CliError(
        ExitCode.OWNED,
        f"{names} cannot be copied aside, and a start from the beginning may write over it: {why}; nothing was "
        "started: move it away, or begin with --fresh",
    )
