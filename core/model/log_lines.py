"""Lines of a log with their places in the file."""

import re
from collections.abc import Callable

import msgspec

from .text import LazyPattern


class LogLine(msgspec.Struct, frozen=True):
    r"""One line as a terminal shows it. ``offset``: its first byte in the file; ``size``: bytes with its end.

    ``states``: how many states replaced each other by ``\r``; 1 = an ordinary line. ``open``: it has no end
    yet. A line too long to read whole is cut into several. ``ansi``: its text with the
    sequences that colour it, "" = none. ``bar``: a bar that a message has overwritten; ``cut``: where the message
    begins that stands behind a bar on the same line, 0 = none.
    """

    offset: int
    size: int
    text: str
    states: int = 1
    open: bool = False
    ansi: str = ""
    bar: str = ""
    cut: int = 0


class LogStretch(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of ``[start, end)``, or those of them that match; an open line stands behind ``end``.

    ``file_size`` when it was read; ``open_size``: bytes of the open line, even if it does not match. Fewer lines than
    asked for at the ends of the file, or if the reader's limit for one call was reached: continue from
    ``start`` or ``end``.
    """

    lines: tuple[LogLine, ...] = ()
    start: int = 0
    end: int = 0
    file_size: int = 0
    open_size: int = 0


Stopped = Callable[[], bool]
"""Called between blocks; True ends the work with no result."""


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the log viewer. ``attempt`` None: one of the run's extra logs."""

    path: str
    label: str
    attempt: int | None = None


# Patterns for the lines of a level or of a rank, whatever logger, launcher or container wrote them.

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
    found = _A_RANK.search(text)
    return next((number for number in found.groups() if number), "") if found is not None else ""
