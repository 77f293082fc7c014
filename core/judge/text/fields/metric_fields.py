"""All named numbers of a line: ``name: value``, ``name=value``, ``name value``, JSON, dicts and rows of a table."""

import re

from ....model.checkpoints.evaluation import better_of
from ....model.text.patterns import LazyPattern
from ..numbers import NUMBER, parse_number
from .line_fields import words

LONGEST_NAME = 64
"""Characters of a name that are kept."""
LONGEST_PHRASE = 3
"""Words of a name that stands before its value without ":" or "="; more are a sentence."""
_WORD = r"[^\W\d](?:[\w.@#*%$^]|'s(?=\s)|[/\-](?=\w))*"
_VALUE = rf"(?P<value>(?>{NUMBER})|[-+]?(?i:nan|inf(?:inity)?)\b)(?P<si>[kKM](?![\w/]))?"
_NAMED = LazyPattern(
    rf"(?P<name>(?<![\w.\-/]){_WORD}(?:\s{_WORD}){{0,4}}(?:\s?\((?!(?i:nan|inf))[^()\d=:]{{1,16}}\))?)['\"]?"
    rf"(?P<sep>\s*[:=]\s*|\s+is\s+|\s+)['\"\[(]*\s*{_VALUE}"
)
"""A name of up to five words and its unit, what divides it from its value, the value."""
_UNIT = LazyPattern(
    r"(?:[smuµ]s|s|secs?|seconds?|minutes?|min|%|[kMGT]i?B?|B|W|C|x|[kMG]?Hz)?(?![\w%|])(?!%[|\s]*[|━█])"
)
"""What may follow a value: a unit or nothing. A percentage before a bar is the bar's."""
_PART = LazyPattern(r"[:\-.]\d|/\d+/\d|[hdm] \d")
"""What follows a number that is a part of a clock time, a date, a version or a duration."""
_RATED = LazyPattern(
    rf"(?<![\w.:\-/])(?P<value>(?>{NUMBER}))(?P<si>[kKM](?=\s))?\s?(?P<name>[A-Za-z]+/(?:s|sec|second))\b"
)
"""A rate after its value: "249512 tok/s"."""
_BEHIND = LazyPattern(
    rf"(?:^|[|,;])\s*(?P<value>(?>{NUMBER}))(?P<si>[kKM](?=\s))?\s+(?P<name>[A-Za-z][\w/]*(?: [A-Za-z][\w/]*){{0,2}})"
    r"(?=\s*(?:$|[|,;]))"
)
"""A name that stands behind its value and fills a field with it: "| 0.5 loss |"."""
_UNITS = words("s ms us sec secs second seconds min h b kb mb gb tb kib mib gib it its")
LEAST_BEHIND = 2
"""So many fields of a line have the name behind the value; one alone may be a sentence."""
_PREFIX = LazyPattern(r"\[[A-Z]+\|[^\]]*\]|[\w.]+\.(?:py|cc|cpp|cu|c):\d+|[(\[][\w.:]+:\d+(?:/\d+)?[)\]]|[\w.]+:\d+ >>")
"""The place in the source, the rank or the process that a logger writes before the message."""
_BEFORE_FIELD = ",|;{}[]()<>\t:•·–—#*\"'"
_INSIDE = ",|;{[("
_LEVELS = words("info debug warning warn error critical train trainer root main")
_NO_NAMES = words(
    "pid tid line port rank host node worker version ts timestamp asctime created process thread level",
    "at in on of to from is for and eta by with after took than over about ms s sec us m h info debug warning error",
)
"""Names of processes and times, and words before a number that name nothing."""
_STAMP = 1e9
"""A time above it is in seconds since the epoch."""
_SI = {"k": 1e3, "K": 1e3, "M": 1e6}
_ROW = LazyPattern(
    r"^[\s|>*\-│┃]*(?P<name>[^\W\d][\w./@%#\-]*(?: [\w./@%#()\-]+){0,5}?)(?:\s*[:=|│┃]\s*|\s{2,})"
    rf"{_VALUE}\s?(?:[mu]?s|sec|%|[kMGT]?i?B|[A-Za-z]+/s)?\s*(?:\([^()]*\))?[\s|│┃,;.]*$"
)

