"""Writing a journal. One writer at a time: the holder of the run's lock."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from ...model.decision import Decision, DecisionBase
from ...model.fact import Fact, FactBase, ProgressMade
from ...model.outcome import Outcome
from ...model.record import JOURNAL_VERSION, Entry, Record
from ...model.text.json_line import encode_line
from ..atomic import sync_directory, write_all
from ..temporary_files import clear_leftovers
from .lines import UNREADABLE, VERSION_FIELD, JournalTooNew, decode_head
from .stored_story import read_stored

BLOCK_BYTES = 1 << 20


class JournalWriter:
    """Appends to one journal. One writer at a time: the holder of the run's lock.

    Opening continues the numbering (at least behind ``after``), closes a torn last line, and removes temporary files
    that a killed process left in the run's folder. Raises JournalTooNew, OSError.
    """

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self.path = path
        clear_leftovers(path.parent)
        self._seq, self._torn = _last(path)
        self._seq = max(self._seq, after)
        self._descriptor = _open(path)
        sync_directory(path.parent)

    @property
    def seq(self) -> int:
        """Number of the newest record; 0 before the first."""
        return self._seq

    def append(
        self,
        t: float,
        wall: float,
        *,
        fact: Fact | None = None,
        decision: Decision | None = None,
        outcome: Outcome | None = None,
    ) -> Record:
        """Write one record and wait until the disk has it. Exactly one body. Raises OSError (see ``append_all``)."""
        bodies = [body for body in (fact, decision, outcome) if body is not None]
        if len(bodies) != 1:
            raise ValueError(f"a record has exactly one body, got {len(bodies)}")
        return self.append_all(t, wall, bodies)[0]

    def append_all(self, t: float, wall: float, entries: Iterable[Entry | Outcome]) -> tuple[Record, ...]:
        """Write records in their order with one fsync, and return them.

        Progress alone, twice a minute, is not synced: only a power cut can take it, and the log has it.
        Raises OSError if the disk is full or missing. Some of them may then be in the file as whole lines; the writer
        stays usable and continues the numbering after them.
        """
        bodies = tuple(entries)
        records = tuple(record_of(self._seq + i, t, wall, entry) for i, entry in enumerate(bodies, 1))
        if not records:
            return ()
        data = b"\n" if self._torn else b""
        ends: list[int] = []
        for record in records:
            data += VERSION_FIELD + encode_line(record)[1:]
            ends.append(len(data))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        finally:
            whole = [end for end in ends if end <= written]
            self._seq += len(whole)
            if written:
                self._torn = written not in (*ends, 1 if self._torn else 0)
        if not all(isinstance(body, ProgressMade) for body in bodies):
            os.fsync(self._descriptor)
        return records

    def is_there(self) -> bool:
        """Whether the open file is still the one with this name."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return False

    def write_again(self) -> None:
        """Make the file anew with all that the open one holds: it was deleted, or another one has its name.

        Raises OSError.
        """
        new = self.path.with_name(f".{self.path.name}.again")
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            at = 0
            while block := os.pread(self._descriptor, BLOCK_BYTES, at):
                write_all(descriptor, block)
                at += len(block)
            os.fsync(descriptor)
            new.replace(self.path)
            sync_directory(self.path.parent)
        except OSError:
            os.close(descriptor)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor

    def take_over(self, path: Path, seq: int) -> None:
        """Append the lines of another journal file, whose newest record has the number ``seq``. All of them or none.

        Raises OSError.
        """
        size = os.fstat(self._descriptor).st_size
        try:
            with path.open("rb") as file:
                if self._torn:
                    write_all(self._descriptor, b"\n")
                while block := file.read(BLOCK_BYTES):
                    write_all(self._descriptor, block)
            os.fsync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise
        self._seq, self._torn = max(self._seq, seq), False

    def close(self) -> None:
        """Close the file. Everything appended is already on the disk."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _last(path: Path) -> tuple[int, bool]:
    """Return the highest number in the file, unknown kinds included, and whether its last line lacks its end."""
    stored = read_stored(path)
    seq, line = stored.seq, b"\n"
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return 0, False
    with file:
        file.seek(stored.offset)
        for line in file:
            try:
                head = decode_head(line)
            except UNREADABLE:
                continue
            if head.v > JOURNAL_VERSION:
                raise JournalTooNew(path, head.v)
            seq = max(seq, head.seq)
    return seq, not line.endswith(b"\n")


def last_number(path: Path) -> int:
    """Number of the newest record of a journal that cannot be written; 0 if there is none. Raises JournalTooNew."""
    try:
        return _last(path)[0]
    except OSError:
        return 0


def record_of(seq: int, t: float, wall: float, entry: Entry | Outcome) -> Record:
    if isinstance(entry, FactBase):
        return Record(seq=seq, t=t, wall=wall, fact=entry)
    if isinstance(entry, DecisionBase):
        return Record(seq=seq, t=t, wall=wall, decision=entry)
    return Record(seq=seq, t=t, wall=wall, outcome=entry)
