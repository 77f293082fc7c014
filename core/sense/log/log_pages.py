"""Pages of a log for screens, at a cost that does not grow with the file."""

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from ...model.ports import LogPage

BLOCK_BYTES = 65536
PAGE_BYTES = 1 << 20
"""Most bytes read for one page: lines longer than this are cut."""
SEARCH_BYTES = 1 << 20
LINE_CHARS = 4000
"""Longest line that is shown; no screen is wider, and markup of longer ones stalls a terminal."""

# CSI sequences, OSC and other strings, the rest.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-~])")
_ESCAPE_BYTES = re.compile(_ESCAPE.pattern.encode("latin-1"))
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(raw: bytes) -> str:
    r"""One line as a terminal would leave it: last state after ``\r``, no escape sequences, no control characters."""
    text = _ESCAPE.sub("", raw.decode("utf-8", "replace"))
    if "\r" in text:
        text = next((state for state in reversed(text.split("\r")) if state.strip()), "")
    text = _CONTROL.sub("", text).rstrip()
    return text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1] + "…"


_CONTROL_BYTES = bytes(code for code in range(32) if code not in b"\t\n\r") + b"\x7f"


class LogPages:
    """A LogReader. Each call opens the file anew, so rotation and truncation need no care.

    A missing file is an empty page; one that may not be read raises OSError. Offsets that lie behind the end (the
    file was cut) count as 0.
    """

    def tail(self, path: str, lines: int) -> LogPage:
        """The newest ``lines`` lines; the last one without an end is ``unfinished``."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                end, unfinished = _unfinished(file, _size(file))
                return _before(file, end, lines, at_end=True, unfinished=unfinished)
        except FileNotFoundError:
            return LogPage(lines=(), start=0, end=0, at_end=True)

    def after(self, path: str, offset: int, max_bytes: int = 262144) -> LogPage:
        """Whole lines behind ``offset``, at most ``max_bytes`` of them. Go on at the page's ``end``."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                size = _size(file)
                start = offset if 0 <= offset <= size else 0
                data = _read(file, start, max_bytes)
        except FileNotFoundError:
            return LogPage(lines=(), start=0, end=0, at_end=True)
        at_end = start + len(data) >= size
        whole = data.rfind(b"\n") + 1
        rest = data[whole:]
        lines = [visible(line) for line in data[:whole].split(b"\n")[:-1]]
        state = _last_state(rest)
        if at_end:
            # States that were painted over need not be read again next time.
            return LogPage(
                lines=tuple(lines), start=start, end=start + whole + state, at_end=True, unfinished=visible(rest)
            )
        if whole == 0 and state == 0:  # a line longer than the page
            lines, state = [visible(rest)], len(rest)
        return LogPage(lines=tuple(lines), start=start, end=start + whole + state, at_end=False)

    def before(self, path: str, offset: int, lines: int) -> LogPage:
        """The ``lines`` lines that end at ``offset``."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                size = _size(file)
                return _before(file, min(max(0, offset), size), lines, at_end=offset >= size)
        except FileNotFoundError:
            return LogPage(lines=(), start=0, end=0, at_end=True)

    def search(self, path: str, pattern: str, offset: int, *, backwards: bool) -> int | None:
        """Start of the nearest line with a match in what is visible of it, or None.

        Forwards: among lines that begin at or after ``offset`` (next hit: from the last one + 1). Backwards: among
        those that begin before it. A pattern that is no regular expression is searched literally.
        """
        look = _Search(pattern)
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                size = _size(file)
                if backwards:
                    return next(look.backwards(file, min(max(0, offset), size)), None)
                return next(look.forwards(file, max(0, offset), size), None)
        except FileNotFoundError:
            return None


class _Search:
    """A pattern over blocks of whole lines."""

    def __init__(self, pattern: str) -> None:
        try:
            self._text = re.compile(pattern)
            self._bytes = re.compile(pattern.encode(), re.MULTILINE)
        except (re.error, OverflowError):
            self._text = re.compile(re.escape(pattern))
            self._bytes = re.compile(re.escape(pattern.encode()))
        # What differs between text and bytes (classes of non-ASCII letters, counts of characters) must not hide a hit.
        self._plain = pattern.isascii() and not re.search(r"[\[\\.^$]|\(\?", pattern)

    def forwards(self, file: BinaryIO, offset: int, size: int) -> Iterator[int]:
        """Starts of lines with a match, first to last."""
        position = offset
        if offset > 0:  # to the next start of a line
            position = next(
                (at + found + 1 for at, block in _blocks(file, offset - 1, size) if (found := block.find(b"\n")) >= 0),
                size,
            )
        held = b""
        for at, block in _blocks(file, position, size):
            data = held + block
            start = at - len(held)
            whole = data.rfind(b"\n") + 1
            if at + len(block) >= size or len(data) - whole > PAGE_BYTES:
                whole = len(data)
            held = data[whole:]
            yield from self._hits(data[:whole], start)

    def backwards(self, file: BinaryIO, offset: int) -> Iterator[int]:
        """Starts of lines with a match, last to first."""
        end, held = offset, b""
        while end > 0:
            begin = max(0, end - SEARCH_BYTES)
            data = _read(file, begin, end - begin) + held
            end = begin
            newline = data.find(b"\n")
            if begin > 0 and newline < 0 and len(data) <= PAGE_BYTES:
                held = data  # its line begins before this block
                continue
            first = newline + 1 if begin > 0 and newline >= 0 else 0
            held = data[:first]
            yield from reversed(list(self._hits(data[first:], begin + first)))

    def _hits(self, data: bytes, start: int) -> Iterator[int]:
        if self._plain:
            painted = _ESCAPE_BYTES.sub(b"", data) if b"\x1b" in data else data
            if not self._bytes.search(painted.translate(None, _CONTROL_BYTES)):
                return
        for line in data.split(b"\n"):
            if self._text.search(visible(line)):
                yield start
            start += len(line) + 1


def _before(file: BinaryIO, end: int, lines: int, *, at_end: bool, unfinished: str = "") -> LogPage:
    data, start = b"", end
    while start > 0 and data.count(b"\n", 0, -1 if data else 0) < lines and len(data) < PAGE_BYTES:
        size = min(BLOCK_BYTES, start)
        start -= size
        data = _read(file, start, size) + data
    cut = 0
    if data:
        rows = data.removesuffix(b"\n").split(b"\n")
        if len(rows) > lines:
            cut = (
                len(data) - sum(len(row) + 1 for row in rows[-lines:]) + (not data.endswith(b"\n"))
                if lines
                else len(data)
            )
            rows = rows[-lines:] if lines else []
        return LogPage(
            lines=tuple(visible(row) for row in rows), start=start + cut, end=end, at_end=at_end, unfinished=unfinished
        )
    return LogPage(lines=(), start=end, end=end, at_end=at_end, unfinished=unfinished)


def _unfinished(file: BinaryIO, size: int) -> tuple[int, str]:
    """(where the whole lines end, the visible part of what follows)."""
    data, start = b"", size
    while start > 0 and b"\n" not in data and len(data) < PAGE_BYTES:
        step = min(BLOCK_BYTES, start)
        start -= step
        data = _read(file, start, step) + data
    whole = data.rfind(b"\n") + 1
    rest = data[whole:]
    return start + whole + (_last_state(rest) if whole == 0 and start > 0 else 0), visible(rest)


def _last_state(rest: bytes) -> int:
    r"""Offset of the last ``\r`` that something visible follows, or of the one before it; 0 without any."""
    at = rest.rfind(b"\r", 0, len(rest.rstrip(b"\r \t")))
    return max(at, 0)


def _blocks(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    while start < end and (block := _read(file, start, min(SEARCH_BYTES, end - start))):
        yield start, block
        start += len(block)


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
