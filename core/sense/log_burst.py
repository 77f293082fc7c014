"""A stretch of log that came faster than it can be judged, reduced to what matters. Pure.

Kept: lines with news, the last state of a progress bar, and the last lines. The file is the lossless store.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

NEWS_WORDS = re.compile(
    rb"rror|RROR|xception|raceback|atal|FATAL|illed|KILL|CUDA|cuda|NCCL|nccl|NaN|nan\b|\binf\b|out of memory|"
    rb"OutOfMemory|[Ss]egm|SIG[A-Z]|[Nn]o space|bort|ssert|[Ff]ail|FAIL|ime(?:d )?-?out|Xid|core dumped|arning|WARN|"
    rb"heckpoint|[Ss]av(?:ed|ing)|[Ee]poch|[Uu]nable|annot|orrupt|enied|roken pipe|terminated|unreachable"
)
"""Cheap look for words that news may contain, before the dear question. Case as programs write it: ignoring case
costs ten times as much (measured: 10 against 111 MB/s)."""
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
_SHAPE = bytes.maketrans(b"0123456789\r", b"0000000000\n")


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

    Lines that differ only in digits are asked about once: floods repeat themselves (measured: 480 MB/s for those,
    110 MB/s for lines that are all different). ``\r`` ends a line like ``\n``.
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
        start = covered = 0
        for shape in body.translate(_SHAPE).split(b"\n"):
            end = start + len(shape) + 1
            if shape not in self._shapes:
                self._shapes.add(shape)
                if (
                    start >= covered
                    and len(self._news) < NEWS_LINES
                    and NEWS_WORDS.search(shape)
                    and self._is_news(body[start : start + LINE_BYTES].split(b"\n", 1)[0].decode(errors="replace"))
                ):
                    covered = start
                    for _ in range(1 + CONTEXT_LINES):
                        covered = _line_end(body, covered)
                    self._news.append(self._keep(body, start, covered))
            start = end
        if len(self._shapes) > SHAPES:
            self._shapes.clear()

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
