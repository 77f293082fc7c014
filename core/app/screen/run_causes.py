"""Names the cause of an end: a person chooses the class, and the line that ended the log is learned."""

from collections.abc import Sequence
from pathlib import Path

from ...store.run_directory import RunDirectory
from ..errors import CliError

TAIL_BYTES = 1 << 20
"""Of the end of the log, in which the line that ended it stands."""


class RunCauses:
    """Implements the screen's Causes."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def classes(self) -> Sequence[tuple[str, str]]:
        """The failure classes that a line may show: name and title."""
        from ...config.shipped import load_failures

        return [(each.name, each.title) for each in load_failures().classes if each.name not in {"unknown", "success"}]

    def teach(self, attempt: int, failure: str) -> str:
        """Write a pattern of the line that ended this attempt into the project's file; what was written, as a sentence.

        Raises RuntimeError with a sentence.
        """
        from ..logs import diagnose_log, teach
        from ..runs.ended_attempt import project_of
        from ..runs.trainer_log import log_of

        try:
            tail = _end_of(log_of(self._run, attempt))
            folder = project_of(self._run.load_spec())
            path, pattern = teach(failure, diagnose_log([tail], None, lambda _: None, folder=folder), tail, folder)
        except (CliError, ValueError) as error:
            raise RuntimeError(str(error)) from error
        except OSError as error:
            raise RuntimeError(f"{error.filename or 'the log'}: {error.strerror or error}") from error
        return f"{path.name}: {failure} += {pattern}; it counts from the next start of a supervisor on"


def _end_of(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")
