"""The steps and losses that an attempt printed, in their order, read from its log while it grows."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...config.shipped import load_log_shapes
from ...judge.progress.log_progress import START, ProgressState, begin_attempt, read_progress
from ...judge.text.shapes.shape_table import ShapeTable
from ...model.settings import Settings

MOST = 20_000
"""Printed steps that are kept; a rehearsal needs the first and the last."""


class Printed(NamedTuple):
    """One training line: the step over all epochs (None: it has none) and the loss (None: not printed, or NaN).

    ``wall``: when it was read, epoch seconds.
    """

    step: int | None
    loss: float | None
    wall: float = 0.0


class StepsReader:
    """Reads one log. A log that does not exist yet is empty.

    ``before``: the reader of the attempt before; how its log counts is known from there. ``began``: the step of the
    checkpoint from which an attempt after it begins, None = unknown.
    """

    def __init__(
        self, log: Path, settings: Settings, before: "StepsReader | None" = None, began: int | None = None
    ) -> None:
        self.log = log
        self.lines: list[Printed] = []
        self._shapes = ShapeTable(load_log_shapes(), settings.progress.shapes)
        self.state: ProgressState = START if before is None else begin_attempt(before.state, resumed=True, began=began)
        self._offset = 0
        self._rest = b""

    @property
    def total(self) -> int | None:
        """Total steps of the bar, as printed."""
        return self.state.progress.total_steps

    def read(self) -> Sequence[Printed]:
        """All training lines so far."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._offset)
                data = self._rest + file.read()
                self._offset = file.tell()
        except OSError:
            return self.lines
        now = time.time()
        whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._rest = data[whole:]
        for line in data[:whole].decode("utf-8", "replace").replace("\r", "\n").split("\n"):
            if line:
                self._add(line, now)
        return self.lines

    def _add(self, line: str, wall: float) -> None:
        before = self.state
        self.state = read_progress(before, f"{line}\n", self._shapes)
        now = self.state.settled
        beat = now.heartbeats > before.settled.heartbeats
        lossy = now.losses is not before.settled.losses
        if (beat or lossy) and len(self.lines) < MOST:
            self.lines.append(Printed(now.progress.run_step, now.progress.loss if lossy else None, wall))
