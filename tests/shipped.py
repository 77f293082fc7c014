"""The shipped tables of log shapes and failure classes, compiled once for all tests that read logs."""

from collections.abc import Iterable

from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.judge import progress
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.progress import START, MetricReader, ProgressState
from trainwatch.core.judge.text.shapes import ShapeTable
from trainwatch.core.model.progress import Progress

LOG_SHAPES = load_log_shapes()
SHAPES = ShapeTable(LOG_SHAPES)
FAILURES = load_failures()
CATALOGUE = CompiledCatalogue(FAILURES, SHAPES)


def read_progress(state: ProgressState, text: str) -> ProgressState:
    """``log_progress.read_progress`` with the shipped shapes."""
    return progress.read_progress(state, text, SHAPES)


def progress_of(chunks: Iterable[str]) -> Progress:
    """``log_progress.progress_of`` with the shipped shapes."""
    return progress.progress_of(chunks, SHAPES)


class Metrics(MetricReader):
    """The named numbers of a log that is given in chunks."""

    state = START

    def read_text(self, text: str, *, skipped: bool = False) -> None:
        before = progress.after_gap(self.state) if skipped else self.state
        self.state = progress.read_progress(before, text, SHAPES, told=self.read)

    def begin_attempt(self) -> None:
        super().begin_attempt()
        self.state = progress.begin_attempt(self.state)
