"""Random access to the lines of a log of any size, for screens and reports: paging, filtering, searching, counting."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import BinaryIO

from ...model.log_lines import LogLine, LogStretch, Stopped

BLOCK_BYTES = 65536
SCAN_BYTES = 65536
"""Block size of a search. Matching holds the interpreter lock for a block, and the screen must stay responsive."""
CALL_BYTES = 16 << 20
"""Most bytes that are read for one stretch. A filter that matches nothing in them continues with the next call."""
LONGEST_LINE = 1 << 20
r"""A line without an end within so many bytes is cut, after a ``\r`` if it has one."""


# The text of a line as a terminal shows it.

LINE_CHARS = 4000
"""Longest line that is shown. Markup of longer lines makes a terminal slow."""

# CSI sequences, OSC and other strings, the rest.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-~])")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(raw: bytes) -> str:
    r"""Decode one line: its last state after ``\r``, without escape sequences and control characters."""
    text = _ESCAPE.sub("", raw.decode("utf-8", "replace"))
    if "\r" in text:
        text = next((state for state in reversed(text.split("\r")) if state.strip()), "")
    text = CONTROL.sub("", text).rstrip()
    return text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1] + "…"


_A_BAR = re.compile(r"\d%\||\d/\d+ *\[|\d(?:it|s)/(?:s|it)\b|[█━▏▎▍▌▋▊▉]{2}")
_BAR_END = re.compile(r"(?:%\|.*?\| .*?\[|\d/\d+ \[|\dit \[)\d+:\d\d[^\]]*\]\s*")
"""A bar of tqdm up to its closing bracket."""


def painted(raw: bytes, offset: int = 0, size: int = 0, *, is_open: bool = False) -> LogLine:
    """One line as ``visible`` shows it, with what tells its parts apart."""
    text, states = visible(raw), raw.decode("utf-8", "replace").split("\r")
    bar, ansi = "", ""
    if len(states) > 1 and not _A_BAR.search(text):
        plain = (_ESCAPE.sub("", state) for state in reversed(states))
        bar = next((CONTROL.sub("", state).strip() for state in plain if _A_BAR.search(state)), "")
    if b"\x1b[" in raw:
        ansi = next((state for state in reversed(states) if _ESCAPE.sub("", state).strip()), "")
    end = 0
    if "]" in text and ("%|" in text or " [" in text):
        end = max((found.end() for found in _BAR_END.finditer(text)), default=0)
    count = max(1, sum(1 for state in raw.split(b"\r") if state.strip())) if b"\r" in raw else 1
    return LogLine(offset, size, text, count, is_open, ansi, bar[:LINE_CHARS], end if end < len(text) else 0)


_CONTROL_BYTES = bytes(code for code in (*range(32), 127) if code not in b"\t\n")


class LineMatcher:
    """Finds the lines of blocks in whose visible text a pattern matches."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._search = pattern.search
        # Whether a plain word occurs in a block at all is found a hundred times faster than in each of its lines.
        literal = pattern.pattern.isascii() and pattern.pattern.replace(" ", "").isalnum()
        self._literal = pattern.pattern.lower().encode() if literal and pattern.flags & re.IGNORECASE else b""

    def numbers(self, block: bytes) -> Iterator[int]:
        """Numbers (from 0) of the matching lines of a block, in order. Only the last line may have no line end."""
        plain = self._literal and block.isascii() and b"\x1b" not in block
        if not block or (plain and self._literal not in block.translate(None, _CONTROL_BYTES).lower()):
            return
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            if self._search(visible(line)):
                yield number


class FileLogBrowser:
    """Implements ``model.ports.LogBrowser``. Each call opens the file again, so that rotation needs no handling."""

    def size(self, path: str) -> int:
        """Size in bytes; 0 for a missing file."""
        try:
            return os.stat(path).st_size  # noqa: PTH116
        except FileNotFoundError:
            return 0

    def before(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        """The last ``lines`` lines that begin before ``offset`` and match ``only``."""
        with _opened(path) as file:
            return LogStretch() if file is None else _before(file, offset, lines, only)

    def after(self, path: str, offset: int, lines: int, only: re.Pattern[str] | None = None) -> LogStretch:
        """The first ``lines`` lines that begin at or after ``offset`` and match ``only``."""
        with _opened(path) as file:
            return LogStretch() if file is None else _after(file, offset, lines, only)

    def find(
        self, path: str, pattern: re.Pattern[str], offset: int, *, backwards: bool, stopped: Stopped
    ) -> int | None:
        """Offset of the nearest matching line that begins before ``offset``, or forwards at or after it."""
        matcher = LineMatcher(pattern)
        with _opened(path) as file:
            if file is None:
                return None
            size = _size(file)
            for start, block in _backwards(file, min(offset, size)) if backwards else _forwards(file, offset, size):
                if stopped():
                    return None
                numbers = matcher.numbers(block)
                number = max(numbers, default=None) if backwards else next(numbers, None)
                if number is not None:
                    return start + _offset_of(block, number)
        return None

    def line_at(self, path: str, number: int, stopped: Stopped) -> int | None:
        """Offset of line ``number``, counted from 1; None if the file is shorter."""
        left = number - 1
        with _opened(path) as file:
            if file is None:
                return None
            size, at = _size(file), 0
            while left > 0 and at < size and not stopped():
                block = _read(file, at, SCAN_BYTES)
                ends = block.count(b"\n")
                if ends >= left:
                    return at + _offset_of(block, left) if at + _offset_of(block, left) < size else None
                left -= ends
                at += len(block)
            return 0 if left <= 0 < size else None


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO | None]:
    """The file; None if there is none."""
    try:
        file = open(path, "rb")  # noqa: PTH123, SIM115
    except FileNotFoundError:
        yield None
        return
    with file:
        yield file


