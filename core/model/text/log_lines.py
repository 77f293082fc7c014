"""Lines of a log with their places in the file."""

from collections.abc import Callable

import msgspec


class LogLine(msgspec.Struct, frozen=True):
    r"""One line as a terminal would leave it. ``offset``: its first byte in the file; ``size``: bytes with its end.

    ``states``: how many states were painted over each other with ``\r``; 1 = an ordinary line. ``open``: it has no end
    yet. A line too long to read whole is cut into several.
    """

    offset: int
    size: int
    text: str
    states: int = 1
    open: bool = False


class LogStretch(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of ``[start, end)``, or those of them that match; an open line stands behind ``end``.

    ``file_size`` when it was read; ``open_size``: bytes of the open line, even if it does not match. Fewer lines than
    asked for at the ends of the file, or where the reader's budget for one call ended: go on from ``start`` or ``end``.
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
"""Asked between blocks; True ends the work with nothing found."""


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the log screen shows. ``attempt`` None: one of the run's extra logs."""

    path: str
    label: str
    attempt: int | None = None
