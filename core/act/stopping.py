"""Ending an attempt: through its runner if that lives, else directly (adopted, or the runner was killed)."""

import signal
import time
from pathlib import Path
from typing import Any

import msgspec

from .. import processes, spool
from ..model.ports import AttemptTarget
from ..model.run import ProcessIdentity, StopOrder
from ..model.settings import Restart
from ..model.wrappers import CONTAINER_FILE, ContainerRecord
from ..processes import catching, is_alive
from ..spool import read_exit, read_record
from .stop_sequence import (
    POLL_S,
    SAVE_POLL_S,
    STOPPED_STATES,
    SaveWatch,
    StopResult,
    StopSequence,
    run_to_end,
    stop_steps,
)

MARGIN_S = 3.0
"""A runner that has not reported this long after its graces counts as stuck."""


def stop_attempt(target: AttemptTarget, order: StopOrder) -> StopResult:
    """End the trainer's whole process tree and wait until it has ended, or SIGKILL had no effect.

    Blocks for at most the two graces plus about 8 s, and longer while a checkpoint (in ``saves_to``, if that is known)
    is being written. "kill": SIGKILL at once; such a call from another thread replaces a "gentle" one in progress. The
    target may have a live runner, a dead one, or none (adopted).
    """
    begun = time.monotonic()
    steps = stop_steps(order.mode, order.interrupt_grace_s, order.terminate_grace_s, wsl=order.wsl)
    saves = SaveWatch(order.saves_to)
    ended = read_exit(Path(target.directory)) if order.leftovers else None
    spared = frozenset(() if ended is None else ended.spared)  # helpers that the runner found when the command failed

    def others() -> list[processes.Process]:
        return [process for process in members(target) if process.key not in spared]

    def told_of_spared(report: StopResult) -> StopResult:
        alive = tuple(f"{p.name} (pid {p.pid})" for p in members(target) if p.key in spared) if spared else ()
        return report._replace(spared=alive)

    if target.trainer.boot_id != processes.boot_id():
        return StopResult(gone=True, signal=None, processes=0, seconds=0.0)
    if target.runner is not None and is_alive(target.runner):
        limit_s = sum(step.grace_s for step in steps) + MARGIN_S
        names, watch = (spool.STOP, spool.STOPPED), saves if order.mode == "gentle" else None
        told = ask_runner(target, names, msgspec.to_builtins(order), signal.SIGUSR1, limit_s=limit_s, saves=watch)
        answer = None if told is None else StopResult.from_json(told)._replace(by="runner")
        if answer is not None and not (answer.gone and others()):
            return told_of_spared(answer)
        steps = steps[-1:] if answer is None and time.monotonic() - begun > MARGIN_S else steps
    sequence = StopSequence(steps, others, saving=saves.writing)
    return told_of_spared(run_to_end(sequence)._replace(seconds=time.monotonic() - begun))


def members(target: AttemptTarget) -> list[processes.Process]:
    """The live processes of an attempt without its runner. If the runner lives, its descendants are included.

    So are those of its container, as far as this machine shows them.
    """
    spare = () if target.runner is None else (target.runner.pid,)
    trainer = target.trainer.pid, target.trainer.start_ticks
    own = processes.attempt_processes(trainer, directory=target.directory, spare=spare)
    found = {process.pid: process for process in own}
    if target.runner is not None and is_alive(target.runner):
        marked = {process.pid for process in found.values()}
        for process in processes.descendants(target.runner.pid):
            # The stack probe is a descendant of the runner with a session of its own, and not part of the attempt.
            probe = b"trainwatch.core.act.evidence.stack_probe" in processes.words_of(process.session)
            if process.pid not in marked and not probe:
                found[process.pid] = process
    first = first_of_container(target.directory)
    top = processes.read_process(first.pid) if first is not None and is_alive(first) else None
    for process in () if top is None else (top, *processes.descendants(top.pid)):
        found.setdefault(process.pid, process)
    return list(found.values())


def first_of_container(directory: str) -> ProcessIdentity | None:
    """The first process of the attempt's container, dead or alive; None if there is none, or it is not known."""
    found = read_record(directory, CONTAINER_FILE, ContainerRecord)
    return None if found is None else found.identity


