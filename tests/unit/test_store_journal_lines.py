"""Lines of a journal are decoded one kind at a time at first, then all kinds at once: both say the same."""

import random
from pathlib import Path
from typing import get_args

import pytest

from trainwatch.core.model.decision import Decision
from trainwatch.core.model.fact import Fact
from trainwatch.core.model.record import Record
from trainwatch.core.store.journal import UNREADABLE, RecordDecoder

RELEASE = Path(__file__).parent.parent / "fixtures" / "release"
HEAD = b'{"v":1,"seq":1,"t":1,"wall":2.5,'


def read(decoder: RecordDecoder, line: bytes) -> Record | str:
    try:
        return decoder.record(line)
    except UNREADABLE as error:
        return str(error)


def both(line: bytes) -> tuple[Record | str, Record | str]:
    return read(RecordDecoder(by_kind=1), line), read(RecordDecoder(by_kind=0), line)


def test_each_kind_says_the_same_both_ways() -> None:
    lines = (RELEASE / "every_kind.jsonl").read_bytes().splitlines()
    seen = [both(line) for line in lines]
    assert all(isinstance(one, Record) and one == other for one, other in seen)


def test_the_kinds_of_a_line_are_those_of_a_record() -> None:
    for field, kinds in (("fact", get_args(Fact)), ("decision", get_args(Decision))):
        for kind in kinds:
            one, other = both(HEAD + f'"{field}":{{"{field}":"{kind.__struct_config__.tag}"}}}}'.encode())
            assert one == other


@pytest.mark.parametrize(
    "line",
    [
        b'{"v":1,"seq":1,"t":1}',
        HEAD + b'"fact":null,"decision":null,"outcome":null}',
        HEAD + b'"fact":{"fact":"of tomorrow"}}',
        HEAD + b'"fact":{"text":"without a kind"}}',
        HEAD + b'"fact":{"fact":"note","text":7}}',
        HEAD + b'"fact":[]}',
        HEAD + b'"fact":{"fact":"note","text":"a"},"decision":{"decision":"give_up","id":1,"reason":""}}',
        HEAD + b'"outcome":{"kind":"outcome","t":1,"decision":4,"action":"stop_attempt","ok":true}}',
        HEAD + b'"outcome":{"kind":"tick","t":1}}',
        HEAD + b'"fact":{"fact":"note","text":"\xff"}}',
        HEAD + b'"fact":{"fact":"note","text":"a","other":"\xff"}} ',
    ],
)
def test_an_odd_line_says_the_same_both_ways(line: bytes) -> None:
    one, other = both(line)
    assert one == other


def test_a_damaged_line_says_the_same_both_ways() -> None:
    dice = random.Random(5)
    for line in (RELEASE / "every_kind.jsonl").read_bytes().splitlines():
        for _ in range(20):
            at, much = dice.randrange(len(line)), dice.randrange(1, 4)
            one, other = both(line[:at] + dice.randbytes(dice.randrange(2)) + line[at + much :])
            assert one == other
