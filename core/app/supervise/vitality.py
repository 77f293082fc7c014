"""Shows that this supervisor lives: its sign of life on disk, and its answer to the question how it is."""

import os
import threading
import time
from types import TracebackType
from typing import Any, Self

import msgspec

from ...sense.process.proc_stat import read_stat
from ...store.life_sign import BEAT_S, LifeSignWriter
from ...store.run_directory import RunDirectory
from .own_troubles import OwnTroubles

START_S = 120.0
"""Longest time in which the sign of life is written for a loop that has not begun: it reads the journal, the plan and
the folder first."""


class Vitality:
    """Use as a context manager while the run's lock is held. ``turn`` is called at each turn of the loop."""

    def __init__(self, run: RunDirectory) -> None:
        own = read_stat(os.getpid())
        self.troubles = OwnTroubles()
        self._sign = LifeSignWriter(run.life_sign, start_ticks=own.start_ticks if own is not None else 0)
        self._begun = threading.Event()

    def turn(self) -> None:
        self._begun.set()
        self._sign.beat()

    def report(self) -> dict[str, Any]:
        """``age_s``: seconds since the loop's last turn; ``troubles``: what is wrong with trainwatch itself."""
        return {
            "age_s": max(0.0, time.monotonic() - self._sign.turned),
            "troubles": msgspec.to_builtins(self.troubles.now()),
        }

    def __enter__(self) -> Self:
        self._sign.beat()
        threading.Thread(target=self._until_begun, name="starting", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._begun.set()
        self._sign.close()

    def _until_begun(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and not self._begun.wait(BEAT_S):
            self._sign.beat()
