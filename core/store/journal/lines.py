"""One line of a journal."""

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from ...model.decision import Decision
from ...model.fact import Fact
from ...model.outcome import Outcome
from ...model.record import JOURNAL_VERSION, Record

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a damaged line raises."""
NONE = msgspec.Raw(b"null")
LINES_BY_KIND = 400


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


class _Envelope(msgspec.Struct, kw_only=True):
    """A record with its body as it stands in the file."""

    v: int = JOURNAL_VERSION
    seq: int
    t: float
    wall: float
    fact: msgspec.Raw = NONE
    decision: msgspec.Raw = NONE
    outcome: msgspec.Raw = NONE


class _Kind(msgspec.Struct):
    """What tells the kinds of facts, or those of decisions, apart."""

    fact: str = ""
    decision: str = ""


class RecordDecoder:
    """Decodes lines as records. Raises what is in UNREADABLE. ``by_kind``: how many of them one kind at a time.

    A decoder of whole records learns the fields of all ninety kinds, which takes as long as some hundred lines: until
    then each kind has one of its own, made when it is met. A line that they cannot decode is left to the whole one.
    """

    def __init__(self, by_kind: int = LINES_BY_KIND) -> None:
        self._left = by_kind
        self._whole: Callable[[bytes], Record] | None = None
        self._kinds: dict[str, Callable[[msgspec.Raw], Any]] = {}

    def record(self, line: bytes) -> Record:
        if self._left > 0:
            self._left -= 1
            with contextlib.suppress(*UNREADABLE, KeyError):
                return self._by_kind(line)
        if self._whole is None:
            self._whole = msgspec.json.Decoder(Record).decode
        return self._whole(line)

    def _by_kind(self, line: bytes) -> Record:
        """Raises KeyError for a kind that is not known."""
        found = _envelope()(line)
        fact = None if found.fact == NONE else self._body(found.fact, "fact")
        decision = None if found.decision == NONE else self._body(found.decision, "decision")
        outcome = None if found.outcome == NONE else self._body(found.outcome, "")
        return Record(
            v=found.v, seq=found.seq, t=found.t, wall=found.wall, fact=fact, decision=decision, outcome=outcome
        )

    def _body(self, body: msgspec.Raw, tagged: str) -> Any:
        kind = getattr(_kind()(body), tagged) if tagged else ""
        decode = self._kinds.get(f"{tagged}:{kind}")
        if decode is None:
            decode = msgspec.json.Decoder(_type_of(tagged, kind)).decode
            self._kinds[f"{tagged}:{kind}"] = decode
        return decode(body)


@cache
def _envelope() -> Callable[[bytes], _Envelope]:
    return msgspec.json.Decoder(_Envelope).decode


@cache
def _kind() -> Callable[[msgspec.Raw], _Kind]:
    return msgspec.json.Decoder(_Kind).decode


def _type_of(tagged: str, kind: str) -> type:
    """The type of a fact or decision by its tag (``kind``), or Outcome. Raises KeyError if the tag is not known."""
    return Outcome if not tagged else _types(tagged)[kind]


@cache
def _types(tagged: str) -> dict[str, type]:
    """All facts or all decisions, by their tags."""
    return {each.__struct_config__.tag: each for each in get_args(Fact if tagged == "fact" else Decision)}


_decoder = RecordDecoder()


def parse_record(path: Path, line: bytes) -> tuple[Record | None, int]:
    """One line as a record, or None if it is not one (a cut-off object is never valid JSON), and its number or 0."""
    record: Record | None = None
    head: Record | Head | None = None
    try:
        head = record = _decoder.record(line)
    except UNREADABLE:
        with contextlib.suppress(*UNREADABLE):
            head = decode_head(line)
    if head is None:
        return None, 0
    if head.v > JOURNAL_VERSION:
        raise JournalTooNew(path, head.v)
    return record, head.seq
