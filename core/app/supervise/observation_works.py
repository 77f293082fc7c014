"""Whether the run is really observed now: the loop turns, its sensors report, and what they report can be written."""

import time
from collections.abc import Callable

from ...model.observation import HostSample, Observation, ProcessSample

OLD_FACTOR = 5.0
OLDEST_S = 15.0
"""A sample may be so many periods old, at least this long: a busy machine delays them."""


class ObservationWorks:
    """``seen`` gets every observation; ``why_not`` may be called from any thread."""

    def __init__(self, interval_s: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = max(OLDEST_S, OLD_FACTOR * interval_s)
        self._now = now
        self._newest: dict[type[Observation], float] = {}

    def seen(self, observation: Observation) -> None:
        """Note when the machine and the trainer's processes were last seen."""
        if isinstance(observation, HostSample | ProcessSample):
            self._newest[type(observation)] = self._now()

    def why_not(self, *, turned: float, live: bool, blocked: bool) -> str | None:
        """None if it works. ``turned``: the loop's last turn, monotonic; ``live``: a trainer runs."""
        if blocked:
            return "its journal cannot be written"
        if self._now() - turned > self._limit_s:
            return f"its loop has not turned for {self._now() - turned:.0f} s"
        needed: tuple[tuple[type[Observation], str], ...] = ((HostSample, "the machine"),)
        if live:
            needed = (*needed, (ProcessSample, "the trainer's processes"))
        for kind, what in needed:
            newest = self._newest.get(kind)
            if newest is None or self._now() - newest > self._limit_s:
                age = "yet" if newest is None else f"for {self._now() - newest:.0f} s"
                return f"{what} {'was' if kind is HostSample else 'were'} not seen {age}"
        return None
