"""The journal: an append-only file of records, one JSON object per line, on the disk before an action is carried out.

Nothing is ever removed from it. A line that was cut off (power cut, full disk) is closed with a newline and stays as a
line that readers skip. ``read_journal`` reads all records, ``JournalFollower`` the new ones, ``load_story`` folds them
(beginning with the stored story).
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Self
from zlib import crc32

import msgspec

from trainwatch import __version__

from ..atomic_files import is_file_at, opened
from ..model import fact, story, story_fold
from ..model.decision import JOURNAL_VERSION, DecisionBase, Entry, Record
from ..model.fact import FactBase, JudgeSnapshot, Outcome, ProgressMade
from ..model.json_line import encode_line
from ..model.story import RunStory
from ..model.story_fold import apply_all, told_one_by_one
from ..processes import status_of
from .home import clear_leftovers, sync_directory, write_all, write_atomically

# One line of a journal.

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a damaged line raises."""


class JournalTooNew(Exception):  # noqa: N818  named after the condition
    """A newer trainwatch wrote the journal. The message is a sentence for the user."""

    def __init__(self, path: Path, version: int) -> None:
        super().__init__(
            f"{path}: written by a newer trainwatch (journal version {version}, this one reads {JOURNAL_VERSION}); "
            "update trainwatch to open this run"
        )


class Head(msgspec.Struct):
    """Fields of every record of every version."""

    v: int = JOURNAL_VERSION
    seq: int = 0


VERSION_FIELD = f'{{"v":{JOURNAL_VERSION},'.encode()
"""Written in every record: the encoder leaves out fields that equal their default, and the default version changes."""

decode_head = msgspec.json.Decoder(Head).decode


@cache
def _decoder() -> Callable[[bytes], Record]:
    return msgspec.json.Decoder(Record).decode


def parse_record(path: Path, line: bytes) -> tuple[Record | None, int]:
    """One line as a record, or None if it is not one (a cut-off object is never valid JSON), and its number or 0."""
    record: Record | None = None
    head: Record | Head | None = None
    try:
        head = record = _decoder()(line)
    except UNREADABLE:
        with contextlib.suppress(*UNREADABLE):
            head = decode_head(line)
    if head is None:
        return None, 0
    if head.v > JOURNAL_VERSION:
        raise JournalTooNew(path, head.v)
    return record, head.seq


# The judge's newest states, in two files beside the journal: they are large, and only the newest one is needed.
#
# A record of the journal names its state by the checksum of the file's content. The file that the newest record does
# not name is written over, so a kill or a power cut between the two writes leaves the older pair whole.

NAMES = ("judge-a.json", "judge-b.json")


