"""Shows that this supervisor lives: its sign of life on disk, and its answer to the question how it is.

It also lets the StateKeeper look at trainwatch's own files at each turn.
"""

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgspec

from ...act.notify import Outbox
from ...sense.process.proc_stat import read_stat
from ...store.life_sign import BEAT_S, LifeSignWriter
from ...store.lock import SupervisorLock
from ...store.metrics.latest import ProgressPoint
from ...store.run_directory import RunDirectory
from ...store.service_manager import ServiceManager
from .observation_works import ObservationWorks
from .own_troubles import OwnTroubles
from .state_keeper import StateKeeper

START_S = 120.0
"""Longest time in which the sign of life is written for a loop that has not begun: it reads the journal, the plan and
the folder first."""


class Vitality:
    """Use as a context manager while the run's lock is held. ``turn`` is called at each turn of the loop."""

    def __init__(self, run: RunDirectory, lock: SupervisorLock, *, turning: Callable[[], None] = lambda: None) -> None:
        self._turning = turning
        own = read_stat(os.getpid())
        self.troubles = OwnTroubles()
        spec = run.load_spec()
        self.outbox = Outbox(spec)
        self.keeper = StateKeeper(run, spec, lock, self.troubles, self.outbox)
        self._sign = LifeSignWriter(run.life_sign, start_ticks=own.start_ticks if own is not None else 0)
        self.newest: Callable[[], ProgressPoint | None] = lambda: None
        self._manager = ServiceManager()
        self._begun = threading.Event()
        self.observation = ObservationWorks(spec.settings.watch.interval_s)

    def turn(self) -> None:
        if not self._begun.is_set():
            self._begun.set()
            self._manager.ready()
        self._sign.beat()
        self._manager.alive()
        self.keeper.turn()
        self._turning()

    def report(self) -> dict[str, Any]:
        """``age_s``: seconds since the loop's last turn; ``troubles``: what is wrong with trainwatch itself.

        ``progress``: the newest, which status shows also if nothing can be written.
        """
        return {
            "age_s": max(0.0, time.monotonic() - self._sign.turned),
            "troubles": msgspec.to_builtins(self.troubles.now()),
            "progress": msgspec.to_builtins(self.newest()),
        }

    def why_blind(self, *, live: bool) -> str | None:
        """Why the run is not really observed now; None if it is. ``live``: a trainer runs."""
        blocked = any(trouble.kind == "journal" for trouble in self.troubles.now())
        return self.observation.why_not(turned=self._sign.turned, live=live, blocked=blocked)

    def __enter__(self) -> Self:
        self._sign.beat()
        threading.Thread(target=self._until_begun, name="starting", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._begun.set()
        self._manager.stopping()
        self.keeper.close()
        self._sign.close()

    def _until_begun(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and not self._begun.wait(BEAT_S):
            self._sign.beat()
            self._manager.alive()
