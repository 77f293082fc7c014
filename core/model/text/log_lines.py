"""Lines of a log with their places in the file: what the log screen asks of a reader, as values and a Protocol."""

import re
from collections.abc import Callable, Iterator
from typing import Protocol

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


class LogBrowser(Protocol):
    """Random access to the lines of a log of any size; cost and memory do not grow with the file. May block.

    A missing file is empty; one that cannot be read raises OSError. Offsets are those of lines or ends of stretches.
    """

    def size(self, path: str) -> int:
        """Bytes now."""
        ...

    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        """The last ``lines`` lines that begin before ``offset``, with a match of ``only``."""
        ...

    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        """The first ``lines`` lines that begin at or behind ``offset``, with a match of ``only``."""
        ...

    def states(self, path: str, line: LogLine, most: int) -> tuple[str, ...]:
        """The newest ``most`` states of a line that was painted over, oldest first."""
        ...

    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None:
        """Offset of the nearest matching line that begins before ``offset``, or at or behind it."""
        ...

    def tally(self, path: str, pattern: re.Pattern[str], begin: int, end: int, stopped: Stopped) -> Iterator[LogTally]:
        """Count matching lines that begin in ``[begin, end)``, block by block; each tally counts from ``begin``."""
        ...

    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None:
        """Offset of line ``number``, counted from 1; None when the file is shorter."""
        ...


class LogStamps(Protocol):
    """When lines of an attempt's log were written, as its supervisor saw the file grow. May block."""

    def time_of(self, attempt: int, offset: int) -> float | None:
        """Run seconds at which the line at ``offset`` was there, to about a second; None = nobody watched."""
        ...

    def offset_at(self, attempt: int, t: float) -> int | None:
        """About where the log ended at ``t`` (run seconds); None = nobody watched yet."""
        ...


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the log screen shows. ``attempt`` None: one of the run's extra logs."""

    path: str
    label: str
    attempt: int | None = None
