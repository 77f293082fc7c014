"""Ending an attempt: through its runner where that lives, else directly (adopted, or the runner was killed)."""

import signal
import time
from pathlib import Path
from typing import Literal

import msgspec

from ...model.attempt import StopOrder
from ...model.ports import AttemptTarget
from ...model.run import ProcessIdentity
from .. import processes as tree
from ..launch import spool
from ..launch.launching import is_alive
from .save_in_progress import SaveWatch
from .stop_sequence import HOLD_POLL_S, POLL_S, Climb, Ladder, climb, rungs

MARGIN_S = 3.0
"""What a runner may need beyond its graces before it counts as stuck."""


class Survivor(msgspec.Struct, frozen=True, kw_only=True):
    """A process that SIGKILL did not end. ``state`` D = stuck in the kernel; a reboot ends it."""

    pid: int
    name: str
    state: str


class StopReport(msgspec.Struct, frozen=True, kw_only=True):
    """How ending a tree went. ``signal``: the last one needed, by name; None = nothing was left to end."""

    gone: bool
    signal: str | None
    processes: int
    seconds: float
    survivors: tuple[Survivor, ...] = ()
    by: Literal["runner", "supervisor"] = "supervisor"

    @property
    def sentence(self) -> str:
        """For the journal and for people."""
        if not self.gone:
            listed = ", ".join(f"{s.name} ({s.pid}, state {s.state})" for s in self.survivors)
            stuck = any(s.state == "D" for s in self.survivors)
            why = "stuck in the kernel, only a reboot or a driver reset ends them" if stuck else "not ended by SIGKILL"
            return f"{len(self.survivors)} processes are left after {self.seconds:.1f} s: {listed}; {why}"
        if self.signal is None:
            return "nothing was left to end"
        count = "1 process" if self.processes == 1 else f"{self.processes} processes"
        return f"{count} ended by {self.signal} after {self.seconds:.1f} s"


def stop_attempt(
    target: AttemptTarget,
    mode: Literal["gentle", "kill"] = "gentle",
    *,
    interrupt_grace_s: float = 20.0,
    terminate_grace_s: float = 10.0,
    saves_to: str | None = None,
    wsl: bool = False,
) -> StopReport:
    """End the trainer's whole tree and wait until nothing of it is left (or SIGKILL did not help).

    Blocks for at most the two graces plus about 8 s, and longer while a checkpoint (in ``saves_to``, if that is known)
    is being written. ``wsl``: the gentler ladder. "kill": SIGKILL at once. A call with "kill" from another thread
    overtakes a "gentle" one that is under way. Works for any target: with a live runner, without one, adopted.
    """
    begun = time.monotonic()
    steps = rungs(mode, interrupt_grace_s, terminate_grace_s, wsl=wsl)
    saves = SaveWatch(saves_to)
    if target.trainer.boot_id != tree.boot_id():
        return StopReport(gone=True, signal=None, processes=0, seconds=0.0)
    if target.runner is not None and is_alive(target.runner):
        order = StopOrder(
            mode=mode,
            interrupt_grace_s=interrupt_grace_s,
            terminate_grace_s=terminate_grace_s,
            saves_to=saves_to,
            wsl=wsl,
        )
        limit_s = sum(step.grace_s for step in steps) + MARGIN_S
        answer = _ask_runner(target, target.runner, order, limit_s, saves)
        if answer is not None and not (answer.gone and _left_behind(target)):
            return answer
        steps = steps[-1:] if answer is None and time.monotonic() - begun > MARGIN_S else steps
    ladder = Ladder(steps, lambda: members(target), saving=saves.writing)
    result = climb(ladder)
    return _report(result, time.monotonic() - begun)


def members(target: AttemptTarget) -> list[tree.Process]:
    """The live processes of an attempt, its runner left out (of a live runner: all its descendants)."""
    spare = () if target.runner is None else (target.runner.pid,)
    found = {
        process.pid: process for process in tree.family(_key(target.trainer), directory=target.directory, spare=spare)
    }
    if target.runner is not None and is_alive(target.runner):
        marked = {process.pid for process in found.values()}
        for process in tree.descendants(target.runner.pid):
            # The stack probe is a descendant of the runner, but it leads a session of its own and carries no mark.
            if process.pid not in marked and not _is_probe(process):
                found[process.pid] = process
    return list(found.values())


def _is_probe(process: tree.Process) -> bool:
    try:
        words = Path(f"/proc/{process.session}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"trainwatch.core.act.evidence.stack_probe" in words


def _left_behind(target: AttemptTarget) -> bool:
    return bool(members(target))


def _key(identity: ProcessIdentity) -> tuple[int, int]:
    return identity.pid, identity.start_ticks


def _ask_runner(
    target: AttemptTarget, runner: ProcessIdentity, order: StopOrder, limit_s: float, saves: SaveWatch
) -> StopReport | None:
    """Put the order on the desk, wake the runner, wait for its report. None when it died or is stuck.

    ``limit_s`` begins anew whenever a checkpoint is seen being written: then the runner waits, too.
    """
    try:
        spool.remove(target.directory, spool.STOPPED)
        spool.write(target.directory, spool.STOP, msgspec.to_builtins(order))
        if not tree.send(_key(runner), signal.SIGUSR1):
            return None
        tree.send(_key(runner), signal.SIGCONT)  # should someone have stopped it
    except OSError:
        return None  # a full disk must not make a run unstoppable
    now = time.monotonic()
    deadline, look_at_saves = now + limit_s, now + HOLD_POLL_S
    while now < deadline:
        alive = is_alive(runner)  # asked before the file: a runner reports, then ends
        content = spool.read(target.directory, spool.STOPPED)
        if content is not None:
            return msgspec.convert(content | {"by": "runner"}, StopReport)
        if not alive:
            return None
        time.sleep(POLL_S)
        now = time.monotonic()
        if order.mode == "gentle" and now >= look_at_saves:
            look_at_saves = now + HOLD_POLL_S
            if saves.writing(members(target)):
                deadline = max(deadline, now + limit_s)
    return None


def _report(result: Climb, seconds: float) -> StopReport:
    return StopReport(
        gone=result.gone,
        signal=result.signal,
        processes=result.processes,
        seconds=seconds,
        survivors=tuple(Survivor(pid=s.pid, name=s.name, state=s.state) for s in result.survivors),
    )
