"""The stop sequence: SIGINT, then SIGTERM, then SIGKILL to a whole process tree, each with time to react.

SIGKILL waits while a checkpoint is being written, unless its file has stopped growing. Under WSL2 the graces are
longer, because a CUDA process that is killed there can break the GPU's channel until the virtual machine restarts, and
processes that do not use the GPU are killed first, which often ends the others, too.

Standard library only. :class:`StopSequence` never sleeps, so that the runner can go on copying the terminal: a
trainer blocked in a write to a full terminal could not react to SIGINT. :func:`run_to_end` drives it if blocking is
allowed.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..model.checkpoint_suffixes import DCP_SUFFIX, TENSOR_SUFFIXES
from ..processes import Process, living, open_files, send_signal, status_of

# No pathlib here: the runner stays small.
# ruff: noqa: PTH119, PTH122


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
"""WSL2's GPU device: a process that has it open uses the GPU."""
SAVE_POLL_S = 0.5
"""Period of checking, before a kill, whether a checkpoint is being written."""


FIRST, SECOND = signal.SIGINT, signal.SIGTERM
"""The signals of a gentle stop, before SIGKILL: a trainer that handles either saves a checkpoint and ends."""


class StopStep(NamedTuple):
    """One signal and the time to wait for its effect. ``spares_gpu``: do not send it to processes that use the GPU."""

    signal: int
    grace_s: float
    spares_gpu: bool = False


class SurvivorOf(NamedTuple):
    """A process that SIGKILL did not end. ``state`` as in ``/proc/PID/stat``; D: hangs in the kernel."""

    pid: int
    name: str
    state: str


class StopResult(NamedTuple):
    """Result of a stop sequence. ``signal``: name of the last signal sent, None if there was no process to signal.

    ``spared``: helpers that live on. ``by``: "runner" or "supervisor".
    """

    gone: bool
    signal: str | None
    processes: int
    seconds: float
    survivors: tuple[SurvivorOf, ...] = ()
    spared: tuple[str, ...] = ()
    by: str = "supervisor"

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "survivors": [survivor._asdict() for survivor in self.survivors]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "StopResult":
        known = {name: content[name] for name in cls._fields if name in content}
        return cls(**known)._replace(survivors=tuple(SurvivorOf(**each) for each in content["survivors"]))

    @property
    def sentence(self) -> str:
        """The result for the journal and for people."""
        if not self.gone:
            listed = ", ".join(f"{s.name} ({s.pid}, state {s.state})" for s in self.survivors)
            stuck = any(s.state == "D" for s in self.survivors)
            why = "stuck in the kernel, only a reboot or a driver reset ends them" if stuck else "not ended by SIGKILL"
            left = "1 process is" if len(self.survivors) == 1 else f"{len(self.survivors)} processes are"
            return f"{left} left after {self.seconds:.1f} s: {listed}; {why}"
        if self.signal is None:
            return "no process was left to end"
        count = "1 process" if self.processes == 1 else f"{self.processes} processes"
        return f"{count} ended by {self.signal} after {self.seconds:.1f} s"


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
    return any(path == GPU_CHANNEL for _, path, _ in open_files(process.pid))


class StopSequence:
    """Ends the tree that ``members`` returns. Call :meth:`advance` about every POLL_S until it returns a result.

    ``saving``: whether these processes write a checkpoint now; SIGKILL waits meanwhile, except in mode "kill".
    """

    def __init__(
        self,
        steps: tuple[StopStep, ...],
        members: Callable[[], Iterable[Process]],
        clock: Callable[[], float] = time.monotonic,
        *,
        saving: Callable[[list[Process]], bool] = lambda _processes: False,
        uses_gpu: Callable[[Process], bool] = has_gpu_open,
    ) -> None:
        self._steps, self._members, self._clock, self._saving, self._uses_gpu = steps, members, clock, saving, uses_gpu
        self._wait_until: float | None = None
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
                return self._result(tuple(SurvivorOf(p.pid, p.name, p.state) for p in living))
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
        now = [process for key in self._known if (process := living(key)) is not None]
        self._known = {process.key: process for process in now}
        return now

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

    def _result(self, survivors: tuple[SurvivorOf, ...]) -> StopResult:
        seconds = self._clock() - self._begun
        return StopResult(not survivors, self.last_signal, len(self._counted), seconds, survivors)


def run_to_end(sequence: StopSequence) -> StopResult:
    """Advance a sequence until its result; blocks for at most the sum of its graces and two polls."""
    while (result := sequence.advance()) is None:
        time.sleep(SLOW_POLL_S)
    return result


# Whether a process tree is writing a checkpoint now. A kill during a save leaves a torn checkpoint.
#
# Standard library only: the runner imports this. A save is seen by the files that the processes have open for writing,
# not by the folder, because other programs may copy files there. A file that does not grow for STILL_S is a hung save
# and is not waited for. Files that trainers keep open (logs, TensorBoard's events) do not count.

STILL_S = 8.0
"""A file that has not grown for this long is no longer being written. Network disks pause for seconds."""
LIMIT_S = 900.0
"""Longest wait for all saves together: a trainer that ignores signals may save repeatedly."""
LOG_SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ".jsonl", ".json", ".csv", ".tsv", ".db", ".sqlite",
                          ".sqlite-wal", ".wandb", ".lock", ".html", ".png"})  # fmt: skip
LOG_BEGINNINGS = ("events.out.tfevents",)
WEIGHT_SUFFIXES = frozenset({*TENSOR_SUFFIXES, DCP_SUFFIX})
"""What counts as a checkpoint if the output folder is unknown."""


class SaveWatch:
    """Call :meth:`writing` about every second. A file that was seen for less than STILL_S counts as growing."""

    def __init__(self, folder: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = None if folder is None else os.path.realpath(folder)
        self._clock = clock
        self._seen: dict[str, tuple[tuple[int, int], float]] = {}
        self._since: float | None = None

    def writing(self, processes: Iterable[Process]) -> bool:
        """Whether a checkpoint grows or was first seen less than STILL_S ago."""
        now = self._clock()
        growing = False
        for path, state in self._open_files(processes).items():
            before = self._seen.get(path)
            if before is None or before[0] != state:
                self._seen[path] = (state, now)
                growing = True
            elif now - before[1] < STILL_S:
                growing = True
        if not growing:
            return False
        self._since = now if self._since is None else self._since
        return now - self._since < LIMIT_S

    def _open_files(self, processes: Iterable[Process]) -> dict[str, tuple[int, int]]:
        """Path → (size, time of the last write) of checkpoints that are open for writing."""
        found: dict[str, tuple[int, int]] = {}
        for process in processes:
            for number, path, _ in open_files(process.pid, for_writing=True):
                state = status_of(f"/proc/{process.pid}/fd/{number}") if self._is_checkpoint(path) else None
                if state is not None:
                    found[path] = (state.st_size, state.st_mtime_ns)
        return found

    def _is_checkpoint(self, path: str) -> bool:
        if not path.startswith("/") or path.startswith(("/dev/", "/proc/", "/memfd:", "/anon_hugepage")):
            return False
        name = os.path.basename(path.removesuffix(" (deleted)"))
        suffix = os.path.splitext(name)[1].lower()
        if self._folder is None:
            return suffix in WEIGHT_SUFFIXES
        inside = path.startswith(self._folder.rstrip("/") + "/")
        return inside and suffix not in LOG_SUFFIXES and not name.startswith(LOG_BEGINNINGS)
