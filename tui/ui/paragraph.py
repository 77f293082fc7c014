"""Text with a label in the margin, wrapped to any width; the detail panes consist of paragraphs."""

from collections.abc import Sequence

import msgspec

from .cells import Line, pad, plain, size_of, wrap, wrap_words

CONTINUED = " " * 8


class Paragraph(msgspec.Struct, frozen=True):
    """``label``: in the margin of the first row; ``mark``: before its text; ``link``: what Enter opens."""

    text: str = ""
    label: str = ""
    style: str = "text"
    mark: tuple[str, str] = ("text", "")
    link: int | None = None
    hard: bool = False
    """Spaces kept, wrapped at the edge, a frame of a stack before its file: its end is the number that matters."""


def margin_of(paragraphs: Sequence[Paragraph]) -> int:
    """Cells of the margin: the longest label and a space."""
    longest = max((len(p.label) for p in paragraphs), default=0)
    return longest + 2 if longest else 0


def rows_of(paragraph: Paragraph, width: int, margin: int) -> list[Line]:
    """The paragraph at a width; at least one row."""
    sign_style, sign = paragraph.mark
    room = max(8, width - margin - len(sign))
    text = plain(paragraph.text)
    rows = _wrap_hard(text, room) if paragraph.hard else wrap_words(text, room)
    lines: list[Line] = []
    for number, row in enumerate(rows):
        first = number == 0
        before = pad(paragraph.label if first else "", margin)
        lines.append((("label", before), (sign_style, sign if first else " " * len(sign)), (paragraph.style, row)))
    return lines


def _wrap_hard(text: str, width: int) -> list[str]:
    head, gap, place = text.rpartition(" (")
    below = f"{CONTINUED}({place}"
    if gap and size_of(head) <= width < size_of(text) and size_of(below) <= width:
        return [head, below]
    return wrap(text, width, CONTINUED)
