"""Progress and metrics of a run, folded from its output."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from ..model.observation import MOST_METRICS
from ..model.progress import Phase, Progress
from .scales import BLOCK_LINES
from .text.columns import values_in
from .text.fields import Metrics, find_loss, is_evaluation, metrics_of, row_of, unwrapped
from .text.line_reading import read_segment
from .text.lines import Finished, Gates, LineFold, fold, is_dense, message_of, own_text, plain
from .text.loss_run import LossRun
from .text.reading import Reading
from .text.run_count import next_attempt
from .text.shapes import ShapeTable

# Progress of a run, folded from its output: ``read_progress(state, text, shapes) -> state``.
#
# Only what the trainer prints is used; the training script needs no change. The state after the same text is the same
# for any chunking of it (the unfinished segment is read provisionally, on top of the finished ones). Known limit: a
# bar without label, rate or loss that counts files before training looks like a training bar until a second bar or a
# line with a loss follows.


class ProgressState(msgspec.Struct, frozen=True):
    """What was read from the log so far; small, and serialisable to JSON for snapshots.

    ``settled``: after the finished segments; ``now``: with the unfinished one, too (a bar has no newline yet).
    """

    fold: LineFold = LineFold()
    settled: Reading = Reading()
    now: Reading = Reading()

    @property
    def progress(self) -> Progress:
        """The state after the newest text, the fields of ``trainwatch progress --json``."""
        return self.now.progress

    @property
    def certain(self) -> Reading:
        """The state without an unfinished line that is no bar: half a line may be misread."""
        now, settled = self.now, self.settled
        return settled if now.heartbeats != settled.heartbeats and now.counters[-1].name != "bar" else now

    @property
    def advanced(self) -> bool:
        """Whether a counter rose. The first line of each counter shows where it begins, and is no progress."""
        return self.now.heartbeats > len(self.now.counters)

    @property
    def phase(self) -> Phase:
        return self.now.progress.phase


START = ProgressState()


def begin_attempt(before: ProgressState, *, resumed: bool = False, began: int | None = None) -> ProgressState:
    """The state for the log of the next attempt: how its counters count, and whether its losses are averages.

    ``resumed``: it is not known to begin at the beginning; ``began``: the step at which it is told to begin.
    """
    run = next_attempt(before.now.run, resumed=resumed, began=began)
    name = None if before.now.counts and not before.now.chosen else before.now.name
    reading = Reading(run=run, losses=LossRun(acts_as_average=before.now.losses.acts_as_average), name=name)
    return ProgressState(settled=reading, now=reading)


def after_gap(before: ProgressState) -> ProgressState:
    """The state after text that was left out: where the attempt began is not certain any more. A line begins."""
    return ProgressState(LineFold(lines=before.fold.lines), _after_gap(before.settled), _after_gap(before.now))


def _after_gap(reading: Reading) -> Reading:
    opening, curve = reading.opening, reading.curve
    opening = replace(opening, gap=opening.gap or not opening.marks)
    return replace(reading, opening=opening, curve=replace(curve, gap=curve.gap or not curve.seen))


_GROWING = "0123456789.,+-eE"
"""Characters after which a number may continue."""


LineRead = Callable[[int, str, Reading, Reading], None]
"""Told of each finished segment: its line, its plain text, the reading before it and after it."""
LogLineRead = Callable[[str | None, int, str, Reading, Reading], None]
"""The same of several logs; first the source of the log, None = the trainer's output."""


def read_progress(
    state: ProgressState, text: str, shapes: ShapeTable, *, skim: bool = False, told: LineRead | None = None
) -> ProgressState:
    """The state after ``text`` (any chunk of the log, decoded).

    ``skim``: only the state at the end is needed, not how often the training advanced. ``told``: also gets segments of
    a finished text that pass no gate, but of a row of redraws only those that are read.
    """
    if not text:
        return state
    before = state.fold
    after, done = fold(before, text)
    settled = state.settled
    if done.text:
        if before.rest and text[0] in "\r\n" and before.rest[-1] not in _GROWING:  # ``now`` has read the rest
            if told is not None:
                told(done.first_line, plain(before.rest), settled, state.now)
            settled = state.now
            done = replace(done, text=done.text[len(before.rest) :])
        if skim and not shapes.own and is_dense(done.text, shapes.gates):
            settled = read_dense(settled, done, shapes, told)
        elif len(done.text) > 1:
            settled = _read_finished(settled, done, shapes, told)
    now = settled
    if after.rest:
        rest = plain(after.rest)
        if settled.goes_on or shapes.gates.passes(rest):
            now = read_segment(settled, rest, after.lines + 1, shapes)
            if after.rest[-1] in _GROWING:  # "loss=0.0" may become "loss=0.0912"
                progress = replace(now.progress, loss=settled.progress.loss)
                now = replace(now, progress=progress, losses=settled.losses, curve=settled.curve)
    return ProgressState(after, settled, now)


