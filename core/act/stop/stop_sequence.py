"""The stop ladder: SIGINT, then SIGTERM, then SIGKILL to a whole process tree, each with time to react.

Nobody is killed while a checkpoint is being written, unless the file stands still. Under WSL2 the ladder is gentler: a
CUDA process that is killed there can break the GPU's channel until the virtual machine restarts, so it gets more time,
and those without the GPU are killed first, which often ends the others, too.

Standard library only. :class:`Ladder` never sleeps, so that the runner can go on copying a terminal while it climbs: a
trainer blocked in a write to a full terminal could not react to SIGINT. :func:`climb` drives it where blocking is fine.
"""
# No pathlib here: the runner imports this.
# ruff: noqa: PTH115, PTH208

import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from ..processes import GONE_STATES, Members, Process, look, send

POLL_S = 0.05
"""How often a tree that is ending is looked at. A look costs about 10 us per process on the machine."""
SLOW_POLL_S = 0.1
"""The same without a runner, where each look also reads environments."""
KILL_GRACE_S = 5.0
"""After SIGKILL: what is still there then sits in the kernel (state D, a stuck driver call) and nothing ends it."""
STOPPED_STATES = frozenset("Tt")
WSL_INTERRUPT_S = 60.0
WSL_TERMINATE_S = 60.0
"""Least graces under WSL2: a synchronisation over the channel takes many times what it takes on bare metal."""
WSL_WORKERS_S = 15.0
"""After the workers were killed: a trainer that waited for them ends by itself."""
GPU_CHANNEL = "/dev/dxg"
HOLD_POLL_S = 0.5
"""How often a save is looked at before a kill."""


class Rung(NamedTuple):
    """One signal and how long to wait for it to work, in seconds. ``spares_gpu``: not to who has the GPU open."""

    signal: int
    grace_s: float
    spares_gpu: bool = False


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


def rungs(mode: str, interrupt_grace_s: float, terminate_grace_s: float, *, wsl: bool = False) -> tuple[Rung, ...]:
    """The rungs of mode "gentle" (all) or "kill" (only the last: a person asked for it)."""
    last = Rung(signal.SIGKILL, KILL_GRACE_S)
    if mode == "kill":
        return (last,)
    if wsl:
        return (
            Rung(signal.SIGINT, max(interrupt_grace_s, WSL_INTERRUPT_S)),
            Rung(signal.SIGTERM, max(terminate_grace_s, WSL_TERMINATE_S)),
            Rung(signal.SIGKILL, WSL_WORKERS_S, spares_gpu=True),
            last,
        )
    return Rung(signal.SIGINT, interrupt_grace_s), Rung(signal.SIGTERM, terminate_grace_s), last


def has_gpu_open(process: Process) -> bool:
    """Whether the process uses the GPU under WSL2."""
    folder = f"/proc/{process.pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{number}") == GPU_CHANNEL for number in os.listdir(folder))
    except OSError:
        return False


def never(_processes: list[Process]) -> bool:
    """Nothing is being saved."""
    return False


class Ladder:
    """Ends the tree that ``members`` reports. Call :meth:`advance` about every ``POLL_S`` until it returns a result.

    ``saving``: whether these processes write a checkpoint now; a gentle ladder does not go on to SIGKILL meanwhile.
    """

    def __init__(
        self,
        steps: tuple[Rung, ...],
        members: Members,
        clock: Callable[[], float] = time.monotonic,
        *,
        saving: Callable[[list[Process]], bool] = never,
        uses_gpu: Callable[[Process], bool] = has_gpu_open,
    ) -> None:
        self._steps = steps
        self._saving = saving
        self._uses_gpu = uses_gpu
        self._hold_until: float | None = None
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
            if self._holds(living, now):
                return None
            self._rung, self._rung_begun = self._rung + 1, now
            self._told.clear()
        self._signal(living)
        return None

    def _holds(self, living: list[Process], now: float) -> bool:
        """Whether the next rung has to wait: it kills, and a checkpoint is being written."""
        if self._steps[self._rung + 1].signal != signal.SIGKILL or self._steps[self._rung].signal == signal.SIGKILL:
            return False
        if self._hold_until is None or now >= self._hold_until:
            self._hold_until = now + HOLD_POLL_S if self._saving(living) else None
        return self._hold_until is not None

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
        number, _, spares_gpu = self._steps[self._rung]
        for process in living:
            if process.key in self._told and number != signal.SIGKILL:
                continue
            if spares_gpu and self._uses_gpu(process):
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
