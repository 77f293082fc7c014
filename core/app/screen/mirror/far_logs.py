"""The logs of a run of another machine: read there, a page for each question, with the times of its lines.

Without a line, the pages that were shown last, and the end of the log as it was.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import msgspec

from ....model.text.log_lines import LogLine, LogStretch, LogTally, Stopped
from .far_run import FarRun
from .link import LinkLost

PAGES = 64
"""Answers that are remembered."""
TIMES = 20_000
"""Times of lines that are remembered: a hundred pages."""
END_LINES = 200
"""Lines of a log's end that are kept: a few screens."""
TimedStretch = tuple[LogStretch, tuple[float | None, ...]]
"""A stretch, and the time of each of its lines in run seconds, as the other side saw it."""


class FarStamps:
    """Implements the screen's LogStamps: the times came with the lines."""

    def __init__(self, far: FarRun) -> None:
        self._far = far
        self._times: dict[tuple[str, int], float | None] = {}

    def remember(self, path: str, stretch: LogStretch, times: tuple[float | None, ...]) -> None:
        """Of lines that were read. ``path`` of an attempt's log: its folder has the attempt's number."""
        folder = PurePath(path).parent.name
        for line, t in zip(stretch.lines, times, strict=False):
            self._times[folder, line.offset] = t
        while len(self._times) > TIMES:
            self._times.pop(next(iter(self._times)), None)

    def time_of(self, attempt: int, offset: int) -> float | None:
        return self._times.get((f"{attempt:04d}", offset))

    def offset_at(self, attempt: int, t: float) -> int | None:
        try:
            found: int | None = self._far.known("log offset", int | None, attempt=attempt, t=t)
        except RuntimeError:
            return None
        return found


class FarLogs:
    """Implements the screen's LogBrowser. What is wrong is raised as OSError."""

    def __init__(self, far: FarRun, stamps: FarStamps) -> None:
        self._far, self._stamps = far, stamps
        self._pages: dict[tuple[Any, ...], Any] = {}
        self._ends: dict[str, TimedStretch] = {}

    def _asked(self, method: str, type_: Any, path: str, **values: Any) -> Any:
        key = (method, path, *values.items())
        try:
            answer = self._far.asked("log", type_, method=method, path=path, **values)
        except LinkLost as error:
            answer = self._pages.get(key)
            answer = self._as_it_was(method, path, values) if answer is None else answer
            if answer is None:
                raise OSError(0, str(error)) from error
            return answer
        except RuntimeError as error:
            raise OSError(0, str(error)) from error
        self._far.is_there("log")
        if method in {"size", "before", "after"}:
            self._pages.pop(key, None)
            self._pages[key] = answer
            if len(self._pages) > PAGES:
                self._pages.pop(next(iter(self._pages)), None)
        return answer

    def _stretch(self, method: str, path: str, offset: int, lines: int, only: re.Pattern[str] | None) -> LogStretch:
        found: LogStretch | TimedStretch = self._asked(
            method, LogStretch | TimedStretch, path, offset=offset, lines=lines, pattern=_plain(only), times=True
        )
        if isinstance(found, LogStretch):
            return found  # a version there that tells no times
        self._stamps.remember(path, *found)
        if only is None and "log" not in self._far.old:
            self._keep_end(path, offset, found)
        return found[0]

    def _keep_end(self, path: str, offset: int, found: TimedStretch) -> None:
        """The newest lines that were read, put together of what was read in turn."""
        stretch, times = found
        lines = [(line, t) for line, t in zip(stretch.lines, times, strict=False) if line.offset < stretch.end]
        before = self._ends.get(path)
        if before is not None and before[0].end == offset == stretch.start:
            lines = [*zip(before[0].lines, before[1], strict=True), *lines]
        elif before is not None and (before[0].end, len(before[0].lines)) >= (stretch.end, len(lines)):
            return
        lines = lines[-END_LINES:]
        whole = msgspec.structs.replace(
            stretch,
            lines=tuple(line for line, _ in lines),
            start=lines[0][0].offset if lines else stretch.end,
            file_size=stretch.end,
            open_size=0,
        )
        self._ends[path] = (whole, tuple(t for _, t in lines))
        self._far.keep("log end", self._ends[path], path=path)

    def _as_it_was(self, method: str, path: str, values: dict[str, Any]) -> Any:
        """The answer from the end that was kept; None if it is about other lines."""
        kept: TimedStretch | None = self._far.kept("log end", TimedStretch, name="log", path=path)
        if kept is None:
            return None
        stretch, times = self._ends.get(path, kept)
        if method == "size":
            return stretch.end
        at: int = values.get("offset", 0)
        if method not in {"before", "after"} or values["pattern"] is not None or at < stretch.start:
            return None
        both = list(zip(stretch.lines, times, strict=True))
        if method == "before":
            both = [each for each in both if each[0].offset < at][-values["lines"] :]
        else:
            both = [each for each in both if each[0].offset >= at][: values["lines"]]
        if not both and method == "before":
            return None
        start = both[0][0].offset if both else at
        end = both[-1][0].offset + both[-1][0].size if both else at
        lines = tuple(line for line, _ in both)
        return msgspec.structs.replace(stretch, lines=lines, start=start, end=end), tuple(t for _, t in both)

    def size(self, path: str) -> int:
        return int(self._asked("size", int, path))

    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        return self._stretch("before", path, offset, lines, only)

    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        return self._stretch("after", path, offset, lines, only)

    def states(self, path: str, line: LogLine, most: int) -> tuple[str, ...]:
        return tuple(self._asked("states", tuple[str, ...], path, line=line, most=most))

    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None:
        """The whole search is made there; ``stopped`` is asked before it."""
        if stopped():
            return None
        found: int | None = self._asked(
            "find", int | None, path, pattern=_plain(pattern), offset=offset, backwards=backwards
        )
        return found

    def tally(self, path: str, pattern: re.Pattern[str], begin: int, end: int, stopped: Stopped) -> Iterator[LogTally]:
        """Counted there, some blocks for each question."""
        matches = 0
        while begin < end and not stopped():
            tally: LogTally | None = self._asked(
                "tally", LogTally | None, path, pattern=_plain(pattern), begin=begin, end=end
            )
            if tally is None or tally.offset <= begin:
                return
            matches, begin = matches + tally.matches, tally.offset
            yield LogTally(begin, matches)

    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None:
        if stopped():
            return None
        found: int | None = self._asked("line_at", int | None, path, number=number)
        return found


def _plain(pattern: re.Pattern[str] | None) -> tuple[str, int] | None:
    return None if pattern is None else (pattern.pattern, pattern.flags)