def ask_runner(
    target: AttemptTarget,
    names: tuple[str, str],
    request: dict[str, Any],
    number: int,
    *,
    limit_s: float,
    saves: SaveWatch | None = None,
) -> dict[str, Any] | None:
    """Write a request into the spool, wake the runner, wait for its answer. None: there is none, it died or is stuck.

    ``names``: of the two files. ``number``: the signal that means this request. ``limit_s`` starts again whenever a
    checkpoint is being written (``saves``), because the runner waits then.
    """
    runner = target.runner
    if runner is None or not is_alive(runner):
        return None
    key, (ask, answer) = (runner.pid, runner.start_ticks), names
    try:
        spool.remove(target.directory, answer)
        spool.write(target.directory, ask, request)
        if not processes.send_signal(key, number):
            return None
        processes.send_signal(key, signal.SIGCONT)  # in case it is stopped
    except OSError:
        return None  # a full disk
    now = time.monotonic()
    deadline, look_at_saves = now + limit_s, now + SAVE_POLL_S
    while now < deadline:
        alive = is_alive(runner)  # before the file is read: a runner reports, then ends
        content = spool.read(target.directory, answer)
        if content is not None and content.pop("request", None) == request.get("request"):
            return content
        if not alive:
            return None
        time.sleep(POLL_S)
        now = time.monotonic()
        if saves is not None and now >= look_at_saves:
            look_at_saves = now + SAVE_POLL_S
            if saves.writing(members(target)):
                deadline = max(deadline, now + limit_s)
    return None


# Pausing an attempt: SIGSTOP and SIGCONT to its whole tree. Its GPU memory stays held.

PAUSE_TIMEOUT_S = 5.0
"""A process in a system call (state D) stops only when the call returns."""
PAUSE_POLL_S = 0.02


class PauseReport(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: all processes are stopped, or after unpause none is."""

    ok: bool
    processes: int


def set_paused(target: AttemptTarget, *, paused: bool) -> PauseReport:
    """Stop, or continue, each process of the tree, new ones included, but not the runner. Blocks PAUSE_TIMEOUT_S."""
    number = signal.SIGSTOP if paused else signal.SIGCONT
    deadline = time.monotonic() + PAUSE_TIMEOUT_S
    while True:
        if target.trainer.boot_id != processes.boot_id():
            return PauseReport(ok=False, processes=0)
        living = members(target)
        wrong = [process for process in living if (process.state in STOPPED_STATES) != paused]
        if not wrong or time.monotonic() >= deadline:
            return PauseReport(ok=bool(living) and not wrong, processes=len(living))
        processes.signal_each(wrong, number)
        time.sleep(PAUSE_POLL_S)


# The stop of a trainer whose container or job is being ended: the signal that it expects there, SIGTERM, first.
#
# Only processes that catch SIGTERM get it (they save and end by it); loader workers would die of it while their
# trainer saves. A trainer without a handler gets the usual sequence at once.

INTERRUPT_SHARE, TERMINATE_SHARE = 0.6, 0.3
"""Of a short time for a stop: most for the signal at which trainers save, the rest before SIGKILL."""
OWN_HANDLER_POLL_S = 0.1
REST_S = 1.5
"""Left for the usual sequence if the handler does not end it in time."""


def end_by_own_handler(target: AttemptTarget, within_s: float) -> float:
    """Send SIGTERM to those that catch it, and wait for the end of the tree. Returns the seconds that are left."""
    begun = time.monotonic()
    told = processes.signal_each(catching(members(target), signal.SIGTERM), signal.SIGTERM)
    while told and members(target):
        if time.monotonic() - begun >= within_s - REST_S:
            break
        time.sleep(OWN_HANDLER_POLL_S)
    return max(REST_S, within_s - (time.monotonic() - begun))


def graces(restart: Restart, within_s: float | None) -> tuple[float, float]:
    """Seconds after the first and the second stop signal. ``within_s``: when the machine is ended; None = it is not."""
    interrupt_s, terminate_s = restart.interrupt_grace_s, restart.terminate_grace_s
    if within_s is None:
        return interrupt_s, terminate_s
    return min(interrupt_s, INTERRUPT_SHARE * within_s), min(terminate_s, TERMINATE_SHARE * within_s)
