"""The part of a log that is in memory: some hundred lines around the visible ones, whatever the file's size."""

from bisect import bisect_right
from collections.abc import Mapping

import msgspec

from ...core.model.text.log_lines import LogLine, LogStretch

KEPT_LINES = 600
"""A window that grows at one end drops lines at the other."""


class Reading(msgspec.Struct, frozen=True):
    """A stretch as it was read, with the known times (run seconds) of its lines by offset."""

    stretch: LogStretch = LogStretch()
    times: Mapping[int, float] = {}


class LogWindow:
    """Lines of ``[start, end)``, oldest first, and perhaps an open one behind them."""

    def __init__(self, reading: Reading | None = None) -> None:
        stretch = reading.stretch if reading is not None else LogStretch()
        self.lines: list[LogLine] = list(stretch.lines)
        self.times: dict[int, float] = dict(reading.times) if reading is not None else {}
        self.start, self.end, self.file_size = stretch.start, stretch.end, stretch.file_size
        self.open_size = stretch.open_size

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def at_start(self) -> bool:
        """The window begins at the start of the file."""
        return self.start <= 0

    @property
    def at_end(self) -> bool:
        """The window reaches the end of the file as last read."""
        return self.end + self.open_size >= self.file_size

    def index_of(self, offset: int) -> int:
        """Index of the line that contains ``offset``, else of the last one before it; 0 in an empty window."""
        return max(0, bisect_right(self.lines, offset, key=lambda line: line.offset) - 1)

    def add_above(self, reading: Reading) -> int:
        """Add older lines on top. Returns how many lines the others moved down."""
        older = reading.stretch
        if older.end != self.start:
            return 0
        self.lines[:0] = older.lines
        self.start, self.file_size = older.start, max(self.file_size, older.file_size)
        self.times.update(reading.times)
        if len(self.lines) > KEPT_LINES:
            self.end, self.open_size = self.lines[KEPT_LINES].offset, 0
            self._forget(self.lines[KEPT_LINES:])
            del self.lines[KEPT_LINES:]
        return len(older.lines)

    def add_below(self, reading: Reading) -> int:
        """Add newer lines at the end. Returns how many lines the others moved up."""
        newer = reading.stretch
        if newer.start != self.end:
            return 0
        if self.lines and self.lines[-1].open:
            self._forget([self.lines.pop()])
        self.lines += newer.lines
        self.end, self.file_size, self.open_size = newer.end, newer.file_size, newer.open_size
        self.times.update(reading.times)
        surplus = len(self.lines) - KEPT_LINES
        if surplus <= 0:
            return 0
        self._forget(self.lines[:surplus])
        del self.lines[:surplus]
        self.start = self.lines[0].offset
        return surplus

    def _forget(self, lines: list[LogLine]) -> None:
        for line in lines:
            self.times.pop(line.offset, None)
