"""The text of a log line as a terminal shows it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .text_colours import NO_COLOURS, Colours

LINE_CHARS = 4000
"""Longest line that is shown. Markup of longer lines makes a terminal slow."""

# CSI sequences, OSC and other strings, the rest.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-~])")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(raw: bytes) -> str:
    r"""Decode one line: its last state after ``\r``, without escape sequences and control characters."""
    text = _ESCAPE.sub("", raw.decode("utf-8", "replace"))
    if "\r" in text:
        text = next((state for state in reversed(text.split("\r")) if state.strip()), "")
    text = CONTROL.sub("", text).rstrip()
    return text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1] + "…"


_COLOUR = re.compile(r"\x1b\[([0-9;:]*)m")
_A_BAR = re.compile(r"\d%\||\d/\d+ *\[|\d(?:it|s)/(?:s|it)\b|[█━▏▎▍▌▋▊▉]{2}")
_BAR_END = re.compile(r"(?:%\|.*?\| .*?\[|\d/\d+ \[|\dit \[)\d+:\d\d[^\]]*\]\s*")
"""A bar of tqdm up to its closing bracket."""


class Painted(NamedTuple):
    """The text of ``visible`` with its ``colours``: (first character, end, words of ``text_colours``).

    ``bar``: the bar that the text has overwritten, "" if it is a bar itself. ``cut``: where the message begins that
    was printed behind a bar without a line end; 0 = none.
    """

    text: str
    colours: tuple[tuple[int, int, str], ...] = ()
    bar: str = ""
    cut: int = 0


def painted(raw: bytes) -> Painted:
    """One line as ``visible`` shows it, with what tells its parts apart."""
    text = visible(raw)
    bar = ""
    if b"\r" in raw and not _A_BAR.search(text):
        states = _ESCAPE.sub("", raw.decode("utf-8", "replace")).split("\r")
        bar = next((CONTROL.sub("", s).strip() for s in reversed(states) if _A_BAR.search(s)), "")
    colours = tuple(_colours(raw, len(text))) if b"\x1b[" in raw else ()
    return Painted(text, colours, bar[:LINE_CHARS], _end_of_bar(text))


def _end_of_bar(text: str) -> int:
    if "]" not in text or ("%|" not in text and " [" not in text):
        return 0
    end = max((found.end() for found in _BAR_END.finditer(text)), default=0)
    return end if end < len(text) else 0


def _colours(raw: bytes, size: int) -> Iterator[tuple[int, int, str]]:
    """Colours of the last state of a line, by positions in its visible text of ``size`` characters."""
    pieces: list[tuple[str, Colours]] = []
    at, now = 0, NO_COLOURS
    whole = raw.decode("utf-8", "replace")
    for found in _ESCAPE.finditer(whole):
        pieces.append((whole[at : found.start()], now))
        at = found.end()
        code = _COLOUR.fullmatch(found.group())
        now = now if code is None else now.after(code[1])
    pieces.append((whole[at:], now))
    text = "".join(piece for piece, _ in pieces)
    begin, end = _last_state(text)
    place = shown = 0
    for piece, colours in pieces:
        part = CONTROL.sub("", piece[max(0, begin - place) : max(0, end - place)])
        place += len(piece)
        stop = min(shown + len(part), size)
        if colours.words and stop > shown:
            yield shown, stop, colours.words
        shown += len(part)


def _last_state(text: str) -> tuple[int, int]:
    """Begin and end of the last state with a visible character."""
    end = len(text)
    while end > 0:
        begin = text.rfind("\r", 0, end) + 1
        if text[begin:end].strip():
            return begin, end
        end = begin - 1
    return 0, 0
