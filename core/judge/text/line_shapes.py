"""The table of line shapes: the shipped rows in the order they are tried, and a user's own before them."""

import re
from collections.abc import Iterable

import msgspec

from ...model.progress import SHAPE_GROUPS
from .bar_shapes import BARS
from .counter_shapes import COUNTERS
from .foreign_words import TONGUE_GATES
from .framework_shapes import FRAMEWORKS
from .line_shape import LineShape
from .lines import Gates, gate_of, gates_of
from .patterns import LatePattern
from .phase_words import WORD_GATES

ROWS: tuple[LineShape, ...] = (*BARS, *COUNTERS, *FRAMEWORKS)


class ShapeTable(msgspec.Struct, frozen=True):
    """Rows in the order they are tried, and the gates that a line with news must pass."""

    rows: tuple[LineShape, ...]
    gates: Gates


def shapes_of(patterns: Iterable[str]) -> ShapeTable:
    """The table with a project's own shapes before the shipped ones; the shipped one where it has none."""
    own = tuple(patterns)
    return user_shapes(own) if own else SHAPES


def user_shapes(patterns: Iterable[str]) -> ShapeTable:
    """A user's regular expressions (named groups as above) before the shipped rows.

    Raises ``ValueError`` (one line, naming the pattern and what to do) where one does not compile or names nothing.
    Each is searched over the whole text, so a slow pattern slows the reading of a fast log.
    """
    return _table((*(_user_row(pattern) for pattern in patterns), *ROWS))


def _user_row(written: str) -> LineShape:
    pattern = _TOTALS.sub(lambda found: "epochs" if found[1] == "epochs" else "total", written)
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"progress shape {written!r}: {error}; fix the regular expression") from error
    unknown = set(compiled.groupindex) - _GROUPS
    if unknown or not compiled.groupindex:
        named = ", ".join(sorted(unknown)) or "none"
        raise ValueError(f"progress shape {written!r}: named groups {named}; use some of {', '.join(SHAPE_GROUPS)}")
    return LineShape(name="user", framework="user", pattern=LatePattern(pattern), source="trainwatch.toml")


def _table(rows: tuple[LineShape, ...]) -> ShapeTable:
    literals = [gate for row in rows for gate in row.gates]
    patterns = [gate_of(row.pattern.text) for row in rows if not row.gates]
    return ShapeTable(rows, gates_of((*literals, *_FIELD_GATES, *WORD_GATES, *TONGUE_GATES), patterns))


_FIELD_GATES = ("tep", "iter", "Iter", "poch", "oss", "atch ", "earning rate", "_lr", "pisode")
"""What lines of no listed shape have that name a step, an epoch or a loss."""
_GROUPS = frozenset((*SHAPE_GROUPS, "total", "epochs", "unit"))
_TOTALS = re.compile(r"(?<=\(\?P[<=])total_(epochs|steps)\b")
SHAPES = _table(ROWS)
