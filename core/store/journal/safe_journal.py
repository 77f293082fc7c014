"""The journal of a supervisor, which goes on if its file cannot be written, was deleted or was replaced."""

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ...model.fact import JudgeSnapshot
from ...model.observation import Outcome
from ...model.record import Entry, Record
from ..annex import annexes, make_annex
from ..run_directory import RunDirectory
from .judge_states import JudgeStates
from .lines import JournalTooNew
from .reading import fold_journal
from .stored_story import StoredStory, is_worth_storing
from .writing import JournalWriter, last_number, record_of

BACK_S = 10.0
"""Period of trying to write the run's own file again."""
BLOCK_BYTES = 1 << 20

Told = Callable[[str | None], None]
"""Called with a sentence about what is wrong, and with None when it is over."""


class SafeJournal:
    """Implements ``model.ports.JournalWriter``. One writer at a time: the holder of the run's lock.

    If the disk is full, ``free`` (which gives up ballast) is called; if that does not help, records go to the annex,
    and back when the file can be written again. Raises OSError only if nothing can be written anywhere. The state of a
    snapshot that is the last record of a batch goes to a file of its own.
    """

    def __init__(
        self, run: RunDirectory, *, free: Callable[[], bool] = lambda: False, told: Told = lambda _: None
    ) -> None:
        self._run = run
        self._free = free
        self._told = told
        self._annex: JournalWriter | None = None
        self._main: JournalWriter | None = None
        self._next_back = 0.0
        stored = _stored(run.journal)
        self._states = JudgeStates(run.path, None if stored is None else stored.snapshot)
        self._stored_bytes = 0 if stored is None else stored.offset
        with contextlib.suppress(OSError):
            self._main = JournalWriter(run.journal)
        if self._main is None and free():
            with contextlib.suppress(OSError):
                self._main = JournalWriter(run.journal)
        seq = self._main.seq if self._main is not None else last_number(run.journal)
        left = next((a for a in annexes(run.path) if (a / run.journal.name).exists()), None)
        if left is not None or self._main is None:
            self._annex = JournalWriter((left or make_annex(run.path)) / run.journal.name, after=seq)
            self._come_back()

    @property
    def seq(self) -> int:
        """Number of the newest record; 0 before the first."""
        return self._annex.seq if self._annex is not None else self._main.seq if self._main is not None else 0

    def append_all(self, t: float, wall: float, entries: Iterable[Entry | Outcome]) -> tuple[Record, ...]:
        """Append records and fsync; in the annex if the run's own disk cannot be written. Returns the records."""
        bodies, before = tuple(entries), self.seq
        if self._annex is not None and time.monotonic() >= self._next_back:
            self._come_back()
        if bodies and isinstance(bodies[-1], JudgeSnapshot) and self._annex is None:
            bodies = (*bodies[:-1], self._states.put(bodies[-1], before + len(bodies)))
        trouble: OSError | None = None
        for place in (self._here, self._after_freeing, self._in_annex):
            try:
                writer = place(trouble)
                if writer is None:
                    continue
                writer.append_all(t, wall, bodies[self.seq - before :])
            except OSError as error:
                trouble = error
                continue
            self._states.written()
            if bodies and isinstance(bodies[-1], JudgeSnapshot):
                self._keep_story()
            return tuple(record_of(before + i, t, wall, body) for i, body in enumerate(bodies, 1))
        raise trouble if trouble is not None else OSError("the journal is closed")

    def look(self) -> None:
        """Write the file again if it was deleted. What it held is still readable through the open descriptor."""
        if self._annex is not None and time.monotonic() >= self._next_back:
            self._come_back()
        main = self._main
        if main is None or main.is_there():
            return
        try:
            main.write_again()
        except OSError:
            self._next_back = time.monotonic() + BACK_S
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
        for writer in (self._main, self._annex):
            if writer is not None:
                writer.close()

    def _here(self, _trouble: OSError | None) -> JournalWriter | None:
        return self._annex or self._main

    def _after_freeing(self, _trouble: OSError | None) -> JournalWriter | None:
        return self._main if self._annex is None and self._free() else None

    def _in_annex(self, trouble: OSError | None) -> JournalWriter | None:
        if self._annex is not None:
            return None
        folder = make_annex(self._run.path)
        self._annex = JournalWriter(folder / self._run.journal.name, after=self.seq)
        self._next_back = time.monotonic() + BACK_S
        why = trouble.strerror if trouble is not None else "unknown"
        self._told(
            f"{self._run.journal} cannot be written ({why}); events go to {folder} until it can: free some space "
            "there, or make it writable"
        )
        return self._annex

    def _come_back(self) -> None:
        """Move what is in the annex to the run's own file."""
        self._next_back = time.monotonic() + BACK_S
        annex = self._annex
        assert annex is not None
        try:
            if self._main is None:
                self._main = JournalWriter(self._run.journal)
            elif not self._main.is_there():
                self._main.write_again()
            self._main.take_over(annex.path, annex.seq)
        except OSError:
            return
        annex.close()
        self._annex = None
        with contextlib.suppress(OSError):
            annex.path.unlink()
            annex.path.parent.rmdir()
        self._told(None)


def _stored(journal: Path) -> StoredStory | None:
    """The story, or None if the journal cannot be read."""
    try:
        return fold_journal(journal)
    except (OSError, JournalTooNew):
        return None
