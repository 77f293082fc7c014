"""The table of line shapes: the shipped rows in the order they are tried, and a user's own before them."""

import re
from collections.abc import Iterable

import msgspec

from .bar_shapes import BARS
from .counter_shapes import COUNTERS
from .framework_shapes import FRAMEWORKS
from .line_shape import LineShape
from .lines import Gates, gates_of
from .other_tongues import TONGUE_GATES
from .patterns import LatePattern
from .phase_words import WORD_GATES

ROWS: tuple[LineShape, ...] = (*BARS, *COUNTERS, *FRAMEWORKS)


class ShapeTable(msgspec.Struct, frozen=True):
    """Rows in the order they are tried, and the gates that a line with news must pass."""

    rows: tuple[LineShape, ...]
    gates: Gates


def user_shapes(patterns: Iterable[str]) -> ShapeTable:
    """A user's regular expressions (named groups as above) before the shipped rows.

    Raises ``ValueError`` (one line, naming the pattern and what to do) where one does not compile or names nothing.
    Each is searched over the whole text, so a slow pattern slows the reading of a fast log.
    """
    return _table((*(_user_row(pattern) for pattern in patterns), *ROWS))


def _user_row(pattern: str) -> LineShape:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"progress shape {pattern!r}: {error}; fix the regular expression") from error
    unknown = set(compiled.groupindex) - _GROUPS
    if unknown or not compiled.groupindex:
        named = ", ".join(sorted(unknown)) or "none"
        raise ValueError(f"progress shape {pattern!r}: named groups {named}; use some of {', '.join(sorted(_GROUPS))}")
    return LineShape(name="user", framework="user", pattern=LatePattern(pattern), source="trainwatch.toml")


def _table(rows: tuple[LineShape, ...]) -> ShapeTable:
    literals = [gate for row in rows for gate in row.gates]
    patterns = [row.pattern.text for row in rows if not row.gates]
    return ShapeTable(rows, gates_of((*literals, *_FIELD_GATES, *WORD_GATES, *TONGUE_GATES), patterns))


_FIELD_GATES = ("tep", "iter", "Iter", "poch", "oss", "atch ", "earning rate", "_lr", "pisode")
"""What lines of no listed shape have that name a step, an epoch or a loss."""
_GROUPS = frozenset(
    {
        "step",
        "total",
        "unit",
        "epoch",
        "epochs",
        "loss",
        "lr",
        "sec_per_step",
        "ms_per_step",
        "steps_per_sec",
        "rate",
        "left",
    }
)
SHAPES = _table(ROWS)
