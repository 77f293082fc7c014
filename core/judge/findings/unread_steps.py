"""Lines of a log in which no step is read although the trainer saves checkpoints, and how their form could be told.

Of each kind of line (the same text, other numbers) the newest one is kept. A whole number that rises from line to line
looks like a counter. It only serves to say what could be read: nothing is concluded from it, for it may count anything.

Source: a script that prints ``it 283 of 2400  L=3.603`` stayed "starting" for as long as it ran, and nothing said why.
Known false alarm: a trainer that saves more often than it prints a step; it is taken back at its first step.
"""

import re

import msgspec

from ...model.patterns import LazyPattern
from ..text.carriers import message_of
from ..text.columns import is_of_another_task, key_of, without_times
from ..text.counters import names_other_count
from ..text.lines import plain
from ..text.numbers import parse_count
from ..text.shapes import ShapeTable

RISES = 2
"""So often a number has risen in a row before it looks like a counter: three lines, as for counters known by form."""
KINDS = 8
"""Kinds of lines that are kept: a trainer prints a few in turn, and a save adds some."""
TAIL_CHARS = 4000
"""Characters of a text that are looked at: a burst of log repeats its lines."""
LINE_CHARS = 200
"""A longer line is no example for people."""
SAVES = 2
"""After so many saves the absence of a step needs no example: a log prints a line between two saves."""
_COUNT = LazyPattern(
    r"(?<![\w.,:\-+])(?<![^\d\s]/)(?:\d{1,3}(?:,\d{3})+|\d{1,9})(?![\w%]|[.,:]\d|\s?(?:ms|s|secs?|min|h|[kmgt]i?b|%)(?!\w))",
    re.IGNORECASE,
)
"""A whole number that is no measure, date or part of a longer number."""
_TOTAL = LazyPattern(r"\s?(?:/|of|out of|->|→|\|)\s{0,3}")
"""What stands between a count and its end."""
_NAME = LazyPattern(r"[^\W\d_]*[^\w\n]{0,4}$")
"""The word before a count, and the signs between them."""


class LineKind(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest line of a kind. ``counts``: its whole numbers, and how often each has risen in a row.

    ``constant``: whether each was the same in all lines so far. ``other``: its words are those of another task.
    """

    key: str
    line: str
    counts: tuple[int, ...]
    rises: tuple[int, ...]
    constant: tuple[bool, ...]
    other: bool = False


class UnreadLog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the attempt did without a step that is read.

    ``saves``: checkpoints that it completed; ``saved_at``: the first file of the newest, active seconds. ``lines``:
    printed since the first save, ``kinds`` of them, the newest last. ``rest``: the unfinished line.
    """

    saves: int = 0
    saved_at: float = 0.0
    lines: int = 0
    kinds: tuple[LineKind, ...] = ()
    rest: str = ""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A line that looks like a counter, and the shape that would read it: a regular expression of [progress] shapes."""

    line: str
    shape: str


def with_save(log: UnreadLog, now: float, together_s: float) -> UnreadLog:
    """Add a complete checkpoint. Files within ``together_s`` of the first one belong to the same save."""
    if log.saves and now - log.saved_at < together_s:
        return log
    return msgspec.structs.replace(log, saves=log.saves + 1, saved_at=now)


def read_anew(log: UnreadLog) -> UnreadLog:
    """A new supervisor reads the log from its beginning again."""
    return UnreadLog(saves=log.saves, saved_at=log.saved_at)


def with_text(log: UnreadLog, text: str, shapes: ShapeTable) -> UnreadLog:
    """Add output of the trainer, in any chunking. Before the first save nothing is kept: no step may be due yet."""
    if not log.saves:
        return log
    printed = log.rest + text
    *lines, rest = re.split(r"[\r\n]+", printed[-TAIL_CHARS:])
    if len(printed) > TAIL_CHARS:
        lines = lines[1:]  # cut off at its beginning
    kinds = log.kinds
    for line in lines:
        kinds = _with_line(kinds, plain(line).strip(), shapes)
    count = log.lines + sum(1 for line in lines if line.strip())
    return msgspec.structs.replace(log, kinds=kinds, lines=count, rest=rest)


def is_shown(log: UnreadLog) -> bool:
    """Whether it is shown that steps are made and none is read: it saves, and then counts or saves again."""
    if not log.saves or not log.lines:
        return False
    return log.saves >= SAVES or any(not kind.other and _place(kind) is not None for kind in log.kinds)


def example_of(log: UnreadLog) -> Example | None:
    """The line that looks most like a counter: one with an end before others, then the newest; None if none does."""
    placed = (
        (not kind.other, place[1] is not None, age, kind.line, place)
        for age, kind in enumerate(log.kinds)
        if (place := _place(kind)) is not None
    )
    best = max(placed, key=lambda row: row[:3], default=None)
    return None if best is None else Example(line=best[3], shape=_shape(best[3], *best[4]))


def _with_line(kinds: tuple[LineKind, ...], line: str, shapes: ShapeTable) -> tuple[LineKind, ...]:
    if not line or len(line) > LINE_CHARS:
        return kinds
    counts = tuple(parse_count(found[0]) or 0 for found in _counts(line))
    if not counts:
        return kinds
    low = line.lower()
    said = message_of(low)
    key = key_of(low)
    before = next((kind for kind in kinds if kind.key == key and len(kind.counts) == len(counts)), None)
    other = is_of_another_task(said) or shapes.phase_of_label(said) not in {None, "train"}
    mine = LineKind(key, line, counts, (0,) * len(counts), (True,) * len(counts), other)
    if before is not None:
        moves = tuple(zip(before.counts, counts, before.rises, before.constant, strict=True))
        mine = msgspec.structs.replace(
            mine,
            rises=tuple(rises + (now > old) if now >= old else 0 for old, now, rises, _ in moves),
            constant=tuple(same and now == old for old, now, _, same in moves),
        )
    return (*(kind for kind in kinds if kind.key != key), mine)[-KINDS:]


def _counts(line: str) -> list[re.Match[str]]:
    return list(_COUNT.finditer(without_times(line)))


def _place(kind: LineKind) -> tuple[int, int | None] | None:
    """Which of its whole numbers counts, and which is its end (None: none is); None if none counts."""
    found = _counts(kind.line)
    low = kind.line.lower()
    risen = [
        at for at, rises in enumerate(kind.rises) if rises >= RISES and not names_other_count(low, found[at].start())
    ]
    for at in risen:
        end = at + 1
        ends = end < len(found) and kind.constant[end] and kind.counts[end] >= kind.counts[at]
        if ends and _TOTAL.fullmatch(kind.line, found[at].end(), found[end].start()) is not None:
            return at, end
    return (risen[0], None) if risen else None


def _shape(line: str, at: int, end: int | None) -> str:
    """A regular expression, without a single quote, that reads the count from such lines."""
    found = _counts(line)
    name = _NAME.search(line, 0, found[at].start())
    before = "" if name is None else name[0].lstrip()
    shape = f"{' +'.join(map(_literal, re.split(' +', before))) or '^ *'}(?P<step>{_digits(found[at][0])})"
    if before[:1].isalpha():
        shape = rf"\b{shape}"
    if end is not None:
        shape += _literal(line[found[at].end() : found[end].start()]) + f"(?P<total_steps>{_digits(found[end][0])})"
    return shape


def _digits(count: str) -> str:
    return r"[\d,]+" if "," in count else r"\d+"


def _literal(text: str) -> str:
    """The text as a regular expression; a single quote is any character."""
    return re.escape(text).replace("\\ ", " ").replace("'", ".")