def _before(file: BinaryIO, offset: int, lines: int, only: re.Pattern[str] | None) -> LogStretch:
    size = _size(file)
    end = min(max(0, offset), size)
    found: list[LogLine] = []
    start, close, spent, open_size = end, end, 0, 0
    for block_start, block in _backwards(file, end):
        at = block_start + len(block)
        for line in _lines(block, block_start, open_end=at >= size, backwards=True):
            start = line.offset
            if line.open:
                close, open_size = line.offset, line.size
            if only is None or only.search(line.text):
                found.append(line)
                if len(found) >= lines:
                    break
        spent += len(block)
        if len(found) >= lines or spent >= CALL_BYTES:
            break
    found.reverse()
    return LogStretch(lines=tuple(found), start=start, end=close, file_size=size, open_size=open_size)


def _after(file: BinaryIO, offset: int, lines: int, only: re.Pattern[str] | None) -> LogStretch:
    size = _size(file)
    begin = offset if 0 <= offset <= size else size
    found: list[LogLine] = []
    end, open_size = begin, 0
    for start, block in _forwards(file, begin, size, exact=True, step=BLOCK_BYTES):
        for line in _lines(block, start, open_end=start + len(block) >= size):
            if only is None or only.search(line.text):
                found.append(line)
            if line.open:
                open_size = line.size
            else:
                end = line.offset + line.size
            if len(found) >= lines:
                break
        if len(found) >= lines or end - begin >= CALL_BYTES:
            break
    return LogStretch(lines=tuple(found), start=begin, end=end, file_size=size, open_size=open_size)


def _lines(block: bytes, start: int, *, open_end: bool, backwards: bool = False) -> Iterator[LogLine]:
    """The lines of a block, one by one: a block has thousands, of which some hundreds may be wanted."""
    *rows, last = block.split(b"\n")
    *starts, end = accumulate((len(row) + 1 for row in rows), initial=start)
    found = [(row, at, len(row) + 1, False) for row, at in zip(rows, starts, strict=True)]
    found += [(last, end, len(last), open_end)] if last else []
    for row, at, size, is_open in reversed(found) if backwards else found:
        yield painted(row, at, size, is_open=is_open)


def _forwards(
    file: BinaryIO, offset: int, size: int, *, exact: bool = False, step: int = SCAN_BYTES
) -> Iterator[tuple[int, bytes]]:
    """(start, whole lines), first to last. ``exact``: a line begins at ``offset``; else begin at the next line."""
    position = max(0, offset)
    if position > 0 and not exact:
        position = _next_line(file, position, size)
    held = b""
    while position < size:
        data = held + _read(file, position + len(held), step)
        if len(data) == len(held):
            return
        whole = data.rfind(b"\n") + 1
        if position + len(data) >= size:
            whole = len(data)
        elif whole == 0 and len(data) >= LONGEST_LINE:
            whole = max(data.rfind(b"\r", 1, len(data) - 1), 0) or len(data)
        if whole:
            yield position, data[:whole]
        held = data[whole:]
        position += whole


def _backwards(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """(start, whole lines that begin before ``end``), last to first. ``end``: of a line or of the file."""
    at, held, step = end, b"", BLOCK_BYTES
    while at > 0:
        begin = max(0, at - step)
        data = _read(file, begin, at - begin) + held
        at = begin
        if begin == 0:
            yield 0, data
            return
        first = data.find(b"\n", 0, -1) + 1
        if not first and len(data) < LONGEST_LINE:
            held = data  # its line begins before this block
            continue
        first = first or max(0, data.find(b"\r", 1, -1))
        held, step = data[:first], SCAN_BYTES
        yield begin + first, data[first:]


def _next_line(file: BinaryIO, offset: int, size: int) -> int:
    """Start of the first line that begins at or after ``offset``."""
    at = offset - 1
    while at < size and (data := _read(file, at, BLOCK_BYTES)):
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(data)
    return size


def _offset_of(block: bytes, number: int) -> int:
    """Position of line ``number`` (from 0) of a block."""
    at = 0
    for _ in range(number):
        at = block.index(b"\n", at) + 1
    return at


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
