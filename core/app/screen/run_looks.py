"""When a person last looked at a run, for the screen, and what happened since."""

from ...model.summary import Look, Summary
from ...store.last_look import read_look, write_look
from ...store.run_directory import RunDirectory, RunUnreadable


class RunLooks:
    """Implements the screen's Looks."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def last(self) -> Look | None:
        return read_look(self._run.last_look)

    def keep(self, look: Look) -> None:
        write_look(self._run.last_look, look)

    def summary(self, since_wall: float | None) -> Summary:
        """Reads the journal. Raises RuntimeError with a sentence."""
        from ...store.journal import JournalTooNew
        from ..runs.report.sources import summary_of

        try:
            return summary_of(self._run, since_wall)
        except (JournalTooNew, RunUnreadable, OSError) as error:
            raise RuntimeError(str(error)) from error
