"""A checkpoint that a person names is verified before the resume command is sent to a supervisor, or one is started.

If it is not complete, the run stays as it is, and the answer contains the reason.
"""

from pathlib import Path

from ...model.observation import Command
from ...store.run_directory import RunDirectory


def unfit(run: RunDirectory, command: Command) -> str | None:
    """Why this command's checkpoint cannot be resumed from, as a sentence; None if it can, or none is named."""
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