class JudgeStates:
    """Writes the states of one run. ``newest``: the newest snapshot in the journal."""

    def __init__(self, folder: Path, newest: JudgeSnapshot | None) -> None:
        self._folder = folder
        name = newest.name if newest is not None else ""
        self._kept = next((each for each in NAMES if _content(folder / each, name) is not None), NAMES[1])
        self._put = self._kept

    def put(self, snapshot: JudgeSnapshot, seq: int) -> JudgeSnapshot:
        """Write the state, and return the record for the journal, which names it; ``seq``: the number of that record.

        The snapshot itself is returned if the file cannot be written: the journal then holds all of it.
        """
        payload = encode_line(snapshot.state)
        place = next(each for each in NAMES if each != self._kept)
        try:
            with opened(self._folder / place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
                write_all(descriptor, payload)
                os.fdatasync(descriptor)
        except OSError:
            return snapshot
        self._put = place
        return JudgeSnapshot(version=snapshot.version, state={}, name=f"{seq}-{crc32(payload):08x}")

    def written(self) -> None:
        """The journal has the record of the state that was put last."""
        self._kept = self._put


def with_state(folder: Path, snapshot: JudgeSnapshot) -> JudgeSnapshot | None:
    """The snapshot with its state from the file that it names; None if that is lost or damaged."""
    if not snapshot.name:
        return snapshot
    for each in NAMES:
        payload = _content(folder / each, snapshot.name)
        if payload is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                state = msgspec.json.decode(payload, type=dict[str, object])
                return JudgeSnapshot(version=snapshot.version, state=state, name=snapshot.name)
    return None


def _content(path: Path, name: str) -> bytes | None:
    """The content of the file if it has this name."""
    checksum = name.partition("-")[2]
    try:
        payload = path.read_bytes()
    except OSError:
        return None
    return payload if f"{crc32(payload):08x}" == checksum else None


# The story of a journal, kept in a file beside it, so that a reader folds only the records that came after.
#
# The journal remains authoritative. The file is rebuilt when it is missing, damaged, or was made by another fold or
# from other records.

NAME = "story.bin"
MARK_BYTES = 128
"""End of the part of the journal that is folded: the same bytes must be there when the file is used."""
WORTH_BYTES = 64 << 10
"""Bytes of journal that are folded anew rather than kept."""


class StoredStory(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The content of the file.

    ``fold``: of the code that made it. ``offset``: bytes of the journal that are folded, all whole lines. ``seq``: the
    highest number in them, also of records of unknown kinds. ``skipped``: lines that are no records.
    """

    fold: int
    offset: int = 0
    mark: bytes = b""
    seq: int = 0
    skipped: int = 0
    story: RunStory = RunStory()
    snapshot: JudgeSnapshot | None = None
    """The newest one, as the journal has it."""
    told: tuple[bytes, ...] = ()
    """Records that a report tells one by one, encoded in several parts: most readers need none of them."""
    told_since: tuple[Record, ...] = ()
    """Those of records that were folded after the file was read."""

    def with_records(self, records: Iterable[Record]) -> "StoredStory":
        """The same with more records; ``offset`` stays."""
        snapshot, untold, told = self.snapshot, set[int](), [*self.told_since]

        def seen() -> Iterator[Record]:
            nonlocal snapshot
            for record in records:
                if isinstance(record.fact, JudgeSnapshot):
                    snapshot = record.fact
                if told_one_by_one(record, untold):
                    told.append(record)
                yield record

        folded = apply_all(self.story, seen())
        return msgspec.structs.replace(self, story=folded, snapshot=snapshot, told_since=tuple(told))

    def particulars(self) -> tuple[Record, ...]:
        """The records that a report tells one by one, oldest first."""
        decode = msgspec.msgpack.Decoder(tuple[Record, ...]).decode
        return (*chain.from_iterable(map(decode, self.told)), *self.told_since)

    def packed(self) -> "StoredStory":
        """The same with all particulars encoded. Raises what the encoder raises."""
        if not self.told_since:
            return self
        return msgspec.structs.replace(self, told=(*self.told, _encode(self.told_since)), told_since=())


_encode = msgspec.msgpack.Encoder().encode


def nothing_stored() -> StoredStory:
    return StoredStory(fold=_fold())


def read_stored(journal: Path) -> StoredStory:
    """The stored story of this journal; an empty one if there is none that fits it. Raises nothing."""
    try:
        data = journal.with_name(NAME).read_bytes()
        if crc32(memoryview(data)[4:]).to_bytes(4, "big") != data[:4]:
            return nothing_stored()
        stored = msgspec.msgpack.decode(memoryview(data)[4:], type=StoredStory)
        with journal.open("rb") as file:
            file.seek(stored.offset - len(stored.mark))
            fits = file.read(len(stored.mark)) == stored.mark
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return nothing_stored()
    return stored if fits and stored.fold == _fold() else nothing_stored()


def is_worth_storing(journal: Path, stored: int, size: int) -> bool:
    """Whether a journal of ``size`` bytes has so many more than ``stored`` that its story should be stored again.

    In proportion to the file that is then written, so that all of these writes together stay in proportion to the
    journal.
    """
    status = status_of(journal.with_name(NAME))
    return size - stored > max(WORTH_BYTES, 0 if status is None else status.st_size // 2)


def store(journal: Path, stored: StoredStory) -> None:
    """Replace the file. Does nothing if it cannot be written, or if the journal is another user's."""
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
        if journal.stat().st_uid != os.geteuid():
            return
        with journal.open("rb") as file:
            file.seek(max(0, stored.offset - MARK_BYTES))
            mark = file.read(stored.offset - file.tell())
        payload = _encode(msgspec.structs.replace(stored.packed(), mark=mark))
        clear_leftovers(journal.parent)
        write_atomically(journal.with_name(NAME), crc32(payload).to_bytes(4, "big") + payload, durable=False)


@cache
def _fold() -> int:
    """Checksum of the version and of the code that folds: a story that other code stored is not used."""
    code = __version__.encode()
    for module in (story, story_fold, fact):
        with contextlib.suppress(OSError, TypeError):  # no source beside the byte code: the version must do
            code += Path(str(module.__file__)).read_bytes()
    return crc32(code, JOURNAL_VERSION)


# Reading a journal: all records, their fold, and the new ones as they are written.


class JournalReading:
    """A journal's records in their order, read once; none if the file does not exist.

    A torn last line, damaged lines and kinds of records that this version does not know are skipped, and ``skipped``
    counts them so far. Raises JournalTooNew (while iterating) and OSError.
    ``after``: what is folded already. ``offset``: end of the whole lines of the file that were read; ``seq``: the
    highest number in them, unknown kinds included.
    """

    def __init__(self, path: Path, after: StoredStory | None = None) -> None:
        self.path = path
        self.after = nothing_stored() if after is None else after
        self.offset, self.seq, self.skipped = self.after.offset, self.after.seq, self.after.skipped
        self.unfinished = b""
        """A last line without an end."""

    def __iter__(self) -> Iterator[Record]:
        return chain(self.whole_lines(), self.rest())

    def whole_lines(self) -> Iterator[Record]:
        """The records of the run's own file from ``offset`` on, without a last line that has no end."""
        self.unfinished = b""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    self.unfinished = line
                    return
                record, seq = parse_record(self.path, line)
                self.offset += len(line)
                self.seq = max(self.seq, seq)
                if record is not None:
                    yield record
                elif line.strip():
                    self.skipped += 1

    def rest(self, *, final: bool = True) -> Iterator[Record]:
        """What follows: a last line without an end. Not ``final``: one that is no record is still being written."""
        if self.unfinished:
            record, seq = parse_record(self.path, self.unfinished)
            self.seq = max(self.seq, seq)
            if record is not None:
                self.offset += len(self.unfinished)
                yield record
            else:
                self.skipped += final


read_journal = JournalReading


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
        self._reading = JournalReading(path, after)
        self._seq = 0 if after is None else after.story.seq
        self._identity: tuple[int, int] | None = None
        if after is not None and (status := status_of(path)) is not None:
            self._identity = (status.st_dev, status.st_ino)

    @property
    def skipped(self) -> int:
        return self._reading.skipped

    def poll(self) -> Iterator[Record]:
        """New records, oldest first, read line by line: a journal of a week has hundreds of MB.

        Raises JournalTooNew; a file that cannot be read has no new ones.
        """
        reading, status = self._reading, status_of(self.path)
        if status is None:
            return
        identity = (status.st_dev, status.st_ino)
        if identity != self._identity or status.st_size < reading.offset:
            self._identity, reading.offset = identity, 0
        if status.st_size == reading.offset:
            return
        with contextlib.suppress(OSError):
            for record in chain(reading.whole_lines(), reading.rest(final=False)):
                if record.seq > self._seq:
                    self._seq = record.seq
                    yield record


# Writing a journal. One writer at a time: the holder of the run's lock.

BLOCK_BYTES = 1 << 20


class JournalWriter:
    """Appends to one journal. One writer at a time: the holder of the run's lock.

    Opening continues the numbering, closes a torn last line, and removes temporary files
    that a killed process left in the run's folder. Raises JournalTooNew, OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seq, self._torn, self._descriptor = 0, False, -1
        self.open()

    def open(self) -> None:
        """Open the file if it is not open."""
        if self._descriptor < 0:
            clear_leftovers(self.path.parent)
            reading = JournalReading(self.path, read_stored(self.path))
            for _ in reading:
                pass
            self._seq, self._torn = reading.seq, bool(reading.unfinished)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            sync_directory(self.path.parent)

    @property
    def seq(self) -> int:
        return self._seq

    def append_all(self, t: float, wall: float, entries: Iterable[Entry | Outcome]) -> tuple[Record, ...]:
        """Write records in their order with one fsync, and return them.

        Progress alone, twice a minute, is not synced: only a power cut can take it, and the log has it.
        Raises OSError if the disk is full or missing. Some of them may then be in the file as whole lines; the writer
        stays usable and continues the numbering after them. What could not be synced is taken back: over a network the
        disk refuses only then.
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
        written, begin = 0, os.fstat(self._descriptor).st_size
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        finally:
            whole = [end for end in ends if end <= written]
            self._seq += len(whole)
            if written:
                self._torn = written not in (*ends, 1 if self._torn else 0)
        try:
            if not all(isinstance(body, ProgressMade) for body in bodies):
                os.fsync(self._descriptor)
        except OSError:
            self._seq, self._torn = self._seq - len(records), True
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, begin)
            raise
        return records

    def write_again(self) -> bool:
        """Make the file anew with all that the open one holds, if it was deleted or another one has its name.

        Returns whether that was needed. Raises OSError.
        """
        if self._descriptor < 0 or is_file_at(self._descriptor, self.path):
            return False
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
        return True

    def close(self) -> None:
        """Close the file. Everything appended is already on the disk."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def record_of(seq: int, t: float, wall: float, entry: Entry | Outcome) -> Record:
    if isinstance(entry, FactBase):
        return Record(seq=seq, t=t, wall=wall, fact=entry)
    if isinstance(entry, DecisionBase):
        return Record(seq=seq, t=t, wall=wall, decision=entry)
    return Record(seq=seq, t=t, wall=wall, outcome=entry)
