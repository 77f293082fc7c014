"""Ending an attempt: through its runner if that lives, else directly (adopted, or the runner was killed)."""

import signal
import time
from pathlib import Path
from typing import Literal

import msgspec

from ...model.attempt import StopOrder
from ...model.launch.elsewhere.container import CONTAINER_FILE, ContainerRecord
from ...model.ports.supervision import AttemptTarget
from ...model.run import ProcessIdentity
from ...model.text.plural import plural
from .. import processes
from ..launch import spool
from ..launch.attempt_records import read_exit
from ..launch.launching import is_alive
from .save_in_progress import SaveWatch
from .stop_sequence import POLL_S, SAVE_POLL_S, StopResult, StopSequence, run_to_end, stop_steps

MARGIN_S = 3.0
"""A runner that has not reported this long after its graces counts as stuck."""


class Survivor(msgspec.Struct, frozen=True, kw_only=True):
    """A process that SIGKILL did not end. ``state`` D = stuck in the kernel; a reboot ends it."""

    pid: int
    name: str
    state: str


class StopReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of ending a tree. ``signal``: name of the last signal that was needed; None: no process was left.

    ``spared``: helpers that live on.
    """

    gone: bool
    signal: str | None
    processes: int
    seconds: float
    survivors: tuple[Survivor, ...] = ()
    spared: tuple[str, ...] = ()
    by: Literal["runner", "supervisor"] = "supervisor"

    @property
    def sentence(self) -> str:
        """The result for the journal and for people."""
        if not self.gone:
            listed = ", ".join(f"{s.name} ({s.pid}, state {s.state})" for s in self.survivors)
            stuck = any(s.state == "D" for s in self.survivors)
            why = "stuck in the kernel, only a reboot or a driver reset ends them" if stuck else "not ended by SIGKILL"
            left = plural(len(self.survivors), "process is", "processes are")
            return f"{left} left after {self.seconds:.1f} s: {listed}; {why}"
        if self.signal is None:
            return "no process was left to end"
        return f"{plural(self.processes, 'process', 'processes')} ended by {self.signal} after {self.seconds:.1f} s"


def stop_attempt(
    target: AttemptTarget,
    mode: Literal["gentle", "kill"] = "gentle",
    *,
    interrupt_grace_s: float = 20.0,
    terminate_grace_s: float = 10.0,
    saves_to: str | None = None,
    wsl: bool = False,
    leftovers: bool = False,
) -> StopReport:
    """End the trainer's whole process tree and wait until it has ended, or SIGKILL had no effect.

    Blocks for at most the two graces plus about 8 s, and longer while a checkpoint (in ``saves_to``, if that is known)
    is being written. ``wsl``: the longer graces of WSL2. "kill": SIGKILL at once; such a call from another thread
    replaces a "gentle" one in progress. ``leftovers``: the trainer has ended, and helpers of its script are spared
    (helpers.py). The target may have a live runner, a dead one, or none (adopted).
    """
    begun = time.monotonic()
    steps = stop_steps(mode, interrupt_grace_s, terminate_grace_s, wsl=wsl)
    saves = SaveWatch(saves_to)
    spared = spared_helpers(target) if leftovers else frozenset()

    def others() -> list[processes.Process]:
        return [process for process in members(target) if process.key not in spared]

    if target.trainer.boot_id != processes.boot_id():
        return StopReport(gone=True, signal=None, processes=0, seconds=0.0)
    if target.runner is not None and is_alive(target.runner):
        order = StopOrder(
            mode=mode,
            interrupt_grace_s=interrupt_grace_s,
            terminate_grace_s=terminate_grace_s,
            saves_to=saves_to,
            wsl=wsl,
            leftovers=leftovers,
        )
        limit_s = sum(step.grace_s for step in steps) + MARGIN_S
        answer = _ask_runner(target, target.runner, order, limit_s, saves)
        if answer is not None and not (answer.gone and others()):
            return _with_spared(answer, target, spared)
        steps = steps[-1:] if answer is None and time.monotonic() - begun > MARGIN_S else steps
    sequence = StopSequence(steps, others, saving=saves.writing)
    result = run_to_end(sequence)
    return _with_spared(_report(result, time.monotonic() - begun), target, spared)


def members(target: AttemptTarget) -> list[processes.Process]:
    """The live processes of an attempt without its runner. If the runner lives, its descendants are included.

    So are those of its container, as far as this machine shows them.
    """
    spare = () if target.runner is None else (target.runner.pid,)
    found = {
        process.pid: process
        for process in processes.attempt_processes(_key(target.trainer), directory=target.directory, spare=spare)
    }
    if target.runner is not None and is_alive(target.runner):
        marked = {process.pid for process in found.values()}
        for process in processes.descendants(target.runner.pid):
            # The stack probe is a descendant of the runner with a session of its own, and not part of the attempt.
            if process.pid not in marked and not _is_probe(process):
                found[process.pid] = process
    for process in _in_container(target.directory):
        found.setdefault(process.pid, process)
    return list(found.values())


def _in_container(directory: str) -> list[processes.Process]:
    first = first_of_container(directory)
    if first is None or not is_alive(first):
        return []
    top = processes.read_process(first.pid)
    return [*([] if top is None else [top]), *processes.descendants(first.pid)]


def first_of_container(directory: str) -> ProcessIdentity | None:
    """The first process of the attempt's container, dead or alive; None if there is none, or it is not known."""
    content = spool.read(directory, CONTAINER_FILE)
    try:
        found = None if content is None else msgspec.convert(content, ContainerRecord)
    except msgspec.ValidationError:
        return None
    return None if found is None else found.identity


