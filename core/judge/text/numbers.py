"""Numbers as trainers print them: thousands separators, SI suffixes, clock times, rates."""

import re
from functools import lru_cache
from typing import NamedTuple

from ...model.patterns import LazyPattern

NUMBER = r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
"""A real number, possibly grouped by commas. The same as ``NUMBER`` in ``configs/log_shapes.toml``."""

_OBJECTS = ("ensor(", "rray(", "loat(", "oat16(", "oat32(", "oat64(", "int32(", "int64(", "ecimal(", "calar(", "umpy=")
_OBJECT = LazyPattern(
    r"(?:\b(?:np|numpy|jnp|torch|tf|mx)\.)?(?<!\w)"
    r"(?:[tT]ensor|(?:Device|ND)?[aA]rray|b?float\d*|u?int\d+|Scalar|Decimal)\("
    rf"(?:(?:[^()]|\([^()]{{0,80}}\)){{0,80}}?\bvalue\s?=)?\s*['\"\[]*\s*(?P<value>{NUMBER}|[-+]?(?:nan|inf))['\"\]]*"
    r"(?:\s*,(?:[^()]|\([^()]{0,80}\)){0,200})?\)"
    rf"|<tf\.\w+[^>]{{0,200}}\bnumpy=(?P<eager>{NUMBER}|[-+]?(?:nan|inf))>"
)
"""A number as the object that holds it prints itself: ``tensor(0.5, device='cuda:0')``, ``np.float32(0.5)``."""


def unwrapped(line: str) -> str:
    """The line with plain numbers in place of the objects that hold them."""
    for name in _OBJECTS:
        if name in line:
            return _OBJECT.sub(lambda found: found["value"] or found["eager"], line)
    return line


EXACT_DIGITS = 16
"""Whole numbers with fewer digits are exact as a float."""
_SI = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE = LazyPattern(
    r"\s*(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?P<si>[kMGT]?)(?:(?P<per>s)\s?/\s?(?P<a>[^\s\],]+)|\s?"
    r"(?P<b>[^\d\s/\],]*)/s(?:ec)?)"
)
_UNIT = r"(?:days?|hours?|hrs?|min(?:ute)?s?|sec(?:ond)?s?|ms|[dhms])(?![a-z])"
_AMOUNT = LazyPattern(rf"(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>{_UNIT})")
_HANDS = r"\d+:\d\d(?::\d\d)?(?:\.\d+)?"
DURATION = rf"(?:(?:\d+(?:\.\d+)?\s?{_UNIT}[,\s]{{0,2}}){{1,4}}(?:{_HANDS})?|{_HANDS})"
"""A time to go: amounts with their units ("6m 15s"), a clock, or both ("1 day, 2:00:00")."""
_CLOCK = LazyPattern(rf"\s*{DURATION}\s*")
_TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds of a unit, by its whole name or its first letter."""


def parse_number(text: str) -> float | None:
    """``1,234.5e-3`` as a float; None for ``nan``, ``inf`` and everything else."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value - value == 0.0 else None


def parse_count(text: str) -> int | None:
    """``12.9k`` as 12900; None if it is not a count (``?``)."""
    if len(text) < EXACT_DIGITS and text.isdecimal():
        return int(text)
    factor = _SI.get(text[-1:], 1.0)
    value = parse_number(text[:-1] if factor != 1.0 else text)
    return None if value is None else round(value * factor)


def parse_clock(text: str) -> float | None:
    """``1:02:03``, ``2 days, 1:00:00``, ``1h 2m 3s`` or ``39s`` in seconds; None if it is no time (``?``)."""
    parts = text.split(":")
    try:
        if len(parts) == 2:
            return int(parts[0]) * 60 + float(parts[1])
        if len(parts) == 3 and parts[0].isdigit():
            return int(parts[0]) * 3600 + int(parts[1]) * 60 + float(parts[2])
    except ValueError:
        return None
    if _CLOCK.fullmatch(text) is None:
        return None
    hands = text.rpartition(" ")[2].split(":") if ":" in text else []
    amounts = (seconds_of(found["value"], found["unit"]) or 0.0 for found in _AMOUNT.finditer(text))
    return sum(amounts) + sum(float(hand) * 60.0**power for power, hand in enumerate(reversed(hands)))


