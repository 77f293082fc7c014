"""Progress of a run, folded from its output: ``read_progress(state, text, shapes) -> state``.

Only what the trainer prints is used; the training script needs no change. The state after the same text is the same
for any chunking of it (the unfinished segment is read provisionally, on top of the finished ones). Known limit: a bar
without label, rate or loss that counts files before training looks like a training bar until a second bar or a line
with a loss follows.
"""

from collections.abc import Iterable

import msgspec

from ...model.progress import Phase, Progress
from ..text.lines import Finished, LineFold, fold, is_dense, lines_with, plain
from ..text.position import loss_curve, opening
from ..text.position.loss_run import LossRun
from ..text.position.reading import Reading
from ..text.position.run_count import next_attempt
from ..text.shapes.segments import read_segment
from ..text.shapes.shape_table import ShapeTable
from .redraws import read_dense


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
    def heartbeats(self) -> int:
        """How often the position advanced in training. A bar redrawn at the same step adds none."""
        return self.now.heartbeats

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
        """The phase that the newest lines show."""
        return self.now.progress.phase

    @property
    def finished_words(self) -> bool:
        """The log announced the end of training, and no training line followed."""
        return self.now.finished_words

    @property
    def loss_is_nan(self) -> bool:
        """The newest printed loss was NaN or infinite (``progress.loss`` is None then)."""
        return self.now.loss_is_nan

    @property
    def losses(self) -> LossRun:
        """How long the printed loss has been NaN."""
        return self.now.losses


START = ProgressState()


def begin_attempt(before: ProgressState, *, resumed: bool = False, began: int | None = None) -> ProgressState:
    """The state for the log of the next attempt: how its counters count, and whether its losses are averages.

    ``resumed``: it is not known to begin at the beginning; ``began``: the step at which it is told to begin.
    """
    run = next_attempt(before.now.run, resumed=resumed, began=began)
    name = None if before.now.counts and not before.now.chosen else before.now.name
    reading = Reading(run=run, losses=LossRun(acts_as_average=before.losses.acts_as_average), name=name)
    return ProgressState(settled=reading, now=reading)


def after_gap(before: ProgressState) -> ProgressState:
    """The state after text that was left out: where the attempt began is not certain any more. A line begins."""
    return ProgressState(LineFold(lines=before.fold.lines), _after_gap(before.settled), _after_gap(before.now))


def _after_gap(reading: Reading) -> Reading:
    begun, curve = opening.after_gap(reading.opening), loss_curve.after_gap(reading.curve)
    return msgspec.structs.replace(reading, opening=begun, curve=curve)


_GROWING = "0123456789.,+-eE"
"""Characters after which a number may continue."""


def read_progress(state: ProgressState, text: str, shapes: ShapeTable, *, skim: bool = False) -> ProgressState:
    """The state after ``text`` (any chunk of the log, decoded).

    ``skim``: only the state at the end is needed, not how often the training advanced.
    """
    if not text:
        return state
    before = state.fold
    after, done = fold(before, text)
    settled = state.settled
    if done.text:
        if before.rest and text[0] in "\r\n" and before.rest[-1] not in _GROWING:  # ``now`` has read the rest
            settled = state.now
            done = msgspec.structs.replace(done, text=done.text[len(before.rest) :])
        if skim and not shapes.own_gates and is_dense(done.text, shapes.gates):
            settled = read_dense(settled, done, shapes)
        elif len(done.text) > 1:
            settled = _read_finished(settled, done, shapes)
    now = settled
    if after.rest:
        rest = plain(after.rest)
        if settled.columns is not None or shapes.gates.any.search(rest):
            now = read_segment(settled, rest, after.lines + 1, shapes)
            if after.rest[-1] in _GROWING:  # "loss=0.0" may become "loss=0.0912"
                progress = msgspec.structs.replace(now.progress, loss=settled.progress.loss)
                now = msgspec.structs.replace(
                    now,
                    progress=progress,
                    loss_is_nan=settled.loss_is_nan,
                    losses=settled.losses,
                    curve=settled.curve,
                )
    return ProgressState(after, settled, now)


def _read_finished(reading: Reading, done: Finished, shapes: ShapeTable) -> Reading:
    """The reading after the segments with a gate; below the head of a table, after all: its rows have none."""
    below, read_to = reading.columns is not None, -1
    for number, end, line in () if below else lines_with(done, shapes.gates):
        reading = read_segment(reading, line, number, shapes)
        if reading.columns is not None:
            below, read_to = True, end
            break
    for number, end, line in done.segments() if below else ():
        if end > read_to and (reading.columns is not None or shapes.gates.any.search(line) is not None):
            reading = read_segment(reading, line, number, shapes)
    return reading


def progress_of(chunks: Iterable[str], shapes: ShapeTable) -> Progress:
    """The state after the last line of a log given in chunks (``trainwatch progress``)."""
    state = START
    for chunk in chunks:
        state = read_progress(state, chunk, shapes, skim=True)
    return read_progress(state, "\n", shapes).progress
