"""The outline of a journal: its story without most of the old checkpoints, for what does not list them.

It says the same as the whole story about the run as it is now. Records about a checkpoint that it leaves out need the
whole story; those are rare.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from zlib import crc32

import msgspec

from ...model.checkpoints.left_out import counts_by_loss, names_newest, newer_of, outline
from ...model.fact import CheckpointEvaluated, CheckpointKnown, JudgeSnapshot
from ...model.record import Record
from ...model.story import RunStory
from .judge_states import with_state
from .reading import JournalReading
from .stored_story import OUTLINE, WORTH_BYTES, StoredStory, is_worth_storing, read_stored, store


class _NeedsAll(Exception):  # noqa: N818  named after the condition
    """What an outline leaves out matters."""


def load_outline(path: Path) -> RunStory:
    """The story of a journal; ``left_out`` counts the checkpoints that it does not name. Raises as ``load_story``."""
    return fold_outline(path).story


def latest_snapshot(path: Path) -> JudgeSnapshot | None:
    """Return the newest snapshot of the judge, or None. Raises JournalTooNew, OSError."""
    newest = fold_outline(path).snapshot
    return None if newest is None else with_state(path.parent, newest)


def fold_outline(path: Path) -> StoredStory:
    """The outline with all records, also those of a last line without an end and of an annex.

    It is stored again if much of the journal came after what was stored. Raises JournalTooNew, OSError.
    """
    stored = read_stored(path, OUTLINE)
    if not stored.offset:
        return _from_whole_story(path)
    reading = JournalReading(path, stored)
    known = _only_named(stored.left_out)
    try:
        whole = stored.with_records(known(reading.whole_lines()))
        whole = msgspec.structs.replace(whole, offset=reading.offset, seq=reading.seq, skipped=reading.skipped)
        found = whole.with_records(known(reading.rest()))
    except _NeedsAll:
        return _from_whole_story(path)
    if found.story.left_out and (counts_by_loss(found.story) or not names_newest(found.story, found.newest_left_out)):
        return _from_whole_story(path)
    if is_worth_storing(path, stored.offset, whole.offset, OUTLINE):
        store(path, _shortened(whole), OUTLINE)
    return found


def _from_whole_story(path: Path) -> StoredStory:
    reading = JournalReading(path, read_stored(path))
    began = reading.offset
    whole = reading.after.with_records(reading.whole_lines())
    whole = msgspec.structs.replace(whole, offset=reading.offset, seq=reading.seq, skipped=reading.skipped)
    if is_worth_storing(path, began, whole.offset):
        store(path, whole)
    short = _shortened(whole)
    if short.left_out and whole.offset > WORTH_BYTES:
        store(path, short, OUTLINE)
    return whole.with_records(reading.rest())


def _shortened(whole: StoredStory) -> StoredStory:
    story, gone = outline(whole.story)
    numbers = array("I", (_number(each.path) for each in gone))
    return msgspec.structs.replace(
        whole,
        story=story,
        left_out=whole.left_out + numbers.tobytes(),
        newest_left_out=newer_of(whole.newest_left_out, gone),
    )


def _number(path: str) -> int:
    return crc32(path.encode(errors="surrogatepass"))


def _only_named(left_out: bytes) -> Callable[[Iterable[Record]], Iterator[Record]]:
    """Passes records on. Raises _NeedsAll at one about a checkpoint that is left out (or seems to be: by CRC-32)."""
    numbers: frozenset[int] | None = None

    def checked(records: Iterable[Record]) -> Iterator[Record]:
        nonlocal numbers
        for record in records:
            path = None
            if isinstance(record.fact, CheckpointKnown):
                path = record.fact.checkpoint.path
            elif isinstance(record.fact, CheckpointEvaluated):
                path = record.fact.evaluation.path
            if path is not None and left_out:
                if numbers is None:
                    numbers = frozenset(array("I", left_out))
                if _number(path) in numbers:
                    raise _NeedsAll
            yield record

    return checked
