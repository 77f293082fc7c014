"""The stop ladder: SIGINT, then SIGTERM, then SIGKILL to a whole process tree, each with time to react.

Standard library only. :class:`Ladder` never sleeps, so that the runner can go on copying a terminal while it climbs: a
trainer blocked in a write to a full terminal could not react to SIGINT. :func:`climb` drives it where blocking is fine.
"""

import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from .tree import GONE_STATES, Members, Process, look, send

POLL_S = 0.05
"""How often a tree that is ending is looked at. A look costs about 10 us per process on the machine."""
SLOW_POLL_S = 0.1
"""The same without a runner, where each look also reads environments."""
KILL_GRACE_S = 5.0
"""After SIGKILL: what is still there then sits in the kernel (state D, a stuck driver call) and nothing ends it."""
STOPPED_STATES = frozenset("Tt")


class Rung(NamedTuple):
    """One signal and how long to wait for it to work, in seconds."""

    signal: int
    grace_s: float


class Survivor(NamedTuple):
    """What SIGKILL did not end. ``state`` as in ``/proc/PID/stat``; D = stuck in the kernel."""

    pid: int
    name: str
    state: str


class Climb(NamedTuple):
    """How a ladder went. ``signal``: name of the last one sent, None when nothing was left to signal."""

    gone: bool
    signal: str | None
    processes: int
    seconds: float
    survivors: tuple[Survivor, ...]


def rungs(mode: str, interrupt_grace_s: float, terminate_grace_s: float) -> tuple[Rung, ...]:
    """The rungs of mode "gentle" (all three) or "kill" (only the last)."""
    last = Rung(signal.SIGKILL, KILL_GRACE_S)
    if mode == "kill":
        return (last,)
    return Rung(signal.SIGINT, interrupt_grace_s), Rung(signal.SIGTERM, terminate_grace_s), last


class Ladder:
    """Ends the tree that ``members`` reports. Call :meth:`advance` about every ``POLL_S`` until it returns a result."""

    def __init__(self, steps: tuple[Rung, ...], members: Members, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps = steps
        self._members = members
        self._clock = clock
        self._begun = self._rung_begun = clock()
        self._rung = 0
        self._known: dict[tuple[int, int], Process] = {}
        self._told: set[tuple[int, int]] = set()
        self._counted: set[tuple[int, int]] = set()
        self._empty_looks = 0
        self.last_signal: str | None = None

    def advance(self) -> Climb | None:
        """Look, signal what needs it, and return the result once there is one."""
        living = self._living()
        if not living:
            # A child born during a look can be missed by it; two empty looks in a row cannot both miss it.
            self._empty_looks += 1
            return self._result(()) if self._empty_looks > 1 else None
        self._empty_looks = 0
        now = self._clock()
        while now - self._rung_begun >= self._steps[self._rung].grace_s:
            if self._rung + 1 == len(self._steps):
                return self._result(tuple(Survivor(p.pid, p.name, p.state) for p in living))
            self._rung, self._rung_begun = self._rung + 1, now
            self._told.clear()
        self._signal(living)
        return None

    def _living(self) -> list[Process]:
        # Whoever was seen once stays on the list, even if it lost its parent (and we its trace) meanwhile.
        self._known.update((process.key, process) for process in self._members())
        living: list[Process] = []
        for key in list(self._known):
            process = look(key[0])
            if process is None or process.start_ticks != key[1] or process.state in GONE_STATES:
                del self._known[key]
            else:
                living.append(process)
        return living

    def _signal(self, living: list[Process]) -> None:
        number = self._steps[self._rung].signal
        for process in living:
            if process.key in self._told and number != signal.SIGKILL:
                continue
            self._told.add(process.key)
            try:
                if send(process.key, number):
                    self._counted.add(process.key)
                    self.last_signal = signal.Signals(number).name
                if process.state in STOPPED_STATES and number != signal.SIGKILL:
                    send(process.key, signal.SIGCONT)  # a stopped process reacts to nothing but SIGKILL
            except PermissionError:
                continue  # a set-uid child; it is reported as a survivor

    def _result(self, survivors: tuple[Survivor, ...]) -> Climb:
        seconds = self._clock() - self._begun
        return Climb(not survivors, self.last_signal, len(self._counted), seconds, survivors)


def climb(ladder: Ladder) -> Climb:
    """Drive a ladder to its end; blocks for at most the sum of its graces (and two looks)."""
    while (result := ladder.advance()) is None:
        time.sleep(SLOW_POLL_S)
    return result
