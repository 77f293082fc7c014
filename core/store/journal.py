"""The journal: an append-only file of records, one JSON object per line, on the disk before an action is carried out.

Nothing is ever removed from it. A line that was cut off (power cut, full disk) is closed with a newline and stays as a
line that readers skip. ``read_journal`` reads all records, ``JournalFollower`` the new ones, ``load_story`` folds them
(beginning with the stored story).
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from ..model.decision import Decision, DecisionBase
from ..model.fact import Fact, FactBase, JudgeSnapshot
from ..model.observation import Outcome
from ..model.record import JOURNAL_VERSION, Entry, Record
from ..model.story import RunStory
from ..model.text.json_line import encode_line
from .annex import annexes
from .atomic import sync_directory, write_all
from .judge_states import with_state
from .stored_story import StoredStory, is_worth_storing, nothing_stored, read_stored, store

BLOCK_BYTES = 1 << 20

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class JournalTooNew(Exception):  # noqa: N818  named after the condition
    """A newer trainwatch wrote the journal. The message is a sentence for the user."""

    def __init__(self, path: Path, version: int) -> None:
        super().__init__(
            f"{path}: written by a newer trainwatch (journal version {version}, this one reads {JOURNAL_VERSION}); "
            "update trainwatch to open this run"
        )


class _Head(msgspec.Struct):
    """Fields of every record of every version."""

    v: int = JOURNAL_VERSION
    seq: int = 0


_VERSION = f'{{"v":{JOURNAL_VERSION},'.encode()
"""Written in every record: the encoder leaves out fields that equal their default, and the default version changes."""

_decode_head = msgspec.json.Decoder(_Head).decode
_decode_record = msgspec.json.Decoder(Record).decode


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
                record, seq = _parse(self.path, line)
                self.offset += len(line)
                self.seq = max(self.seq, seq)
                if record is not None:
                    yield record
                elif line.strip():
                    self.skipped += 1

    def rest(self) -> Iterator[Record]:
        """What follows: a last line without an end, and the records of an annex."""
        highest = self.seq
        if self._unfinished:
            record, _ = _parse(self.path, self._unfinished)
            if record is not None:
                highest = max(highest, record.seq)
                yield record
            else:
                self.skipped += 1
        for place in _places(self.path):
            if place != self.path:
                for record in self._beside(place):
                    if record.seq > highest:  # the others were moved to the run's own file already
                        highest = record.seq
                        yield record

    def _beside(self, path: Path) -> Iterator[Record]:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            for line in file:
                record, _ = _parse(path, line)
                if record is not None:
                    yield record
                elif line.strip():
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


def latest_snapshot(path: Path) -> JudgeSnapshot | None:
    """Return the newest snapshot of the judge, or None. Raises JournalTooNew, OSError."""
    newest = fold_journal(path).snapshot
    return None if newest is None else with_state(path.parent, newest)


def fold_journal(path: Path) -> StoredStory:
    """The story with all records, also those of a last line without an end and of an annex.

    It is stored again if much of the journal came after what was stored. Raises JournalTooNew, OSError.
    """
    reading = JournalReading(path, read_stored(path))
    began = reading.offset
    whole = _with_whole_lines(reading)
    if is_worth_storing(path, began, whole.offset):
        store(path, whole)
    return whole.with_records(reading.rest())


def fold_whole_lines(path: Path) -> StoredStory:
    """The story with the whole lines of the run's own file, as it is stored. Raises JournalTooNew, OSError."""
    return _with_whole_lines(JournalReading(path, read_stored(path)))


def _with_whole_lines(reading: JournalReading) -> StoredStory:
    folded = reading.after.with_records(reading.whole_lines())
    return msgspec.structs.replace(folded, offset=reading.offset, seq=reading.seq, skipped=reading.skipped)


class JournalWriter:
    """Appends to one journal. One writer at a time: the holder of the run's lock.

    Opening continues the numbering (at least behind ``after``) and closes a torn last line. Raises JournalTooNew,
    OSError.
    """

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self.path = path
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

        Raises OSError if the disk is full or missing. Some of them may then be in the file as whole lines; the writer
        stays usable and continues the numbering after them.
        """
        records = tuple(record_of(self._seq + i, t, wall, entry) for i, entry in enumerate(entries, 1))
        if not records:
            return ()
        data = b"\n" if self._torn else b""
        ends: list[int] = []
        for record in records:
            data += _VERSION + encode_line(record)[1:]
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
        self._beside: dict[Path, JournalFollower] = {}

    def poll(self) -> Iterator[Record]:
        """New records, oldest first, read line by line: a journal of a week has hundreds of MB.

        Raises JournalTooNew; a file that cannot be read has no new ones.
        """
        yield from self._new()
        for place in _places(self.path):
            if place != self.path:
                follower = self._beside.setdefault(place, JournalFollower(place))
                for record in follower.poll():
                    if record.seq > self._seq:
                        self._seq = record.seq
                        yield record

    def _new(self) -> Iterator[Record]:
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
                record, _ = _parse(self.path, line)
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


def _places(path: Path) -> Iterator[Path]:
    """The file, and after it what an annex has of it."""
    yield path
    for annex in annexes(path.parent):
        yield annex / path.name


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _parse(path: Path, line: bytes) -> tuple[Record | None, int]:
    """One line as a record, or None if it is not one (a cut-off object is never valid JSON), and its number or 0."""
    record: Record | None = None
    head: Record | _Head | None = None
    try:
        head = record = _decode_record(line)
    except _UNREADABLE:
        with contextlib.suppress(*_UNREADABLE):
            head = _decode_head(line)
    if head is None:
        return None, 0
    if head.v > JOURNAL_VERSION:
        raise JournalTooNew(path, head.v)
    return record, head.seq


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
                head = _decode_head(line)
            except _UNREADABLE:
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
