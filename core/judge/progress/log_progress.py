"""How far the run is, folded from its output: ``read_progress(state, text) -> state``.

Only what the trainer prints is used; nothing is asked of the training script. Whatever the chunking of the text, the
state after the same bytes is the same (the unfinished segment is read provisionally, on top of what is settled).
Known limits: a bar without any label, rate or loss that counts files before training looks like a training bar until
a second bar or a loss line says otherwise.
"""

from collections.abc import Iterable

import msgspec

from ...model.progress import Phase, Progress
from ..text.line_shapes import SHAPES, ShapeTable
from ..text.lines import LineFold, fold, is_dense, lines_with, plain
from ..text.reading import Reading
from ..text.segments import read_segment
from .redraws import read_dense


class ProgressState(msgspec.Struct, frozen=True):
    """What the log says so far; small, and serialisable to JSON for snapshots.

    ``settled`` is what finished segments said, ``now`` also reads the unfinished one (a bar waits without a newline).
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
        """Times the position advanced in training. A bar redrawn at the same step adds none, nor does talk."""
        return self.now.heartbeats

    @property
    def phase(self) -> Phase:
        """What the trainer says it is doing."""
        return self.now.progress.phase

    @property
    def phase_since_line(self) -> int:
        """Line (from 1) on which the present phase began; 0 before any."""
        return self.now.phase_line

    @property
    def finished_words(self) -> bool:
        """The log said that training finished, and no training line followed."""
        return self.now.finished_words

    @property
    def loss_is_nan(self) -> bool:
        """The newest printed loss was NaN or infinite (``progress.loss`` is None then)."""
        return self.now.loss_is_nan

    @property
    def overall_step(self) -> int | None:
        """Steps since training began, where the bar counts within the epoch; else the step as printed."""
        progress = self.now.progress
        if progress.step is None:
            return None
        if not self.now.per_epoch or progress.epoch is None or progress.total_steps is None:
            return progress.step
        return max(0, int(progress.epoch) - (0 if self.now.zero_based else 1)) * progress.total_steps + progress.step


START = ProgressState()
_GROWING = "0123456789.,+-eE"
"""Characters after which a number may go on."""


def read_progress(state: ProgressState, text: str, shapes: ShapeTable = SHAPES, *, skim: bool = False) -> ProgressState:
    """The state after ``text`` (any chunk of the log, decoded). ``shapes``: ``SHAPES`` or ``user_shapes(…)``.

    ``skim``: only what the log says at the end is wanted, not how often the training advanced.
    """
    if not text:
        return state
    before = state.fold
    after, done = fold(before, text)
    settled = state.settled
    if done.text:
        if before.rest and text[0] in "\r\n" and before.rest[-1] not in _GROWING:  # the rest is read already
            settled = state.now
            done = msgspec.structs.replace(done, text=done.text[len(before.rest) :])
        if skim and shapes is SHAPES and is_dense(done.text, shapes.gates):
            settled = read_dense(settled, done, shapes)
        elif len(done.text) > 1:
            for number, _, line in lines_with(done, shapes.gates):
                settled = read_segment(settled, line, number, shapes)
    now = settled
    if after.rest:
        rest = plain(after.rest)
        if shapes.gates.any.search(rest):
            now = read_segment(settled, rest, after.lines + 1, shapes)
            if after.rest[-1] in _GROWING:  # "loss=0.0" may be the beginning of "loss=0.0912", and zero would be news
                progress = msgspec.structs.replace(now.progress, loss=settled.progress.loss)
                now = msgspec.structs.replace(now, progress=progress, loss_is_nan=settled.loss_is_nan)
    return ProgressState(after, settled, now)


def progress_of(chunks: Iterable[str], shapes: ShapeTable = SHAPES) -> Progress:
    """The state after the last line of a log given in chunks (``trainwatch progress``)."""
    state = START
    for chunk in chunks:
        state = read_progress(state, chunk, shapes, skim=True)
    return read_progress(state, "\n", shapes).progress