_ASSIGNMENT = LazyPattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""The name of a variable of the environment, which is set to a whole number: CUDA_LAUNCH_BLOCKING=1."""

Metrics = dict[str, float | None]
"""Name as printed → value, None = NaN or infinite."""


def metrics_of(line: str) -> Metrics:
    """Each named number of a plain line, in its order. The first value of a name counts: its average stands behind."""
    text = _PREFIX.sub(_blank, line) if ":" in line or "|" in line else line
    found: Metrics = {}
    ends: list[tuple[int, int]] = []
    for match in _NAMED.finditer(text):
        end = match.end()
        if match["si"] is None and (_PART.match(text, end) is not None or _UNIT.match(text, end) is None):
            continue
        ends.append((match.start(), end))
        name = _name(text, match)
        if name and not (match["sep"] == "=" and _is_assigned(match["name"], match["value"])):
            _add(found, name, match["value"], match["si"])
    behind = list(_BEHIND.finditer(text))
    if len(behind) >= LEAST_BEHIND:
        for match in behind:
            if match["name"].lower() not in _UNITS:
                _add(found, match["name"], match["value"], match["si"])
    if "/s" in text:
        for match in _RATED.finditer(text):
            if not any(start <= match.start() < end for start, end in ends):
                _add(found, match["name"], match["value"], match["si"])
    return found


def measure_of(line: str, name: str) -> tuple[str, float] | None:
    """The measure of quality of this name in a line of steps; of any name whose better values are known, if ""."""
    for each, value in metrics_of(line).items():
        if value is not None and (each == name if name else better_of(each, "auto") is not None):
            return each, value
    return None


def row_of(line: str) -> tuple[str, float | None] | None:
    """Name and value of a line that holds nothing else ("| loss | 0.5 |", "grad_norm=0.3"), None if it is another."""
    match = _ROW.match(line)
    if match is None or (f"{match['name']}=" in line and _is_assigned(match["name"], match["value"])):
        return None
    found: Metrics = {}
    _add(found, match["name"].rstrip(" ("), match["value"], match["si"])
    return next(iter(found.items()), None)


def _is_assigned(name: str, value: str) -> bool:
    """Whether ``NAME=value`` sets a variable of the environment."""
    return value.isdecimal() and _ASSIGNMENT.fullmatch(name.rsplit(maxsplit=1)[-1]) is not None


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _name(text: str, match: re.Match[str]) -> str:
    """The name before the value: all its words if a field begins with them, else the last one; "" if it is none."""
    name = match["name"].removesuffix(" is").split()
    before = text[: match.start()]
    last = before.rstrip(" ")[-1:]
    equals = match["sep"].strip() == "="
    begins = not last or last in _BEFORE_FIELD or before.endswith((" - ", "  "))
    if len(name) > 2 and name[-2] == "in":  # "train_step_timing in s=2.4"
        name = name[-3:]
    elif not begins or (equals and last not in _INSIDE) or (not match["sep"].strip() and len(name) > LONGEST_PHRASE):
        name = name[-2:] if name[-1][:1] == "(" else name[-1:]
    while len(name) > 1 and name[0].lower() in _LEVELS:
        name = name[1:]
    return "" if name[-1].lower() in _NO_NAMES and len(name) < 2 else " ".join(name)


def _add(found: Metrics, name: str, text: str, si: str | None) -> None:
    name = name[:LONGEST_NAME]
    low = name.lower()
    if name in found or low in _NO_NAMES:
        return
    value = parse_number(text)
    if value is not None:
        if "time" in low and value > _STAMP:
            return
        if si is not None and "mem" not in low:
            value *= _SI[si]
    found[name] = value
