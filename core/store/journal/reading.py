"""Reading a journal: all records, their fold, and the new ones as they are written."""

import contextlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Self

import msgspec

from ...model.fact import JudgeSnapshot
from ...model.record import Record
from ...model.story import RunStory
from .judge_states import with_state
from .lines import parse_record
from .stored_story import StoredStory, is_worth_storing, nothing_stored, read_stored, store


class JournalReading:
    """An iterator over a journal's records. ``skipped`` counts the lines it could not read so far.

    ``after``: what is folded already. ``offset``: end of the whole lines of the file that were read; ``seq``: the
    highest number in them, unknown kinds included.
    """

    def __init__(self, path: Path, after: StoredStory | None = None) -> None:
        self.path = path
        self.after = nothing_stored() if after is None else after
        self.offset, self.seq, self.skipped = self.after.offset, self.after.seq, self.after.skipped
        self._unfinished = b""
        self._records = chain(self.whole_lines(), self.rest())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        return next(self._records)

    def whole_lines(self) -> Iterator[Record]:
        """The records of the run's own file, without a last line that has no end."""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    self._unfinished = line
                    return
                record, seq = parse_record(self.path, line)
                self.offset += len(line)
                self.seq = max(self.seq, seq)
                if record is not None:
                    yield record
                elif line.strip():
                    self.skipped += 1

    def rest(self) -> Iterator[Record]:
        """What follows: a last line without an end."""
        if self._unfinished:
            record, _ = parse_record(self.path, self._unfinished)
            if record is not None:
                yield record
            else:
                self.skipped += 1


def read_journal(path: Path) -> JournalReading:
    """Return the records of a journal in their order; none when the file does not exist.

    A torn last line, damaged lines and kinds of records that this version does not know are skipped and counted.
    Raises JournalTooNew (while iterating) and OSError.
    """
    return JournalReading(path)


def load_story(path: Path) -> RunStory:
    """Fold a whole journal. Raises JournalTooNew, OSError; an absent journal is an empty story."""
    return fold_journal(path).story


def fold_journal(path: Path) -> StoredStory:
    """The story with all records, also that of a last line without an end.

    It is stored again if much of the journal came after what was stored. Raises JournalTooNew, OSError.
    """
    reading = JournalReading(path, read_stored(path))
    began = reading.offset
    whole = _with_whole_lines(reading)
    if is_worth_storing(path, began, whole.offset):
        store(path, whole)
    return whole.with_records(reading.rest())


def latest_snapshot(path: Path) -> JudgeSnapshot | None:
    """Return the newest snapshot of the judge, or None. Raises JournalTooNew, OSError."""
    newest = fold_journal(path).snapshot
    return None if newest is None else with_state(path.parent, newest)


def fold_whole_lines(path: Path) -> StoredStory:
    """The story with the whole lines of the run's own file, as it is stored. Raises JournalTooNew, OSError."""
    return _with_whole_lines(JournalReading(path, read_stored(path)))


def _with_whole_lines(reading: JournalReading) -> StoredStory:
    folded = reading.after.with_records(reading.whole_lines())
    return msgspec.structs.replace(folded, offset=reading.offset, seq=reading.seq, skipped=reading.skipped)


class JournalFollower:
    """New records since the last poll, for screens. Costs one ``stat`` if there are none.

    The file may be missing at first, or be replaced: no record is returned twice. ``after``: what is folded already.
    """

    def __init__(self, path: Path, after: StoredStory | None = None) -> None:
        self.path = path
        self.skipped = 0
        self._offset = 0
        self._seq = 0
        self._identity: tuple[int, int] | None = None
        if after is not None:
            self.skipped, self._offset, self._seq = after.skipped, after.offset, after.story.seq
            with contextlib.suppress(OSError):
                status = path.stat()
                self._identity = (status.st_dev, status.st_ino)

    def poll(self) -> Iterator[Record]:
        """New records, oldest first, read line by line: a journal of a week has hundreds of MB.

        Raises JournalTooNew; a file that cannot be read has no new ones.
        """
        try:
            status = self.path.stat()
            identity = (status.st_dev, status.st_ino)
            if identity != self._identity or status.st_size < self._offset:
                self._identity, self._offset = identity, 0
            if status.st_size == self._offset:
                return
            file = self.path.open("rb")
        except OSError:
            return
        with file:
            file.seek(self._offset)
            while line := _read_line(file):
                record, _ = parse_record(self.path, line)
                if record is None and not line.endswith(b"\n"):
                    return  # still being written, or torn: the next poll decides
                self._offset += len(line)
                if record is None:
                    self.skipped += bool(line.strip())
                elif record.seq > self._seq:
                    self._seq = record.seq
                    yield record


def _read_line(file: IO[bytes]) -> bytes:
    """The next line; empty at the end, and if the file cannot be read further."""
    try:
        return file.readline()
    except OSError:
        return b""
