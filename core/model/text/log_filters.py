"""Patterns for the lines of a level or of a rank, whatever logger, launcher or container wrote them."""

import re

from .patterns import LazyPattern

ALARM = LazyPattern(
    r"\b\w*(?:Error|Exception)\b(?::|$)|\b(?:ERROR|CRITICAL|SEVERE)\b|\berror: |^Traceback |out of memory|\bFATAL\b|"
    r"^Killed|Segmentation fault|loss[=: ]+nan\b|^\[?[EF]\d{4} \d\d:"
)
"""Lines that are shown in red, and that a jump to an error stops at."""
WARN = LazyPattern(r"\w*Warning: |\bWARN(?:ING)?\b|\bwarning: |^\[?W\d{4} \d\d:")

LEVELS = ("", "warnings", "errors")
"""What the log can be limited to; "" = all lines. Warnings are shown with the errors."""
_FRAMES = r"Traceback \(most recent|File \".*\", line \d+"
"""The lines of a Python traceback that name a place: between its first line and the error."""


def level_pattern(level: str) -> re.Pattern[str] | None:
    """Lines of a level of LEVELS, of every worse one, and the frames of tracebacks."""
    if not level:
        return None
    names = "error|fatal|critical|severe" + ("|warn|warning" if level == "warnings" else "")
    json_level = rf"[\"'](?:level|levelname|severity)[\"']\s*:\s*[\"'](?i:{names})"
    worse = (ALARM, WARN) if level == "warnings" else (ALARM,)
    return re.compile("|".join([*(p.text for p in worse), _FRAMES, json_level]))


_RANKS = (
    r"(?:^|[\s\[({{])[\"']?(?i:(?:local[_ ]?)?rank|default)[\"']?[ :=]{{0,2}}{0}(?!\d)",  # torch, torchrun, the trainer
    r"^\[{0}\]: ",  # accelerate, torchrun
    r"^\[\d+,{0}\]<std",  # mpirun --tag-output
    r"^{0}: (?!loss|\d)",  # srun --label
)


def rank_pattern(number: str) -> re.Pattern[str]:
    """Lines that say that a rank wrote them. ``number``: digits."""
    return re.compile("|".join(form.format(number) for form in _RANKS))


_A_RANK = LazyPattern("|".join(form.format(f"(?P<r{n}>\\d{{1,4}})") for n, form in enumerate(_RANKS)))


def rank_of(text: str) -> str:
    """The rank that a line names; "" = none."""
    found = _A_RANK.search(text)
    return next((number for number in found.groups() if number), "") if found is not None else ""
