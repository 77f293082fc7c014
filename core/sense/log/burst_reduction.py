"""Reduces a stretch of log that was written faster than it can be judged. Pure.

It keeps lines with news, the last state of a progress bar, and the last lines. The file itself has everything.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, Unpack

from trainbeat import PHASES, Page, page_path

from ...model.observation import HEARTBEAT, LogChunk
from ...model.ports import AttemptTarget
from ..sampler import Common, Sampler

NEWS_WORDS = (
    *(b"error", b"exception", b"traceback", b"fatal", b"fail", b"abort", b"assert", b"segm", b"signal", b"kill"),
    *(b"nccl", b"nan", b"memory", b"space", b"corrupt", b"denied", b"time", b"terminated"),
    *(b"checkpoint", b"saved", b"epoch"),
)
"""Lines without any of these (in lower case) are not checked for news. Searching each word is ten times as fast as one
regular expression for all (measured: 77 against 6 MB/s)."""
NEWS_LINES = 200
"""Most lines with NEWS_WORDS that are kept of one stretch: the first, because a cause precedes its consequences."""
CONTEXT_LINES = 15
"""Lines that are kept after one with news, because the exception is at the end of a traceback."""
LINE_BYTES = 8192
"""Most bytes of one line with its context."""
TAIL_LINES = 200
TAIL_BYTES = 32768
HELD_BYTES = 65536
"""A line without an end is handled in pieces of about this size, so that it cannot fill the memory."""
SHAPES = 20000
"""Most line shapes that are remembered as checked; beyond that the set is cleared."""
BAR = b"%|"
"""Part of every bar in tqdm's format."""
_LINES = bytes.maketrans(b"\r", b"\n")


class Piece(NamedTuple):
    """Bytes to keep, and what was skipped before them (``skipped_lines``: line ends in it)."""

    data: bytes
    skipped_bytes: int
    skipped_lines: int


class _KeptRange(NamedTuple):
    """``data`` represents the bytes from ``start`` to ``end`` of the stretch, after ``lines`` line ends."""

    start: int
    end: int
    data: bytes
    lines: int


class BurstReduction:
    r"""Call ``feed`` with the blocks of a stretch in order, then ``finish``. Memory does not grow with the stretch.

    Lines that differ only in digits are checked once, because floods repeat lines (measured: 200 MB/s for those, 70
    MB/s for lines that all differ). ``\r`` ends a line like ``\n``.
    """

    def __init__(self, is_news: Callable[[str], bool]) -> None:
        self._is_news = is_news
        self._shapes: set[bytes] = set()
        self._head: _KeptRange | None = None
        self._news: list[_KeptRange] = []
        self._bar: _KeptRange | None = None
        self._held = b""
        self._recent = b""
        self._position = 0
        self._lines = 0

    def feed(self, block: bytes) -> None:
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
        if self._head is None and body:
            self._head = self._keep(body, 0, _line_end(body, 0))
        self._take_news(body)
        bar = body.rfind(BAR)
        if bar >= 0:
            start = max(body.rfind(b"\n", 0, bar), body.rfind(b"\r", 0, bar)) + 1
            self._bar = self._keep(body, start, _line_end(body, bar))
        self._position += len(body)
        self._lines += body.count(b"\n")

    def _take_news(self, body: bytes) -> None:
        if len(self._news) >= NEWS_LINES:
            return
        lines = body.translate(_LINES)
        fresh = set(lines.translate(None, b"0123456789").split(b"\n")) - self._shapes
        if len(self._shapes) > SHAPES:
            self._shapes.clear()
        self._shapes |= fresh
        small = b"\n".join(fresh).lower()
        if not any(word in small for word in NEWS_WORDS):
            return
        start = covered = 0
        for line, shape in zip(lines.split(b"\n"), lines.translate(None, b"0123456789").split(b"\n"), strict=True):
            if shape in fresh and len(self._news) < NEWS_LINES:
                fresh.discard(shape)
                low = line.lower() if start >= covered else b""
                text = line[:LINE_BYTES] if any(word in low for word in NEWS_WORDS) else b""
                if text and self._is_news(text.decode(errors="replace")):
                    covered = start
                    for _ in range(1 + CONTEXT_LINES):
                        covered = _line_end(body, covered)
                    self._news.append(self._keep(body, start, covered))
            start += len(line) + 1

    def _keep(self, body: bytes, start: int, end: int) -> _KeptRange:
        """Keep a range. A long one is cut; the line ends of the cut part still count."""
        data = body[start:end]
        if len(data) > LINE_BYTES:
            end = max(_line_end(body, start), start + data.rfind(b"\n", 0, LINE_BYTES) + 1)
            data = body[start:end]
        if len(data) > LINE_BYTES:
            data = data[: LINE_BYTES - 1] + data[-1:]
        before = self._lines + body.count(b"\n", 0, start)
        return _KeptRange(self._position + start, self._position + end, data, before)

    def _tail(self) -> _KeptRange:
        recent = self._recent
        ends = [at + 1 for at, byte in enumerate(recent) if byte in b"\n\r" and at + 1 < len(recent)]
        first = 0 if self._position <= len(recent) else (ends[0] if ends else 0)
        if len(ends) > TAIL_LINES:
            first = ends[-TAIL_LINES]
        data = recent[first:]
        return _KeptRange(self._position - len(data), self._position, data, self._lines - data.count(b"\n"))