def _is_probe(process: processes.Process) -> bool:
    try:
        words = Path(f"/proc/{process.session}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"trainwatch.core.act.evidence.stack_probe" in words


def _with_spared(report: StopReport, target: AttemptTarget, spared: frozenset[tuple[int, int]]) -> StopReport:
    """The report with the spared helpers that live."""
    alive = tuple(f"{p.name} (pid {p.pid})" for p in members(target) if p.key in spared) if spared else ()
    return msgspec.structs.replace(report, spared=alive)


def spared_helpers(target: AttemptTarget) -> frozenset[tuple[int, int]]:
    """(pid, start ticks) of the helpers that the runner found when the command had failed."""
    ended = read_exit(Path(target.directory))
    return frozenset() if ended is None else frozenset(ended.spared)


def _key(identity: ProcessIdentity) -> tuple[int, int]:
    return identity.pid, identity.start_ticks


def _ask_runner(
    target: AttemptTarget, runner: ProcessIdentity, order: StopOrder, limit_s: float, saves: SaveWatch
) -> StopReport | None:
    """Write the order into the spool, wake the runner, wait for its report. None: it died or is stuck.

    ``limit_s`` starts again whenever a checkpoint is being written, because the runner waits then.
    """
    try:
        spool.remove(target.directory, spool.STOPPED)
        spool.write(target.directory, spool.STOP, msgspec.to_builtins(order))
        if not processes.send_signal(_key(runner), signal.SIGUSR1):
            return None
        processes.send_signal(_key(runner), signal.SIGCONT)  # in case it is stopped
    except OSError:
        return None  # on a full disk the attempt is ended without the runner
    now = time.monotonic()
    deadline, look_at_saves = now + limit_s, now + SAVE_POLL_S
    while now < deadline:
        alive = is_alive(runner)  # before the file is read: a runner reports, then ends
        content = spool.read(target.directory, spool.STOPPED)
        if content is not None:
            return msgspec.convert(content | {"by": "runner"}, StopReport)
        if not alive:
            return None
        time.sleep(POLL_S)
        now = time.monotonic()
        if order.mode == "gentle" and now >= look_at_saves:
            look_at_saves = now + SAVE_POLL_S
            if saves.writing(members(target)):
                deadline = max(deadline, now + limit_s)
    return None


def _report(result: StopResult, seconds: float) -> StopReport:
    return StopReport(
        gone=result.gone,
        signal=result.signal,
        processes=result.processes,
        seconds=seconds,
        survivors=tuple(Survivor(pid=s.pid, name=s.name, state=s.state) for s in result.survivors),
    )
