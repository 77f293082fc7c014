"""Lines of styled text cut to an exact width, and what changed between two of them."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import combining

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ...core.model.text import printable
from ...core.views.words import Paragraph

Span = tuple[str, str]
"""(style name, text): the style names are those of ui/terminal.py."""
Line = tuple[Span, ...]

UNITS = "s|ms|min|h|m|d|B|kB|MB|GB|TB|MiB|GiB|%|°C|W|cores"
_TOGETHER = re.compile(rf"(?<=\d) (?=(?:{UNITS})[.,;:)]*(?: |$))|(?<=[→←]) ")
"""Blanks at which no row ends: between a number and its unit, and before what an arrow points at or marks."""


def plain(text: str) -> str:
    """Text that cannot move the cursor or change colours: control characters shown by their codes, tabs widened."""
    return printable(text.replace("\t", "    "))


_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u25fc\u2800-\u28ff]*").fullmatch
"""Matches text whose characters are all one cell wide, as in nearly all text: much faster than adding up widths."""


def size_of(text: str) -> int:
    """The cells of a text."""
    return len(text) if _NARROW(text) else cell_len(text)


def width_of(line: Iterable[Span]) -> int:
    return sum(size_of(text) for _, text in line)


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """At most ``width`` cells; what is cut ends with an ellipsis."""
    if width <= 0:
        return ""
    if size_of(text) <= width:
        return text
    return set_cell_size(text, width - 1) + ellipsis


def pad(text: str, width: int) -> str:
    """Exactly ``width`` cells, left-aligned."""
    return set_cell_size(text, max(0, width))


def right(text: str, width: int) -> str:
    """Exactly ``width`` cells, right-aligned; what does not fit is cut on the right."""
    missing = width - size_of(text)
    return " " * missing + text if missing >= 0 else cut(text, width)


def fit(line: Iterable[Span], width: int) -> Line:
    """Exactly ``width`` cells: cut with an ellipsis, or padded with spaces. Equal neighbours join."""
    spans: list[Span] = []
    left = width
    for name, text in line:
        if not text:
            continue
        if left <= 0:
            break
        size = size_of(text)
        shown = text if size <= left else cut(text, left)
        left -= min(size, left)
        _push(spans, name, shown)
    if left > 0:
        _push(spans, "text", " " * left)
    return tuple(spans)


def spread(left: Iterable[Span], right_part: Iterable[Span], width: int) -> Line:
    """``left`` and ``right_part`` at the two ends of a line; ``left`` is cut if they meet."""
    end = tuple(right_part)
    return (*fit(left, max(0, width - width_of(end))), *end)


def beside(parts: Sequence[Iterable[Span]], each: int, gap: int) -> Line:
    """Parts of lines in ``each`` cells beside each other, ``gap`` blanks between them."""
    blanks = [(("text", " " * gap),) if number else () for number in range(len(parts))]
    return tuple(span for blank, part in zip(blanks, parts, strict=True) for span in (*blank, *fit(part, each)))


def clauses(parts: Iterable[str], width: int) -> str:
    """As many whole parts as fit, from the first; the first one is cut if it does not fit alone."""
    text = ""
    for part in parts:
        longer = f"{text} · {part}" if text else part
        if size_of(longer) > width:
            break
        text = longer
    if not text:
        return cut(next(iter(parts), ""), width)
    return text


def wrapped(text: str, width: int, indent: int = 0) -> list[tuple[int, int]]:
    """(first character, end) of each row of a text; all rows but the first are ``indent`` cells shorter.

    Rows end at spaces, which are left out; a word that is longer than a row is split, at a ``/`` if it has one. One row
    for an empty text.
    """
    rows: list[tuple[int, int]] = []
    at, size = 0, len(text)
    narrow = text.isascii() or _NARROW(text) is not None
    while True:
        room = max(1, width - (indent if rows else 0))
        end = min(size, at + room) if narrow else at + _chars_in(text[at : at + room], room)
        if end >= size:
            return [*rows, (at, size)]
        last = end if text[end] == " " else text.rfind(" ", at, end)
        if last <= at or not text[at:last].strip():
            end = at + _part(text[at:end])
            rows.append((at, end))
            at = end
            continue
        rows.append((at, last))
        at = last + 1
        while at < size - 1 and text[at] == " ":
            at += 1


def _chars_in(text: str, room: int) -> int:
    """How many characters fit into ``room`` cells, at least one."""
    used = 0
    for number, char in enumerate(text):
        used += cell_len(char)
        if used > room:
            return max(1, number)
    return len(text)


def _part(row: str) -> int:
    """How many characters of a word that is longer than a row stand in its first row: it ends at a ``/`` or such."""
    for signs, share in (("/", 3), ("_-.,:;=&?", 2)):  # a row is not left emptier for it
        at = max(row.rfind(sign, len(row) // share) for sign in signs)
        if at >= 0:
            return at + 1
    return len(row)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Hard wrap at ``width`` cells, continuation lines indented."""
    rows = list[str]()
    while size_of(text) > width and (end := max(_chars_in(text, width), bool(rows) * len(indent) + 1)) < len(text):
        rows.append(text[:end])
        text = indent + text[end:]
    return [*rows, text]


