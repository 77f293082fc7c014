"""The text of a log line as a terminal shows it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

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


# Colours that a program asks of a terminal (SGR sequences), as words.

NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
"""Colours 0 to 7; those of 8 to 15 are ``bright_`` ones. Source: ECMA-48, xterm's ctlseqs."""
FORMS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
"""Blinking (5, 6) and hidden text (8) are left out: a log cannot hide a line."""
ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",)}
STEPS = (0, 95, 135, 175, 215, 255)
"""Brightness of the six steps of the 256 colours."""


class Colours(NamedTuple):
    """What is switched on. Colours are names or ``#rrggbb``; "" = the terminal's own."""

    front: str = ""
    back: str = ""
    forms: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """For example ``bold red on #112233``; "" = nothing is switched on."""
        back = f"on {self.back}" if self.back else ""
        return " ".join(word for word in (*sorted(self.forms), self.front, back) if word)

    def after(self, sequence: str) -> "Colours":
        """What is on after the parameters of one sequence: numbers between semicolons or colons."""
        codes = [int(code) if code.isdigit() else 0 for code in sequence.replace(":", ";").split(";")]
        now, at = self, 0
        while at < len(codes):
            code = codes[at]
            at += 1
            if code in {38, 48}:
                colour, used = _long_colour(codes[at:])
                now = now._replace(front=colour) if code == 38 else now._replace(back=colour)
                at += used
            else:
                now = now.after_one(code)
        return now

    def after_one(self, code: int) -> "Colours":
        """What is on after one number that stands alone."""
        if code == 0:
            return NO_COLOURS
        if code in FORMS:
            return self._replace(forms=self.forms | {FORMS[code]})
        if code in ENDS:
            return self._replace(forms=self.forms - {*ENDS[code]})
        tens, digit = divmod(code, 10)
        if digit == 9 and tens in {3, 4}:
            return self._replace(front="") if tens == 3 else self._replace(back="")
        if digit < 8 and tens in {3, 9}:
            return self._replace(front=_name(digit, bright=tens == 9))
        if digit < 8 and tens in {4, 10}:
            return self._replace(back=_name(digit, bright=tens == 10))
        return self


NO_COLOURS = Colours()


def _long_colour(codes: list[int]) -> tuple[str, int]:
    """(colour, codes used) of what follows 38 or 48: 5 and one of 256, or 2 and red, green, blue."""
    if codes[:1] == [5] and len(codes) >= 2:
        return _of_256(min(codes[1], 255)), 2
    if codes[:1] == [2] and len(codes) >= 4:
        red, green, blue = (min(code, 255) for code in codes[1:4])
        return f"#{red:02x}{green:02x}{blue:02x}", 4
    return "", len(codes)


def _of_256(number: int) -> str:
    if number < 16:
        return _name(number % 8, bright=number >= 8)
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    cube = number - 16
    return "#" + "".join(f"{STEPS[step]:02x}" for step in (cube // 36, cube // 6 % 6, cube % 6))


def _name(digit: int, *, bright: bool) -> str:
    return f"bright_{NAMES[digit]}" if bright else NAMES[digit]
