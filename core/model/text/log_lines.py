"""Lines of a log with their places in the file."""

from collections.abc import Callable

import msgspec


class LogLine(msgspec.Struct, frozen=True):
    r"""One line as a terminal shows it. ``offset``: its first byte in the file; ``size``: bytes with its end.

    ``states``: how many states replaced each other by ``\r``; 1 = an ordinary line. ``open``: it has no end
    yet. A line too long to read whole is cut into several. ``colours``: (first character, end, words such as
    ``bold red on #112233``) of its text. ``bar``: a bar that a message has overwritten; ``cut``: where the message
    begins that stands behind a bar on the same line, 0 = none.
    """

    offset: int
    size: int
    text: str
    states: int = 1
    open: bool = False
    colours: tuple[tuple[int, int, str], ...] = ()
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


class LogTally(msgspec.Struct, frozen=True):
    """Matching lines among those that begin before ``offset``."""

    offset: int
    matches: int


Stopped = Callable[[], bool]
"""Called between blocks; True ends the work with no result."""


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the log viewer. ``attempt`` None: one of the run's extra logs."""

    path: str
    label: str
    attempt: int | None = None
