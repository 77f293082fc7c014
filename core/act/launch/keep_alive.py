"""Replaces a supervisor that died or froze (``[supervisor] keep_alive``). Standard library only: the runner runs it.

While the trainer lives this is a thread of the runner; after it ``python -P -m trainwatch.core.act.launch.keep_alive
ATTEMPT_DIR`` continues, so that a supervisor that dies between two attempts is replaced, too. It ends when the next
attempt has started (whose runner watches) or the supervisor has ended in order.

Never two supervisors: a frozen one is killed first, and a new one is started only when the lock is free; the lock
refuses a second one in any case. One that was ended on purpose (SIGTERM, the end of the run) empties the lock's file,
and is not replaced.
"""
# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH100, PTH112, PTH118, PTH120, PTH208, PTH110

import contextlib
import fcntl
import os
import shlex
import signal
import sys
import threading
import time
from typing import Any

from ... import spool
from ...atomic_files import opened
from ...processes import file_text, read_process
from . import spawn

LOOKS = 6
"""A supervisor counts as frozen if its sign of life is unchanged at this many looks. Looks are counted and not seconds,
so that no supervisor counts as frozen because the machine was suspended or this process was stopped, too."""
BACKOFF_S = (0.0, 10.0, 60.0, 600.0)
"""Wait before the n-th replacement of supervisors that lived less than SETTLED_S; the last repeats."""
SETTLED_S = 600.0
START_S = 15.0
"""Longest time that a new supervisor needs to take the lock on a busy machine."""
SHELL = "/bin/sh"


class SupervisorWatch:
    """``wanted``: the order's ``keep_alive`` (``KeepAliveOrder``); None: nothing is watched."""

    def __init__(self, wanted: dict[str, Any] | None, directory: str) -> None:
        self._wanted = wanted or {}
        self._directory = directory
        self._over = threading.Event()
        self._sign = ""
        self._same = 0
        self._replaced = 0
        self._not_before = 0.0
        self._began = time.monotonic()

    def start(self) -> None:
        """Watch in a thread until ``hand_over``: after a supervisor that ended in order another one may come."""
        if self._wanted:
            threading.Thread(target=self.watch, args=(True,), name="keep-alive", daemon=True).start()

    def hand_over(self) -> None:
        """The trainer has ended: go on in a process of its own."""
        self._over.set()
        if self._wanted:
            module = "trainwatch.core.act.launch.keep_alive"
            _start(
                [sys.executable, "-P", "-m", module, self._directory],
                os.environ,
                os.path.join(self._directory, spool.RUNNER_LOG),
            )

    def watch(self, trains: bool = False) -> None:
        """Look until the watch is over. ``trains``: only ``hand_over`` ends it."""
        while not self._over.wait(self._wanted["frozen_s"] / LOOKS):
            try:
                if self.look() and not trains:
                    return
            except OSError as fault:
                spool.say(f"the supervisor cannot be watched: {fault}")

    def look(self) -> bool:
        """Look once. Returns whether the supervisor has ended in order, or the next attempt's runner watches."""
        wanted = self._wanted
        held, holder = lock_holder(wanted["lock"])
        if held is None:
            return not os.path.isdir(os.path.dirname(wanted["lock"]))  # deleted, and nobody made it again
        folder, own = os.path.split(os.path.abspath(self._directory))
        with contextlib.suppress(OSError):
            later = [name for name in os.listdir(folder) if name > own]
            if any(os.path.exists(os.path.join(folder, name, spool.START)) for name in later):
                return True  # the next attempt's runner watches
        if not held:
            if not holder:
                return True
            self._replace(f"the supervisor (pid {holder}) ended without saying why")
            return False
        sign = file_text(wanted["life_sign"]).strip()
        self._same = self._same + 1 if sign and sign == self._sign else 0
        self._sign = sign
        if self._same >= LOOKS:
            self._kill(sign, wanted["life_sign"])
        return False

    def _kill(self, sign: str, place: str) -> None:
        """End a frozen supervisor; the next look finds the lock free, unless it hangs in the kernel."""
        words = sign.split()
        process = read_process(int(words[0])) if words[0].isdecimal() else None
        if process is None or words[1:2] != [str(process.start_ticks)]:
            return
        with opened(place, os.O_WRONLY) as file:
            os.pwrite(file, sign.encode(), 0)  # OSError: it could give no sign, so it may live
        spool.say(f"the supervisor (pid {process.pid}) gave no sign of life at {self._same} looks: it is replaced")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)

    def _replace(self, why: str) -> None:
        wanted = self._wanted
        now = time.monotonic()
        if now < self._not_before:
            return
        if now - self._began > SETTLED_S:
            self._replaced = 0
        spool.say(f"{why}: a new one is started")
        _start(wanted["argv"], {**os.environ, **wanted["env"]}, wanted["log"])
        self._began = now
        self._replaced += 1
        self._not_before = now + START_S + BACKOFF_S[min(self._replaced, len(BACKOFF_S)) - 1]
        self._same = 0


def lock_holder(path: str) -> tuple[bool | None, str]:
    """(whether the lock is held, None: unknown, or it is missing; the pid in its file, empty: released in order)."""
    try:
        with opened(path, os.O_RDONLY) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False, os.pread(handle, 64, 0).decode("ascii", "replace").strip()
    except BlockingIOError:
        return True, ""
    except OSError:
        return None, ""


def _start(argv: list[str], env: dict[str, str] | Any, log: str) -> None:
    """Start a process in a session of its own that is no descendant of this one: a stop must not end it.

    A shell starts it and ends at once. This process is no subreaper for these milliseconds, so it becomes init's.
    """
    line = f"{shlex.join(argv)} </dev/null >>{shlex.quote(log)} 2>&1 &"
    restored = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTSTP}
    was = spawn.become_subreaper(on=False)
    try:
        shell = os.posix_spawn(SHELL, [SHELL, "-c", line], dict(env), setsigdef=restored, setsid=True)
        with contextlib.suppress(ChildProcessError):  # the runner waits for any child, too
            os.waitpid(shell, 0)
    finally:
        if was:
            spawn.become_subreaper()


def main(arguments: list[str]) -> int:
    """Watch for an attempt that has ended."""
    order = spool.read(arguments[0], spool.ORDER)
    wanted = None if order is None else order.get("keep_alive")
    if wanted is not None:
        SupervisorWatch(wanted, arguments[0]).watch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
