"""The journal's writing side in the supervisor: records are on disk before the decisions among them are performed."""

import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ..model.decision import Decision, NotifyPeople
from ..model.observation import Outcome
from ..model.ports.supervision import Clock, JournalWriter
from ..model.record import Entry, Record

log = logging.getLogger(__name__)


class WriteAhead:
    """Writes records to the journal, then passes the decisions among them to ``perform``.

    While the journal cannot be written (a full disk), records and decisions are kept, and nothing is performed but
    notices, which say so.
    """

    def __init__(
        self,
        journal: JournalWriter,
        clock: Clock,
        perform: Callable[[Sequence[Decision]], None],
        on_records: Callable[[Sequence[Record]], None],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._perform = perform
        self._on_records = on_records
        self._unwritten: list[tuple[float, float, Entry | Outcome]] = []
        self._decisions: list[Decision] = []
        self._trouble = ""
        self.blocked = False
        """Whether the journal could not be written the last time."""

    def write(self, t: float, bodies: Iterable[Entry | Outcome] = ()) -> None:
        """Write records that are waiting and these, then perform all decisions among them.

        ``t``: run seconds of ``bodies``.
        """
        wall = self._clock.wall()
        for body in bodies:
            self._unwritten.append((t, wall, body))
            if isinstance(body, Decision):
                self._decisions.append(body)
        if self._write_all():
            decisions, self._decisions = self._decisions, []
        else:
            decisions = [_unwritten(d, self._trouble) for d in self._decisions if isinstance(d, NotifyPeople)]
            self._decisions = [d for d in self._decisions if not isinstance(d, NotifyPeople)]
        self._perform(decisions)

    def close(self) -> None:
        """Flush and close the journal."""
        self._journal.close()

    def _write_all(self) -> bool:
        while self._unwritten:
            t, wall, _ = self._unwritten[0]
            batch = [body for at, clock, body in self._unwritten if (at, clock) == (t, wall)]
            before = self._journal.seq
            try:
                self._on_records(self._journal.append_all(t, wall, batch))
            except OSError as error:
                del self._unwritten[: self._journal.seq - before]
                if not self.blocked:
                    log.warning("the journal cannot be written: %s; decisions wait until it can", error)
                self.blocked = True
                self._trouble = error.strerror or str(error)
                return False
            del self._unwritten[: len(batch)]
        if self.blocked:
            self.blocked = False
            log.warning("the journal can be written again")
        return True


def _unwritten(notice: NotifyPeople, trouble: str) -> NotifyPeople:
    """The notice with a sentence about the journal."""
    said = f"{notice.body}\n(the journal cannot be written: {trouble}; nothing is started or ended until it can)"
    return msgspec.structs.replace(notice, body=said)
