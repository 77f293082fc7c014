"""The story of a journal, kept in a file beside it, so that a reader folds only the records that came after.

The journal remains authoritative. The file is rebuilt when it is missing, damaged, or was made by another fold or from
other records.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

import msgspec

from trainwatch import __version__

from ...model import fact, outcome, story, story_fold
from ...model.checkpoints import checkpoint_fold
from ...model.fact import JudgeSnapshot
from ...model.record import JOURNAL_VERSION, Record
from ...model.report import particulars
from ...model.report.particulars import Particulars, ParticularsFold, joined
from ...model.story import RunStory
from ...model.story_fold import apply_all
from ..atomic import write_all
from ..temporary_files import clear_leftovers, temporary_beside

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
    """The particulars of the folded records, encoded in several parts: most readers need none of them."""
    told_since: Particulars = Particulars()
    """Those of records that were folded after the file was read."""

    def with_records(self, records: Iterable[Record]) -> "StoredStory":
        """The same with more records; ``offset`` stays."""
        snapshot, told = self.snapshot, ParticularsFold()

        def seen() -> Iterator[Record]:
            nonlocal snapshot
            for record in records:
                if isinstance(record.fact, JudgeSnapshot):
                    snapshot = record.fact
                told.add(record)
                yield record

        folded = apply_all(self.story, seen())
        since = joined((self.told_since, told.found()))
        return msgspec.structs.replace(self, story=folded, snapshot=snapshot, told_since=since)

    def particulars(self) -> Particulars:
        """What a report tells of the records one by one."""
        decode = msgspec.msgpack.Decoder(Particulars).decode
        return joined((*map(decode, self.told), self.told_since))

    def packed(self) -> "StoredStory":
        """The same with all particulars encoded. Raises what the encoder raises."""
        if not self.told_since:
            return self
        return msgspec.structs.replace(self, told=(*self.told, _encode(self.told_since)), told_since=Particulars())


_encode = msgspec.msgpack.Encoder().encode


def nothing_stored() -> StoredStory:
    """The story of an empty journal."""
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
    try:
        written = journal.with_name(NAME).stat().st_size
    except OSError:
        written = 0
    return size - stored > max(WORTH_BYTES, written // 2)


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
        temporary = temporary_beside(journal.with_name(NAME))
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                write_all(descriptor, crc32(payload).to_bytes(4, "big") + payload)
            finally:
                os.close(descriptor)
            temporary.replace(journal.with_name(NAME))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


@cache
def _fold() -> int:
    """Checksum of the version and of the code that folds: a story that other code stored is not used."""
    code = __version__.encode()
    for module in (story, story_fold, fact, outcome, particulars, checkpoint_fold):
        with contextlib.suppress(OSError, TypeError):  # no source beside the byte code: the version must do
            code += Path(str(module.__file__)).read_bytes()
    return crc32(code, JOURNAL_VERSION)
