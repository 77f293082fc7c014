"""The named numbers of a log: lr, grad norm, tokens per second, validation loss, whatever the trainer prints by name.

They are for charts and reports; nothing is decided by them, so they are no part of the judge's state. Numbers count
in lines of training and evaluation, and in the rows of a table or block around such a line; settings printed before
the training do not, nor do rows, and lines without a loss or learning rate, that are printed only until the counter of
an attempt first moves on (kohya: batches per epoch, total optimization steps; "running training: 420 steps"): a value
that is printed once in a preamble is a setting. Known limit: rows of a block above the first line with a step count
only if they begin with "|".
"""

from collections import deque
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

from ..model.observation import MOST_METRICS
from ..model.progress import Phase
from .text.carriers import message_of, own_text
from .text.columns import values_in
from .text.line_fields import Metrics, find_loss, is_evaluation, metrics_of, row_of
from .text.lines import LineFold, fold, plain
from .text.numbers import unwrapped
from .text.reading import Reading
from .text.shapes import ShapeTable
from .text.worded_lines import read_segment

BLOCK_LINES = 60
"""Lines after a training line in which a row belongs to its block: the longest table of a library has about forty."""
PREAMBLE_HEARTBEATS = 1
"""The first sign of the counter (0/48) ends no preamble: kohya prints its settings before and after it."""
REDRAWS_READ = 2
"""Of the redraws of a line the last ones are read: the others held the same names."""


class MetricReader:
    """Reads the text of one attempt after the other; any chunking at line ends gives the same values.

    ``values``: the newest of each name, None = NaN or infinite. ``left_out``: names beyond ``MOST_METRICS``.
    """

    def __init__(self, shapes: ShapeTable) -> None:
        self._shapes = shapes
        self._fold = LineFold()
        self._reading = Reading()
        self._row_until = 0
        self._table: Metrics = {}
        self._fresh: set[str] = set()
        self._left_out: set[str] = set()
        self._known: Metrics = {}
        self._series: set[str] = set()
        """Names that are no settings: in a line with a loss or learning rate, or after the counter had moved on."""
        self._moved = False

    @property
    def values(self) -> Metrics:
        """By name; settings of the preamble count only in a log without a further step."""
        if not self._moved:
            return self._known
        return {name: value for name, value in self._known.items() if name in self._series}

    @property
    def left_out(self) -> int:
        """How many names were not kept (counted to ``MOST_METRICS``)."""
        return len(self._left_out)

    def begin_attempt(self) -> None:
        self._fold, self._reading, self._row_until, self._table = LineFold(), Reading(), 0, {}

    def read(self, text: str, *, skipped: bool = False) -> None:
        """Take the numbers of the lines that ``text`` finishes. ``skipped``: lines before it were left out."""
        if skipped:
            self._fold = LineFold(lines=self._fold.lines)
        self._fold, done = fold(self._fold, text)
        for number, redraws in groupby(done.segments(), key=itemgetter(0)):
            for _, _, line in deque(redraws, REDRAWS_READ):
                self._read_line(number, line)

    def take(self) -> Mapping[str, float]:
        """The finite values that were read since the last call."""
        sure = sorted(self._fresh & self._series)
        self._fresh.difference_update(sure)
        return {name: value for name in sure if (value := self._known[name]) is not None}

    def _read_line(self, number: int, line: str) -> None:
        before = self._reading
        line = unwrapped(plain(own_text(line).text.rpartition("\n")[2]))
        if before.goes_on or self._shapes.gates.any.search(line) is not None:
            self._reading = read_segment(before, line, number, self._shapes)
        row = row_of(line) if number <= self._row_until or line.lstrip()[:1] == "|" else None
        phase = self._reading.progress.phase
        if _trained(before, self._reading):
            table = {} if before.columns is None else values_in(before.columns, line.lower())
            self._keep(self._table | (dict([row]) if row is not None and not table else {}), setting=True)
            found = table or (metrics_of(line) if row is None else {})
            self._keep(found, setting=not _learned(before, self._reading))
        elif before.heartbeats and (found := _evaluated(message_of(line), phase)):
            self._keep(found)
        elif row is not None and number <= self._row_until:
            self._keep({row[0] if phase != "eval" else _evaluation_name(row[0]): row[1]}, setting=True)
            self._row_until = max(self._row_until, number + BLOCK_LINES // 2)
            return
        elif row is not None:
            self._table[row[0]] = row[1]
            return
        else:
            return
        self._table = {}
        self._row_until = number + BLOCK_LINES

    def _keep(self, found: Metrics, *, setting: bool = False) -> None:
        """``setting``: in a preamble these may be settings."""
        self._moved = self._moved or self._reading.heartbeats > PREAMBLE_HEARTBEATS
        sure = not setting or self._reading.heartbeats > PREAMBLE_HEARTBEATS
        for name, value in found.items():
            if name not in self._known and len(self._known) >= MOST_METRICS:
                if len(self._left_out) < MOST_METRICS:
                    self._left_out.add(name)
                continue
            self._known[name] = value
            self._fresh.add(name)
            if sure:
                self._series.add(name)


def _trained(before: Reading, after: Reading) -> bool:
    """The line told about training: its counter moved, or it holds a loss or a learning rate."""
    if after is before or after.progress.phase not in ("train", "finish"):
        return False
    moved = after.heartbeats > before.heartbeats or before.progress.epoch != after.progress.epoch
    return moved or _learned(before, after)


def _learned(before: Reading, after: Reading) -> bool:
    old, new = before.progress, after.progress
    return after.losses != before.losses or (old.loss, old.lr) != (new.loss, new.lr)


def _evaluated(line: str, phase: Phase) -> Metrics:
    """The numbers of a line about an evaluation; none if it is another line."""
    low = line.lower()
    if not is_evaluation(low, find_loss(low)):
        return {}
    found = metrics_of(line)
    if phase != "eval" and not any(word in name.lower() for name in found for word in _EVALUATION):
        return {}
    return {_evaluation_name(name): value for name, value in found.items()}


_EVALUATION = ("val", "eval", "test")


def _evaluation_name(name: str) -> str:
    """The name with "eval/" before it if it does not say itself that it is of an evaluation."""
    low = name.lower()
    return name if any(word in low for word in _EVALUATION) else f"eval/{name}"