def wrap_words(text: str, width: int) -> list[str]:
    """Wrap at spaces, never between a number and its unit or behind an arrow; words longer than a line are split."""
    whole = _TOGETHER.sub("\u00a0", text)
    return [whole[begin:end].replace("\u00a0", " ") for begin, end in wrapped(whole, width)]


def sentence(text: str, width: int) -> list[Line]:
    """What a pane says that has nothing to draw."""
    return [(("label", row),) for row in wrap_words(text, width)]


def changed_cells(old: Line, new: Line) -> tuple[int, int] | None:
    """(first cell, number of cells) between the outermost differences of two lines of the same width; None if equal.

    A line with characters that are not one cell wide differs as a whole.
    """
    if old == new:
        return None
    before, text = "".join([t for _, t in old]), "".join([t for _, t in new])
    if len(text) != len(before) or not (_narrow(text) and _narrow(before)):
        return 0, max(width_of(old), width_of(new))
    first = _alike(old, new, 1)
    return (first, len(text) - _alike(old, new, -1) - first) if first < len(text) else None


def _alike(old: Line, new: Line, step: int) -> int:
    """How many cells of two fitted lines are equal from the left (``step`` 1) or from the right (-1)."""
    alike = 0
    for (style, text), (new_style, new_text) in zip(old[::step], new[::step], strict=False):
        if style != new_style:
            return alike
        if text != new_text:
            pairs = zip(text[::step], new_text[::step], strict=False)
            return alike + next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(text), len(new_text)))
        alike += len(text)
    return alike


def _narrow(text: str) -> bool:
    """Every character is one cell wide."""
    return _NARROW(text) is not None or all(cell_len(char) == 1 for char in set(text))


def _push(spans: list[Span], style: str, text: str) -> None:
    if spans and spans[-1][0] == style:
        spans[-1] = (style, spans[-1][1] + text)
    else:
        spans.append((style, text))


# The characters that the screen draws with, in Unicode and in ASCII.


class Glyphs(msgspec.Struct, frozen=True, kw_only=True):
    """Every character is one cell wide. ``eighths`` and ``bar`` rise from empty to full."""

    name: str
    levels: dict[str, str]
    marks: dict[str, str]
    eighths: str
    bar: str
    line: str
    band: str
    now: str
    mark: str
    hatch: str
    expected: str
    done: str
    braille: bool
    cursor: str
    ellipsis: str
    dot: str


