"""The rows that a line of a log takes on the screen, in its own colours."""

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import pairwise

import msgspec

from ...core.model.text.edge import EDGE
from ...core.model.text.log_filters import ALARM, WARN
from ...core.model.text.log_lines import LogLine
from ..panes.pane import OWN_COLOUR
from ..ui.cells import Line, Span, cut, plain, wrapped

INDENT = "  "
Paint = tuple[int, int, str]
"""(first character, end, style)."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a line that stands on rows of its own: a message, or the bar before it."""

    text: str
    style: str
    paints: tuple[Paint, ...] = ()


@lru_cache(maxsize=256)
def pieces_of(line: LogLine) -> tuple[Piece, ...]:
    """The message of a line, and before it the bar that it was printed behind or over. A new line moves all others."""
    text = EDGE.text(line.text)
    colours = line.colours if text == line.text else ()  # what is hidden has moved the rest
    at = line.cut if text == line.text else 0
    over = (Piece(plain(EDGE.text(line.bar)), "label"),) if line.bar else ()
    if not at:
        return (*over, _piece(text, colours))
    return (*over, _piece(text[:at].rstrip(), colours), _piece(text[at:], _moved(colours, at)))


def rows_of(line: LogLine, room: int) -> int:
    """How many rows ``drawn`` returns with ``wrap``."""
    if not line.cut and not line.bar and len(line.text) <= room and line.text.isascii():
        return 1
    return sum(len(wrapped(piece.text, room, len(INDENT))) for piece in pieces_of(line))


def drawn(
    line: LogLine,
    room: int,
    pattern: re.Pattern[str] | None,
    ellipsis: str,
    *,
    wrap: bool,
    left: int = 0,
    marked: bool = False,
) -> list[Line]:
    """Rows of ``room`` cells. Without ``wrap``: one row, from character ``left`` on."""
    pieces = pieces_of(line)
    if marked:
        pieces = tuple(Piece(piece.text, "cursor") for piece in pieces)
    if not wrap:
        return [_cut_row(pieces[-1], room, pattern, ellipsis, left)]
    rows: list[Line] = []
    for piece in pieces:
        for number, (begin, end) in enumerate(wrapped(piece.text, room, len(INDENT))):
            indent: Line = ((piece.style, INDENT),) if number else ()
            rows.append((*indent, *_spans(piece, begin, end, pattern)))
    return rows


def _cut_row(piece: Piece, room: int, pattern: re.Pattern[str] | None, ellipsis: str, left: int) -> Line:
    """One row of the message: lines that are cut have one row each, so the bar before it is left out."""
    text = piece.text[left:]
    shown = cut(text, room, ellipsis)
    end = left + (len(text) if shown == text else max(0, len(shown) - len(ellipsis)))
    rest: Line = () if shown == text else ((piece.style, ellipsis),)
    return (*_spans(piece, left, end, pattern), *rest)


def _piece(text: str, colours: tuple[Paint, ...]) -> Piece:
    style = "spark-danger" if ALARM.search(text) else "warning" if WARN.search(text) else "text"
    widened = plain(text)
    if not colours:
        return Piece(widened, style)
    starts = [len(plain(text[:at])) if len(widened) != len(text) else at for at, _, _ in colours]
    ends = [len(plain(text[:at])) if len(widened) != len(text) else at for _, at, _ in colours]
    words = [OWN_COLOUR + colour for _, _, colour in colours]
    return Piece(widened, style, tuple(zip(starts, ends, words, strict=True)))


def _moved(colours: tuple[Paint, ...], by: int) -> tuple[Paint, ...]:
    return tuple((max(0, begin - by), end - by, style) for begin, end, style in colours if end > by)


def _spans(piece: Piece, begin: int, end: int, pattern: re.Pattern[str] | None) -> list[Span]:
    """Characters ``begin`` to ``end`` in their colours, with what the pattern finds in them marked."""
    text, style, paints = piece.text, piece.style, piece.paints
    found = [] if pattern is None else [m.span() for m in pattern.finditer(text, begin, end) if m.end() > m.start()]
    if not paints and not found:
        return [(style, text[begin:end])]
    edges = {begin, end, *(x for a, b in found for x in (a, b)), *(x for a, b, _ in paints for x in (a, b))}
    points = sorted(x for x in edges if begin <= x <= end)
    first = [a for a, _, _ in paints]
    spans: list[Span] = []
    for a, b in pairwise(points):
        if any(x <= a < y for x, y in found):
            spans.append(("match", text[a:b]))
            continue
        at = bisect_right(first, a) - 1
        inside = at >= 0 and paints[at][1] > a
        spans.append((paints[at][2] if inside else style, text[a:b]))
    return spans
