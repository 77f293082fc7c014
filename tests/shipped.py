"""The shipped tables of log shapes and failure classes, compiled once for all tests that read logs; and texts to read."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
PROGRESS = Path(__file__).parent / "fixtures" / "progress"


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a file of texts that show progress, or do not."""
    return [json.loads(line) for line in (PROGRESS / name).read_text(encoding="utf-8").splitlines()]


def progress_cases() -> dict[str, str]:
    """The texts of ``cases.jsonl``; a row with a ``form`` stands for a long log: numbered lines with quiet ones between."""
    return {
        row["id"]: row.get("text") or long_log(row["form"], row["last"], row["quiet"]) for row in rows_of("cases.jsonl")
    }


def long_log(form: str, last: int, quiet: int) -> str:
    between = "nothing here\n" * quiet
    return "".join(f"{form.format(n, 3 - n / 100)}\n{between}" for n in range(1, last + 1))


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