LEVELS = ("safe", "warning", "danger", "underused", "unknown")
MARKS = (
    "start", "restart", "checkpoint", "doubtful_checkpoint", "bad_checkpoint", "crash", "hang", "danger", "incident",
    "profile",
)  # fmt: skip
UNICODE = Glyphs(
    name="unicode", levels=dict(zip(LEVELS, "●▲✖○–", strict=True)), marks=dict(zip(MARKS, "├↻◆◊◈✖◼✖▲⇄", strict=True)),
    eighths=" ▁▂▃▄▅▆▇█", bar=" ▏▎▍▌▋▊▉█", line="─", band="▄", now="┃", mark="╎", hatch="╱", expected="◇", done="⚑",
    braille=True, cursor="▸", ellipsis="…", dot="·",
)  # fmt: skip
ASCII = Glyphs(
    name="ascii", levels=dict(zip(LEVELS, "o!X_-", strict=True)), marks=dict(zip(MARKS, "+R*?xXHX!P", strict=True)),
    eighths=" .:-=+*#@", bar="    =====", line="-", band="=", now="|", mark="|", hatch="/", expected="o", done="F",
    braille=False, cursor=">", ellipsis="~", dot=".",
)  # fmt: skip
LEVEL_WORDS = dict(zip(LEVELS, ("", "warning", "danger", "low", ""), strict=True))
"""The word beside glyph and colour; safe and unknown need none."""


def glyphs_for(env: Mapping[str, str] | None = None) -> Glyphs:
    """ASCII on the Linux console (its font lacks braille and blocks), on dumb terminals and without UTF-8."""
    env = os.environ if env is None else env
    if env.get("TERM", "") in {"linux", "dumb", "vt100", "vt220", "ansi"}:
        return ASCII
    return UNICODE if draws_letters(env) else ASCII


def draws_letters(env: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal takes UTF-8, as far as is known."""
    env = os.environ if env is None else env
    charset = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    # No locale at all (containers, cron) says nothing about the terminal; most can draw UTF-8.
    return charset in {"", "C", "POSIX"} or "utf" in charset.lower()


# Replaces what a terminal without Unicode cannot draw, in everything that is drawn: panes, borders, dialogs.

SIGNS = str.maketrans({
    "·": ".", "…": "~", "–": "-", "—": "-", "→": ">", "←": "<", "↑": "^", "↓": "v", "×": "x", "°": "o", "≥": ">",
    "≤": "<", "≈": "~", "±": "+", "µ": "u", "\u00a0": " ", "’": "'", "‘": "'", "“": '"', "”": '"', "✓": "+",
    "‹": "<", "›": ">", "≡": "=",
})  # fmt: skip
"""Signs of our own texts, each by one of the same width."""
ACROSS, DOWN = "─━┄┅┈┉╌╍═╴╶╸╺▁▂▔▀▄", "│┃┆┇┊┋╎╏║╵╷╹╻▏▎▍▕▌▐"
SIGNS |= {ord(char): "-" for char in ACROSS} | {ord(char): "|" for char in DOWN}
SIGNS |= {point: "+" for point in range(0x2500, 0x2580) if point not in SIGNS}
SIGNS |= {point: "#" for point in range(0x2580, 0x25A0) if point not in SIGNS}
SIGNS |= dict.fromkeys(range(9601, 9608), " ")
"""Borders and blocks, as Textual draws them. Of a cell that is full in part, at the end of a scroll bar, the colour."""
_BETWEEN_DIGITS = re.compile(r"(?<=\d)…(?=\d)")


def _of_several(text: str) -> str:
    """What one sign alone would not say: ``6 → 8`` is not ``6 > 8``, and ``1…9`` is no path. The same width."""
    if "→" in text:
        if text.startswith("→ "):  # the first word of a row
            text = f"->{text[2:]}"
        text = text.replace("  → ", " -> ").replace(" → ", " ->")
    if "←" in text:
        text = text.replace("  ← ", " <- ")
    return _BETWEEN_DIGITS.sub("-", text) if "…" in text else text


class AsciiFilter(LineFilter):
    """``letters``: letters of other languages are kept, because the terminal draws them (the Linux console)."""

    def __init__(self, *, letters: bool) -> None:
        super().__init__()
        self._letters = letters

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        del background
        return [
            segment if segment.text.isascii() else Segment(self._ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]

    def _ascii(self, text: str) -> str:
        text = _of_several(text).translate(SIGNS)
        return text if text.isascii() else "".join(self._letter(char) for char in text)

    def _letter(self, char: str) -> str:
        if char.isascii() or (self._letters and (char.isalpha() or combining(char)) and cell_len(char) < 2):
            return char
        return "?" * cell_len(char)


# Text with a label in the margin, wrapped to any width; the detail panes consist of paragraphs.

CONTINUED = " " * 8


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
