"""Pausing an attempt: SIGSTOP and SIGCONT to its whole tree. Its GPU memory stays held."""

import signal
import time

import msgspec

from ...model.ports.supervision import AttemptTarget
from .. import processes
from .stop_sequence import STOPPED_STATES
from .stopping import members

PAUSE_TIMEOUT_S = 5.0
"""A process in a system call (state D) stops only when the call returns."""
POLL_S = 0.02


class PauseReport(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: all processes are stopped, or after unpause none is. ``reluctant``: pids that have not followed yet."""

    ok: bool
    processes: int
    reluctant: tuple[int, ...] = ()


def pause_attempt(target: AttemptTarget, timeout_s: float = PAUSE_TIMEOUT_S) -> PauseReport:
    """Stop every process of the tree, new ones included, but not the runner. Blocks at most ``timeout_s``."""
    return _drive(target, signal.SIGSTOP, timeout_s, paused=True)


def unpause_attempt(target: AttemptTarget, timeout_s: float = PAUSE_TIMEOUT_S) -> PauseReport:
    """Continue every process of the tree. Harmless if they are not stopped."""
    return _drive(target, signal.SIGCONT, timeout_s, paused=False)


def _drive(target: AttemptTarget, number: signal.Signals, timeout_s: float, *, paused: bool) -> PauseReport:
    deadline = time.monotonic() + timeout_s
    while True:
        if target.trainer.boot_id != processes.boot_id():
            return PauseReport(ok=False, processes=0)
        living = members(target)
        wrong = [process for process in living if (process.state in STOPPED_STATES) != paused]
        if not wrong or time.monotonic() >= deadline:
            return PauseReport(
                ok=bool(living) and not wrong,
                processes=len(living),
                reluctant=tuple(process.pid for process in wrong),
            )
        for process in wrong:
            try:
                processes.send_signal(process.key, number)
            except PermissionError:
                continue
        time.sleep(POLL_S)
