"""The stop sequence: SIGINT, then SIGTERM, then SIGKILL to a whole process tree, each with time to react.

SIGKILL waits while a checkpoint is being written, unless its file has stopped growing. Under WSL2 the graces are
longer, because a CUDA process that is killed there can break the GPU's channel until the virtual machine restarts, and
processes that do not use the GPU are killed first, which often ends the others, too.

Standard library only. :class:`StopSequence` never sleeps, so that the runner can go on copying the terminal: a
trainer blocked in a write to a full terminal could not react to SIGINT. :func:`run_to_end` drives it if blocking is
allowed.
"""
# No pathlib here: the runner imports this.
# ruff: noqa: PTH115, PTH208

import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from ..processes import DEAD_STATES, Members, Process, read_process, send_signal

POLL_S = 0.05
"""Period of polling a tree that is ending. One poll costs about 10 us per process of the machine."""
SLOW_POLL_S = 0.1
"""The same without a runner, because each poll also reads the environments of processes."""
KILL_GRACE_S = 5.0
"""After SIGKILL. A process that still exists then hangs in the kernel (state D, a stuck driver call)."""
STOPPED_STATES = frozenset("Tt")
WSL_INTERRUPT_S = 60.0
WSL_TERMINATE_S = 60.0
"""Shortest graces under WSL2: a CUDA synchronisation takes many times longer there than on bare metal."""
WSL_WORKERS_S = 15.0
"""After processes without the GPU were killed: a trainer that waited for them ends by itself."""
GPU_CHANNEL = "/dev/dxg"
SAVE_POLL_S = 0.5
"""Period of checking, before a kill, whether a checkpoint is being written."""


FIRST, SECOND = signal.SIGINT, signal.SIGTERM
"""The signals of a gentle stop, before SIGKILL: a trainer that handles either saves a checkpoint and ends."""


class StopStep(NamedTuple):
    """One signal and the time to wait for its effect. ``spares_gpu``: do not send it to processes that use the GPU."""

    signal: int
    grace_s: float
    spares_gpu: bool = False


class Survivor(NamedTuple):
    """A process that SIGKILL did not end. ``state`` as in ``/proc/PID/stat``; D: hangs in the kernel."""

    pid: int
    name: str
    state: str


class StopResult(NamedTuple):
    """Result of a stop sequence. ``signal``: name of the last signal sent, None if there was no process to signal."""

    gone: bool
    signal: str | None
    processes: int
    seconds: float
    survivors: tuple[Survivor, ...]


def stop_steps(
    mode: str, interrupt_grace_s: float, terminate_grace_s: float, *, wsl: bool = False
) -> tuple[StopStep, ...]:
    """The steps of mode "gentle" (all) or "kill" (SIGKILL only: a person asked for it)."""
    last = StopStep(signal.SIGKILL, KILL_GRACE_S)
    if mode == "kill":
        return (last,)
    if wsl:
        return (
            StopStep(FIRST, max(interrupt_grace_s, WSL_INTERRUPT_S)),
            StopStep(SECOND, max(terminate_grace_s, WSL_TERMINATE_S)),
            StopStep(signal.SIGKILL, WSL_WORKERS_S, spares_gpu=True),
            last,
        )
    return StopStep(FIRST, interrupt_grace_s), StopStep(SECOND, terminate_grace_s), last


def has_gpu_open(process: Process) -> bool:
    """Whether the process has WSL2's GPU device open."""
    folder = f"/proc/{process.pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{number}") == GPU_CHANNEL for number in os.listdir(folder))
    except OSError:
        return False


def no_save(_processes: list[Process]) -> bool:
    """For callers that do not watch saves."""
    return False


class StopSequence:
    """Ends the tree that ``members`` returns. Call :meth:`advance` about every POLL_S until it returns a result.

    ``saving``: whether these processes write a checkpoint now; SIGKILL waits meanwhile, except in mode "kill".
    """

    def __init__(
        self,
        steps: tuple[StopStep, ...],
        members: Members,
        clock: Callable[[], float] = time.monotonic,
        *,
        saving: Callable[[list[Process]], bool] = no_save,
        uses_gpu: Callable[[Process], bool] = has_gpu_open,
    ) -> None:
        self._steps = steps
        self._saving = saving
        self._uses_gpu = uses_gpu
        self._wait_until: float | None = None
        self._members = members
        self._clock = clock
        self._begun = self._step_begun = clock()
        self._step = 0
        self._known: dict[tuple[int, int], Process] = {}
        self._signalled: set[tuple[int, int]] = set()
        self._counted: set[tuple[int, int]] = set()
        self._empty_polls = 0
        self.last_signal: str | None = None

    def advance(self) -> StopResult | None:
        """Read the tree, send the signals that are due, and return the result once it is final."""
        living = self._living()
        if not living:
            # A poll can miss a child that is forked during it; two empty polls in a row cannot both miss it.
            self._empty_polls += 1
            return self._result(()) if self._empty_polls > 1 else None
        self._empty_polls = 0
        now = self._clock()
        while now - self._step_begun >= self._steps[self._step].grace_s:
            if self._step + 1 == len(self._steps):
                return self._result(tuple(Survivor(p.pid, p.name, p.state) for p in living))
            if self._waits_for_save(living, now):
                return None
            self._step, self._step_begun = self._step + 1, now
            self._signalled.clear()
        self._signal(living)
        return None

    def _waits_for_save(self, living: list[Process], now: float) -> bool:
        """Whether the next step is SIGKILL and has to wait because a checkpoint is being written."""
        if self._steps[self._step + 1].signal != signal.SIGKILL or self._steps[self._step].signal == signal.SIGKILL:
            return False
        if self._wait_until is None or now >= self._wait_until:
            self._wait_until = now + SAVE_POLL_S if self._saving(living) else None
        return self._wait_until is not None

    def _living(self) -> list[Process]:
        # A process that was seen once stays on the list, even if it was re-parented meanwhile.
        self._known.update((process.key, process) for process in self._members())
        living: list[Process] = []
        for key in list(self._known):
            process = read_process(key[0])
            if process is None or process.start_ticks != key[1] or process.state in DEAD_STATES:
                del self._known[key]
            else:
                living.append(process)
        return living

    def _signal(self, living: list[Process]) -> None:
        number, _, spares_gpu = self._steps[self._step]
        for process in living:
            if process.key in self._signalled and number != signal.SIGKILL:
                continue
            if spares_gpu and self._uses_gpu(process):
                continue
            self._signalled.add(process.key)
            try:
                if send_signal(process.key, number):
                    self._counted.add(process.key)
                    self.last_signal = signal.Signals(number).name
                if process.state in STOPPED_STATES and number != signal.SIGKILL:
                    send_signal(process.key, signal.SIGCONT)  # a stopped process reacts only to SIGKILL
            except PermissionError:
                continue  # a set-uid child: it is reported as a survivor

    def _result(self, survivors: tuple[Survivor, ...]) -> StopResult:
        seconds = self._clock() - self._begun
        return StopResult(not survivors, self.last_signal, len(self._counted), seconds, survivors)


def run_to_end(sequence: StopSequence) -> StopResult:
    """Advance a sequence until its result; blocks for at most the sum of its graces and two polls."""
    while (result := sequence.advance()) is None:
        time.sleep(SLOW_POLL_S)
    return result
