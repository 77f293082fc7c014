"""A checkpoint that a person names is proven before anything is asked of a supervisor, or one is started for it.

A run that is stopped or finished stays as it is when the checkpoint is no good, and who asked is told why.
"""

from pathlib import Path

from ...model.observation import Command
from ...store.run_directory import RunDirectory


def unfit(run: RunDirectory, command: Command) -> str | None:
    """Why the checkpoint of this command cannot be gone on from, a sentence; None where it can, or none is named."""
    from ...checkpoints import verify

    if command.checkpoint is None:
        return None
    path = Path(command.checkpoint)
    try:
        found = verify(path, deep=run.load_spec().settings.checkpoints.verify == "deep")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if found.verdict == "complete":
        return None
    return (
        f"{found.name} cannot be resumed from: {found.reason or found.verdict}; nothing was changed "
        f"(others: `trainwatch checkpoints list {path.parent}`)"
    )
