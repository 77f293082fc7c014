"""Replaces what a terminal without Unicode cannot draw, in everything that is drawn: panes, borders, dialogs."""

import re
from unicodedata import combining

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

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
        """The same segments with the same width, in ASCII."""
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
