"""Colours that a program asks of a terminal (SGR sequences), as words."""

from typing import NamedTuple

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
