"""A stretch of log that came faster than it can be judged, reduced to what matters. Pure.

Kept: lines with news, the last state of a progress bar, and the last lines. The file is the lossless store.
"""

from collections.abc import Callable
from typing import NamedTuple

NEWS_WORDS = (
    *(b"error", b"exception", b"traceback", b"fatal", b"fail", b"abort", b"assert", b"segm", b"signal", b"kill"),
    *(b"nccl", b"nan", b"memory", b"space", b"corrupt", b"denied", b"time", b"terminated"),
    *(b"checkpoint", b"saved", b"epoch"),
)
"""Lines without any of these (in small letters) are never asked about. Plain words: searching each one is ten times
as fast as one regular expression for all (measured: 77 against 6 MB/s)."""
NEWS_LINES = 200
"""Most lines with news kept of one stretch, the first ones: the cause comes before its consequences."""
CONTEXT_LINES = 15
"""Lines kept behind one with news: a traceback says what happened at its end."""
LINE_BYTES = 8192
"""Longest kept piece of news with its context."""
TAIL_LINES = 200
TAIL_BYTES = 32768
HELD_BYTES = 65536
"""A line without an end is looked at in pieces of about this size, so that it cannot fill the memory."""
SHAPES = 20000
"""Line shapes remembered; beyond that they are forgotten and asked again."""
BAR = b"%|"
"""What every tqdm-like bar contains."""
_LINES = bytes.maketrans(b"\r", b"\n")


class Piece(NamedTuple):
    """Bytes to keep, and what lay between the piece before and this one (``skipped_lines``: line ends in it)."""

    data: bytes
    skipped_bytes: int
    skipped_lines: int


class _Kept(NamedTuple):
    """``data`` stands for the bytes from ``start`` to ``end`` of the stretch, behind ``lines`` line ends."""

    start: int
    end: int
    data: bytes
    lines: int


class BurstReduction:
    r"""Feed it the blocks of a stretch in order, then ``finish``. Memory does not grow with the stretch.

    Lines that differ only in digits are asked about once: floods repeat themselves (measured: 200 MB/s for those,
    70 MB/s for lines that all differ). ``\r`` ends a line like ``\n``.
    """

    def __init__(self, is_news: Callable[[str], bool]) -> None:
        self._is_news = is_news
        self._shapes: set[bytes] = set()
        self._head: _Kept | None = None
        self._news: list[_Kept] = []
        self._bar: _Kept | None = None
        self._held = b""
        self._recent = b""
        self._position = 0
        self._lines = 0

    def feed(self, block: bytes) -> None:
        """Take the next block."""
        self._recent = (self._recent + block[-TAIL_BYTES:])[-TAIL_BYTES:]
        data = self._held + block
        whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - whole > HELD_BYTES:
            whole = len(data)
        self._held = data[whole:]
        self._take(data[:whole])

    def finish(self) -> list[Piece]:
        """The pieces to keep, in order, without overlap; the last one ends where the stretch ends."""
        self._take(self._held)
        tail = self._tail()
        kept = [k for k in (self._head, *self._news, self._bar) if k is not None and k.start < tail.start]
        pieces: list[Piece] = []
        at, lines = 0, 0
        for each in (*sorted(kept), tail):
            overlap = max(0, at - each.start)
            if overlap >= each.end - each.start > 0:
                continue
            data = each.data[overlap:]
            before = each.lines + each.data.count(b"\n", 0, overlap)
            pieces.append(Piece(data, max(0, each.start - at), max(0, before - lines)))
            at, lines = each.end, before + data.count(b"\n")
        return pieces

    def _take(self, body: bytes) -> None:
        """Look through whole lines."""
        if self._head is None and body:
            self._head = self._keep(body, 0, _line_end(body, 0))
        self._take_news(body)
        bar = body.rfind(BAR)
        if bar >= 0:
            self._bar = self._keep(body, _line_start(body, bar), _line_end(body, bar))
        self._position += len(body)
        self._lines += body.count(b"\n")

    def _take_news(self, body: bytes) -> None:
        if len(self._news) >= NEWS_LINES:
            return
        lines = body.translate(_LINES)
        fresh = self._fresh(lines)
        small = b"\n".join(fresh).lower()
        if not any(word in small for word in NEWS_WORDS):
            return
        start = covered = 0
        for line, shape in zip(lines.split(b"\n"), lines.translate(None, b"0123456789").split(b"\n"), strict=True):
            if shape in fresh and len(self._news) < NEWS_LINES:
                fresh.discard(shape)
                if start >= covered and self._has_news(line):
                    covered = start
                    for _ in range(1 + CONTEXT_LINES):
                        covered = _line_end(body, covered)
                    self._news.append(self._keep(body, start, covered))
            start += len(line) + 1

    def _fresh(self, lines: bytes) -> set[bytes]:
        """Shapes (lines without their digits) that were not met before."""
        shapes = set(lines.translate(None, b"0123456789").split(b"\n"))
        fresh = shapes - self._shapes
        if len(self._shapes) > SHAPES:
            self._shapes.clear()
        self._shapes |= fresh
        return fresh

    def _has_news(self, line: bytes) -> bool:
        small = line.lower()
        return any(word in small for word in NEWS_WORDS) and self._is_news(line[:LINE_BYTES].decode(errors="replace"))

    def _keep(self, body: bytes, start: int, end: int) -> _Kept:
        """A long one is cut, and the cut hides the bytes but not their line ends."""
        data = body[start:end]
        if len(data) > LINE_BYTES:
            end = max(_line_end(body, start), start + data.rfind(b"\n", 0, LINE_BYTES) + 1)
            data = body[start:end]
        if len(data) > LINE_BYTES:
            data = data[: LINE_BYTES - 1] + data[-1:]
        before = self._lines + body.count(b"\n", 0, start)
        return _Kept(self._position + start, self._position + end, data, before)

    def _tail(self) -> _Kept:
        recent = self._recent
        ends = [at + 1 for at, byte in enumerate(recent) if byte in b"\n\r" and at + 1 < len(recent)]
        first = 0 if self._position <= len(recent) else (ends[0] if ends else 0)
        if len(ends) > TAIL_LINES:
            first = ends[-TAIL_LINES]
        data = recent[first:]
        return _Kept(self._position - len(data), self._position, data, self._lines - data.count(b"\n"))


def _line_end(data: bytes, start: int) -> int:
    """Position behind the line that holds ``start``."""
    newline = data.find(b"\n", start)
    carriage = data.find(b"\r", start, newline if newline >= 0 else len(data))
    if carriage >= 0:
        return carriage + 1
    return newline + 1 if newline >= 0 else len(data)


def _line_start(data: bytes, inside: int) -> int:
    return max(data.rfind(b"\n", 0, inside), data.rfind(b"\r", 0, inside)) + 1