def _read_finished(reading: Reading, done: Finished, shapes: ShapeTable, told: LineRead | None) -> Reading:
    """The reading after the segments with a gate; below the head of a table, after all: its rows have none."""
    gates = shapes.gates.among(done.text)
    segments = done.placed() if gates is not None or reading.goes_on or told is not None else ()
    return _read_lines(reading, ((number, line) for number, line, _ in segments), shapes, gates, told)


def _read_lines(
    reading: Reading,
    segments: Iterable[tuple[int, str]],
    shapes: ShapeTable,
    gates: Gates | None,
    told: LineRead | None,
) -> Reading:
    for number, line in segments:
        before = reading
        if reading.goes_on or (gates is not None and gates.passes(line)):
            reading = read_segment(reading, line, number, shapes)
        if told is not None:
            told(number, line, before, reading)
    return reading


def progress_of(chunks: Iterable[str], shapes: ShapeTable, told: LineRead | None = None) -> Progress:
    """The state after the last line of a log given in chunks (``trainwatch progress``)."""
    state = START
    for chunk in chunks:
        state = read_progress(state, chunk, shapes, skim=True, told=told)
    return read_progress(state, "\n", shapes, told=told).progress


# Redraws of a bar that need not be read, because redraws of the same kind stand before and after them.
#
# A bar redraws itself ten times a second: the log of one night holds a million redraws, and only the last one counts.
# Redraws are of one kind if they differ in digits, spaces and the bar's glyphs only. Of a long row of one kind (or of
# two in turn, as nested bars are) the first and the last ones are read. If those do not leave the same kind of state,
# something happened in between, and all are read.

ENDS_READ = 6
"""Redraws of a row that are read at either end: the second of a kind shows that a bar moves, and an epoch changes from
one to the next."""
_SAME = b"0123456789 :#=>." + "".join("━─╸╺╴▕▏▎▍▌▋▊▉█").encode()
"""Bytes in which two redraws of a bar may differ."""
_KEPT = attrgetter(
    *("progress.phase", "progress.total_steps", "progress.total_epochs", "end_words", "loss_is_nan"),
    *("main", "proven", "side", "run.per_epoch", "run.through", "run.base", "zero_based", "lossy", "name"),
)
_SHOWN = attrgetter("progress.loss", "progress.lr", "progress.sec_per_step")
"""Fields that a row of one kind does not change, and those that it goes on showing."""


def read_dense(reading: Reading, done: Finished, shapes: ShapeTable, told: LineRead | None = None) -> Reading:
    """The reading after all segments of ``done``. Heartbeats of skipped ones are not counted."""
    flat = done.text.replace("\r", "\n")
    parts = flat.split("\n")
    numbers: list[int] = []
    for number, line in enumerate(done.text.split("\n"), done.first_line):
        numbers += [number] * (1 + line.count("\r"))
    kinds = flat.encode(errors="surrogatepass").translate(None, _SAME).split(b"\n")
    kept = [place for place, part in enumerate(parts) if part]

    def read(reading: Reading, places: list[int]) -> Reading:
        return _read_lines(reading, ((numbers[at], plain(parts[at])) for at in places), shapes, shapes.gates, told)

    at = 0
    while at < len(kept):
        end = at + 2
        while end < len(kept) and kinds[kept[end]] == kinds[kept[end - 2]]:
            end += 1
        # Losses in columns without a name, after the GPU memory (YOLO), are recognised by their values: all are read.
        columns = any(b"G" in kinds[place] and b"oss" not in kinds[place] for place in kept[at : at + 2])
        micro = b"icro" in kinds[kept[at]]  # whether they begin again and again is seen between the ends
        if end - at < 4 * ENDS_READ or columns or micro:
            reading = read(reading, kept[at:end])
        else:
            first = read(reading, kept[at : at + ENDS_READ])
            last = read(first, kept[end - ENDS_READ : end])
            reading = last if _state(first) == _state(last) else read(first, kept[at + ENDS_READ : end])
        at = end
    return reading