@lru_cache(maxsize=256)
def parse_rate(text: str) -> tuple[float | None, str]:
    """Seconds per unit, and the unit: ``2.00s/it`` → (2.0, "it"); ``4.0it/s`` → (0.25, "it"); ``?it/s`` → (None, …)."""
    found = _RATE.match(text)
    if found is None:
        return None, text.strip().removeprefix("?").removesuffix("/s").removeprefix("s/").strip()
    value, si, per, a, b = found.group("value", "si", "per", "a", "b")
    number = (parse_number(value) or 0.0) * _SI.get(si, 1.0)
    if per:
        return number, a
    return (1.0 / number if number > 0 else None), b


def seconds_of(value: str, unit: str) -> float | None:
    """A duration in seconds, e.g. ("51.10", "ms"); None if either is unknown."""
    number, factor = parse_number(value), _TIME_UNITS.get(unit) or _TIME_UNITS.get(unit[:1] or "s")
    return None if number is None or factor is None else number * factor


# Places in source files that a log names: the frames of a traceback, the mark of a parser of settings.
#
# Forms: ``File "F", line N, in f`` (traceback.py; without ``, in`` the header of a syntax error; faulthandler without
# the comma), ``│ F:N in f`` (rich, typer), ``File F:N, in f`` (IPython), ``in "F", line N`` (PyYAML), ``file: 'F',
# line: N`` (configparser).

GATE = 'File "'
"""Stands in the header of a syntax error that no traceback announces."""
_FRAME = LazyPattern(
    r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:,? in (?P<function>.*))?'
    r"|\s*[│|]\s*(?P<boxed>[^\s│|][^│|]*?):(?P<row>\d+) in (?P<name>[^\s│|]+)\s*[│|]?\s*$"
    r"|\s*File (?P<shown>[^\s\"]\S*?):(?P<at>\d+),? in (?P<called>.*)"
)
_MARK = LazyPattern(
    r"""\s+in "(?P<file>[^"<][^"]*)", line (?P<line>\d+)\b|file: '(?P<quoted>[^'<][^']*)', line: (?P<row>\d+)"""
)
_INSTALLED = LazyPattern(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]Lib[/\\]\w+\.py$|^<")
_ENTRY = LazyPattern(r"[/\\]s?bin[/\\][^/\\.]+$")
"""A script that pip made for a command: ``bin/accelerate``."""


class Frame(NamedTuple):
    """A frame of a traceback. ``function`` "": not told."""

    file: str
    line: int
    function: str = ""

    @property
    def own(self) -> bool:
        """Whether it lies in the user's own code: not in an installed package, nor in Python itself."""
        return _INSTALLED.search(self.file) is None and _ENTRY.search(self.file) is None

    @property
    def place(self) -> str:
        """``F:N``."""
        return f"{self.file}:{self.line}"


def frame_of(text: str) -> Frame | None:
    """The frame that the line names, None if it names none."""
    found = _FRAME.match(text)
    if found is None:
        return None
    file, line = found["file"], found["line"]
    if file is None:
        file, line = (found["boxed"], found["row"]) if found["boxed"] else (found["shown"], found["at"])
    return Frame(file, int(line), found["function"] or found["name"] or found["called"] or "")


def marked(text: str) -> str:
    """Where a parser of settings stopped, as ``F:N``; "" if the line does not say."""
    found = _MARK.match(text)
    if found is None:
        return ""
    return f"{found['file']}:{found['line']}" if found["file"] else f"{found['quoted']}:{found['row']}"


def placed(text: str, place: str) -> str:
    """``text (at train.py:12)``; the text alone if the place is not known, or if the text names it."""
    file, _, line = place.rpartition(":")
    name = short(file)
    said = re.search(rf"{re.escape(name)}(?::|\W{{0,3}}(?:on |at )?line:? ){line}\b", text) is not None
    return text if not place or said else f"{text} (at {name}:{line})"


def short(path: str) -> str:
    """The name of the file; with that of its folder if many files have it (``models/__init__.py``)."""
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[-2:] if parts[-1].startswith("__") else parts[-1:])
