"""One line of a journal, and the files that hold a journal's lines."""

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from ...model.record import JOURNAL_VERSION, Record
from ..annex import annexes

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
def _record_decoder() -> Callable[[bytes], Record]:
    """Made at the first record: it learns the fields of all kinds, and most readers find their story stored."""
    return msgspec.json.Decoder(Record).decode


def parse_record(path: Path, line: bytes) -> tuple[Record | None, int]:
    """One line as a record, or None if it is not one (a cut-off object is never valid JSON), and its number or 0."""
    record: Record | None = None
    head: Record | Head | None = None
    try:
        head = record = _record_decoder()(line)
    except UNREADABLE:
        with contextlib.suppress(*UNREADABLE):
            head = decode_head(line)
    if head is None:
        return None, 0
    if head.v > JOURNAL_VERSION:
        raise JournalTooNew(path, head.v)
    return record, head.seq


@cache
def _head_of_fact() -> re.Pattern[bytes]:
    """Of a fact's line as this version writes it: its number, and its kind."""
    return re.compile(rb'\{"v":1,"seq":(\d+),"t":[-+.\de]+,"wall":[-+.\de]+,"fact":\{"fact":"(\w+)"')


def kind_of(line: bytes) -> tuple[str, int]:
    """The kind of a fact and its number, without decoding it; empty and 0 of every other line."""
    found = _head_of_fact().match(line)
    return ("", 0) if found is None else (found[2].decode(), int(found[1]))


def places(path: Path) -> Iterator[Path]:
    """The file, and after it what an annex has of it."""
    yield path
    for annex in annexes(path.parent):
        yield annex / path.name
