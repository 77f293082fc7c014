"""A checkpoint that a person names is verified before the resume command is sent to a supervisor, or one is started.

If it is damaged, the run stays as it is, and the answer contains the reason. What is not understood is for the trainer
to read: a person who names it decides.
"""

from pathlib import Path

from ...model.observation import Command
from ...model.run import RunSpec
from ...model.text.suggestion import typed
from ...store.run_directory import RunDirectory


def unfit(run: RunDirectory, command: Command) -> str | None:
    """Why this command's checkpoint cannot be resumed from, as a sentence; None if it can, or none is named."""
    return None if command.checkpoint is None else why_unfit(run.load_spec(), Path(command.checkpoint))


def why_unfit(spec: RunSpec, path: Path) -> str | None:
    """The same for a run and a path."""
    from ...checkpoints import verify

    try:
        found = verify(path, deep=spec.settings.checkpoints.verify == "deep")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if found.verdict == "complete" or not found.understood:
        return None
    return (
        f"{found.name} cannot be resumed from: {found.reason or found.verdict}; nothing was changed "
        f"(others: `{typed('checkpoints list', str(path.parent))}`)"
    )