def _state(reading: Reading) -> tuple[object, ...]:
    shown = (value is None for value in _SHOWN(reading))
    return (*_KEPT(reading), *shown, reading.skeletons if reading.progress.phase == "eval" else ())


# The named numbers of a log: lr, grad norm, tokens per second, validation loss, whatever the trainer prints by name.
#
# They are for charts and reports; nothing is decided by them, so they are no part of the judge's state. Numbers count
# in lines of training and evaluation, and in the rows of a table or block around such a line; settings printed before
# the training do not, nor do rows, and lines without a loss or learning rate, that are printed only until the counter
# of an attempt first moves on (kohya: batches per epoch, total optimization steps; "running training: 420 steps"): a
# value that is printed once in a preamble is a setting. Known limit: rows of a block above the first line with a step
# count only if they begin with "|".

REDRAWS_READ = 2
"""Of the redraws of a line the last ones are read: the others held the same names."""


class MetricReader:
    """Takes the lines of one attempt after the other, with the reading before and after each (``LineRead``).

    ``values``: the newest of each name, None = NaN or infinite. ``left_out``: names beyond ``MOST_METRICS``.
    """

    def __init__(self) -> None:
        self._number = self._row_until = 0
        self._before = Reading()
        self._redraws: deque[tuple[str, Reading]] = deque(maxlen=REDRAWS_READ)
        """The newest segments of the line ``_number``, and the reading after each; ``_before``: the one above it."""
        self._begun = False
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
        self._read_redraws()
        if not self._moved:
            return self._known
        return {name: value for name, value in self._known.items() if name in self._series}

    @property
    def left_out(self) -> int:
        """How many names were not kept (counted to ``MOST_METRICS``)."""
        return len(self._left_out)

    def begin_attempt(self) -> None:
        self._read_redraws()
        self._number, self._row_until, self._table = 0, 0, {}

    def read(self, number: int, line: str, before: Reading, after: Reading) -> None:
        if number != self._number:
            self._read_redraws()
            self._number, self._before = number, before
        self._redraws.append((line, after))

    def take(self) -> Mapping[str, float]:
        """The finite values that were read since the last call."""
        self._read_redraws()
        sure = sorted(self._fresh & self._series)
        self._fresh.difference_update(sure)
        return {name: value for name in sure if (value := self._known[name]) is not None}

    def _read_redraws(self) -> None:
        while self._redraws:
            line, after = self._redraws.popleft()
            self._read_line(
                self._number, unwrapped(plain(own_text(line).text.rpartition("\n")[2])), self._before, after
            )
            self._before = after

    def _read_line(self, number: int, line: str, before: Reading, after: Reading) -> None:
        row = row_of(line) if number <= self._row_until or line.lstrip()[:1] == "|" else None
        old, new, self._begun = before.progress, after.progress, after.heartbeats > 1
        learned = after.losses != before.losses or (old.loss, old.lr) != (new.loss, new.lr)
        moved = learned or after.heartbeats > before.heartbeats or old.epoch != new.epoch
        if moved and new.phase in ("train", "finish"):
            table = {} if before.columns is None else values_in(before.columns, line.lower())
            self._keep(self._table | (dict([row]) if row is not None and not table else {}), setting=True)
            found = table or (metrics_of(line) if row is None else {})
            self._keep(found, setting=not learned)
        elif before.heartbeats and (found := _evaluated(message_of(line), new.phase)):
            self._keep(found)
        elif row is not None and number <= self._row_until:
            self._keep({row[0] if new.phase != "eval" else _evaluation_name(row[0]): row[1]}, setting=True)
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
        # kohya prints its settings before and after the first sign (0/48)
        self._moved, sure = self._moved or self._begun, self._begun or not setting
        for name, value in found.items():
            if name not in self._known and len(self._known) >= MOST_METRICS:
                if len(self._left_out) < MOST_METRICS:
                    self._left_out.add(name)
                continue
            self._known[name] = value
            self._fresh.add(name)
            if sure:
                self._series.add(name)


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