def _line_end(data: bytes, start: int) -> int:
    """Position after the line that contains ``start``."""
    newline = data.find(b"\n", start)
    carriage = data.find(b"\r", start, newline if newline >= 0 else len(data))
    if carriage >= 0:
        return carriage + 1
    return newline + 1 if newline >= 0 else len(data)


# What a training tells by ``trainbeat``, as lines of a log: the judge reads them as any other log of it.

Told = tuple[int | None, str]
"""Step and phase that were passed on last."""
AT_FIRST: Told = (None, "train")
LINES = {
    "load": "loading model",
    "preprocess": "caching latents",
    "compile": "compiling the model",
    "eval": "evaluating",
    "sample": "generating sample images",
    "save": "saving checkpoint",
}
"""Phase → a line that says it."""


def told_as_lines(told: Mapping[str, Any], before: Told) -> tuple[str, Told]:
    """The lines for what is new since ``before`` ("" if nothing is), and what is passed on with them."""
    step, phase = told.get("step"), told.get("phase", "train")
    phase = phase if phase in PHASES else "train"
    lines = []
    if step is not None and step != before[0]:
        total = f"/{told['total']}" if told.get("total") else ""
        loss = "" if told.get("loss") is None else f" loss={told['loss']:.6g}"
        lines.append(f"step {step}{total}{loss}")
    if phase != before[1] or lines:
        lines += [LINES[phase]] if phase in LINES else []
    return "".join(f"{line}\n" for line in lines), (step, phase)


# What a trainer tells itself by ``trainbeat``: its page of memory, as lines of a log of its own.
#
# A line per new step at most once a period, so the judge reads it as it reads any other log of the trainer: a step
# that is told is a heartbeat, and a phase that is told has the deadline of that phase.

PERIOD_S = 1.0


class HeartbeatPage(Sampler):
    """Emits what the page of the live attempt says."""

    name = "heartbeat"

    def __init__(
        self,
        *,
        interval_s: float = PERIOD_S,
        found: Callable[[str], None] = lambda _text: None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._found = found
        self._page: Page | None = None
        self._told: Told = AT_FIRST

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt; the page of one that has ended is removed."""
        before = self.target
        super().follow(target)
        if before is None or target is None or before.directory != target.directory:
            self._page, self._told = None, AT_FIRST
            if before is not None:
                with contextlib.suppress(OSError):
                    os.unlink(page_path(before.directory, sha256))  # noqa: PTH108  as trainbeat.py

    def sample(self) -> None:
        target = self.target
        if target is None:
            return
        if self._page is None:
            path = page_path(target.directory, sha256)
            if not os.path.exists(path):  # noqa: PTH110  as trainbeat.py
                return
            try:
                self._page = Page(path)
            except (OSError, ValueError):
                return
            self._found("the trainer tells its steps itself (trainbeat)")
        told = self._page.read()
        if told is None:
            return
        text, self._told = told_as_lines(told, self._told)
        if text:
            self._inbox.put(LogChunk(t=self._clock.now(), text=text, source=HEARTBEAT))
