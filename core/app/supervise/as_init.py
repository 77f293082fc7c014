"""trainwatch as PID 1 of a container: a small init before everything else.

PID 1 gets no default signal handling, and every process whose parent has ended becomes its child. So the program goes
on in a child, and PID 1 passes signals to it, waits for all processes that end, and ends with the child's exit status.
It stays while a run is still looked after (``run --detach``, a screen that was left): the end of PID 1 ends them all.

Standard library only: it is asked before anything else is imported.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

AS_INIT = "TRAINWATCH_AS_INIT"
"""Set for all processes below such a PID 1."""
PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
OURS = (b"trainwatch.core.act.launch.runner", b"\0supervise\0")
"""In the command line of processes that look after a run."""
LOOK_S = 1.0


def divide_if_init() -> None:
    """Return at once unless this process is PID 1; then return in a child, and never in PID 1 itself."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(OSError):
        if os.readlink("/proc/self") != "1":  # noqa: PTH115
            sys.stderr.write(
                "trainwatch: this is PID 1, but /proc is that of another PID namespace: no process can be watched; "
                "start it with `unshare --pid --fork --mount-proc`\n"
            )
            os._exit(2)
    seen: list[int] = []
    child = 0

    def pass_on(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    for number in PASSED:
        signal.signal(number, pass_on)
    os.environ[AS_INIT] = "1"
    child = os.fork()
    if child == 0:
        for each in PASSED:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
        return
    for early in tuple(seen):  # those that came before the child was there; twice does no harm
        os.kill(child, early)
    os._exit(_wait(child, seen))


def _wait(child: int, seen: list[int]) -> int:
    """Wait for every process that ends; the exit status of ``child``, 128 + the signal that ended it.

    ``seen``: signals that were passed on to it; a screen that ends by one leaves a supervisor that has not got it.
    """
    status = _reap_until(child)
    if _looks_after():
        if signal.SIGTERM in seen:
            _end_all(signal.SIGTERM)
        for number in PASSED:
            signal.signal(number, lambda number, _frame: _end_all(number))
        while _looks_after():
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(LOOK_S)
    return status


def _reap_until(child: int) -> int:
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return 1
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_all(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def _looks_after() -> bool:
    """Whether a runner or a supervisor lives."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if any(words in line for words in OURS):
                return True
    return False
