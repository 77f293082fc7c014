"""The journal of a supervisor, which goes on if its file cannot be written, was deleted or was replaced."""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from ..model.fact import JudgeSnapshot
from ..model.observation import Outcome
from ..model.record import Entry, Record
from .journal import (
    JournalTooNew,
    JournalWriter,
    JudgeStates,
    StoredStory,
    fold_journal,
    is_worth_storing,
    last_number,
    record_of,
)
from .run_directory import RunDirectory

Told = Callable[[str | None], None]
"""Called with a sentence about what is wrong, and with None when it is over."""


class SafeJournal:
    """Implements ``model.ports.JournalWriter``. One writer at a time: the holder of the run's lock.

    If the disk is full, ``free`` (which gives up ballast) is called; if that does not help, OSError is raised, and who
    writes keeps the records. The state of a snapshot that is the last record of a batch goes to a file of its own.
    """

    def __init__(
        self, run: RunDirectory, *, free: Callable[[], bool] = lambda: False, told: Told = lambda _: None
    ) -> None:
        self._run = run
        self._free = free
        self._told = told
        self._troubled = False
        self._main: JournalWriter | None = None
        stored = _stored(run.journal)
        self._states = JudgeStates(run.path, None if stored is None else stored.snapshot)
        self._stored_bytes = 0 if stored is None else stored.offset
        self._last = 0
        try:
            self._opened()
        except OSError:
            self._last = last_number(run.journal)

    @property
    def seq(self) -> int:
        """Number of the newest record; 0 before the first."""
        return self._last if self._main is None else self._main.seq

    def append_all(self, t: float, wall: float, entries: Iterable[Entry | Outcome]) -> tuple[Record, ...]:
        """Append records and fsync. Returns the records. Raises OSError; ``seq`` then tells how many were written."""
        bodies, before = tuple(entries), self.seq
        if bodies and isinstance(bodies[-1], JudgeSnapshot):
            bodies = (*bodies[:-1], self._states.put(bodies[-1], before + len(bodies)))
        try:
            self._append(t, wall, bodies, before)
        except OSError as error:
            if not self._free():
                self._tell(error)
                raise
            try:
                self._append(t, wall, bodies, before)
            except OSError as again:
                self._tell(again)
                raise
        self._tell(None)
        self._states.written()
        if bodies and isinstance(bodies[-1], JudgeSnapshot):
            self._keep_story()
        return tuple(record_of(before + i, t, wall, body) for i, body in enumerate(bodies, 1))

    def _append(self, t: float, wall: float, bodies: tuple[Entry | Outcome, ...], before: int) -> None:
        writer = self._opened()
        writer.append_all(t, wall, bodies[self.seq - before :])

    def _opened(self) -> JournalWriter:
        if self._main is None:
            self._main = JournalWriter(self._run.journal)
        return self._main

    def _tell(self, error: OSError | None) -> None:
        if error is not None:
            self._told(
                f"{self._run.journal} cannot be written ({error.strerror or error}); events are kept in memory, and "
                "nothing is started or ended until it can be: free some space there, or make it writable"
            )
        elif self._troubled:
            self._told(None)
        self._troubled = error is not None

    def look(self) -> None:
        """Write the file again if it was deleted. What it held is still readable through the open descriptor."""
        main = self._main
        if main is None or main.is_there():
            return
        try:
            main.write_again()
        except OSError:
            return
        self._told(f"{main.path} was deleted or replaced; the supervisor wrote it again with all that it held")
        self._told(None)

    def _keep_story(self) -> None:
        """Store the story again if the journal has grown by much, so that readers need not fold it."""
        path = self._run.journal
        with contextlib.suppress(OSError, JournalTooNew):
            size = path.stat().st_size
            if is_worth_storing(path, self._stored_bytes, size):
                self._stored_bytes = fold_journal(path).offset

    def close(self) -> None:
        if self._main is not None:
            self._main.close()


def _stored(journal: Path) -> StoredStory | None:
    """The story, or None if the journal cannot be read."""
    try:
        return fold_journal(journal)
    except (OSError, JournalTooNew):
        return None
