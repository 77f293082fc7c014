"""The end of an attempt: how, and when.

The runner waits for the trainer and writes ``exit.json`` atomically. Where the runner is gone, stuck, or there never
was one, the kernel still tells the time of death, and of a zombie the status (``/proc/PID/stat``, field 52).
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...model.attempt import ExitRecord
from ...model.observation import Exit
from ...model.ports import AttemptTarget, Clock, Inbox
from ..sensor_problem import OnTrouble, TroubleReport, unheard
from ..wakeup import Bell
from .pidfd_watch import DeathWatch
from .proc_stat import read_stat
from .process_identity import is_zombie

EXIT_FILE = "exit.json"
LOOK_S = 0.02
"""Period of looking for the record once the trainer is dead: the runner needs a few milliseconds (fsync)."""
GRACE_S = 0.5
"""Wait for a record after both are dead, or after the trainer's death where there is no runner."""
RUNNER_PATIENCE_S = 5.0
"""Wait for a runner that lives but does not write (disk full, stopped): longer than a slow fsync."""


class Death(NamedTuple):
    """What was found out. ``wall`` None: not recorded."""

    code: int | None
    signal: int | None
    wall: float | None


def nothing() -> None:
    """Where nobody needs to be asked before an exit is reported."""


def _may_see_status(pid: int) -> bool:
    """The kernel shows the status as 0 to those who may not see it: only our own processes, or all for root."""
    try:
        return os.geteuid() in {0, Path(f"/proc/{pid}").stat().st_uid}
    except OSError:
        return False


class ExitWatch:
    """Puts one ``Exit`` per followed attempt, within about 0.2 s of the trainer's death.

    ``before_exit`` is called just before, at most once per attempt (wiring hands in ``LogTail.drain``), so that the
    log's last lines come first in the inbox. ``code`` and ``signal`` are both None when the status was lost.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        before_exit: Callable[[], None] = nothing,
        grace_s: float = GRACE_S,
        runner_patience_s: float = RUNNER_PATIENCE_S,
        on_trouble: OnTrouble = unheard,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._before_exit = before_exit
        self._grace_s = grace_s
        self._runner_patience_s = runner_patience_s
        self._trouble = TroubleReport(on_trouble)
        self._target: AttemptTarget | None = None
        self._stopping = False
        self._bell = Bell()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin. Returns at once."""
        self._thread = threading.Thread(target=self._run, name="sense-exit", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Wait for the end of this attempt. Following the same one again changes nothing."""
        self._target = target
        self._bell.ring()

    def stop(self) -> None:
        """End and join."""
        self._stopping = True
        self._bell.ring()
        self._bell.close_after(self._thread)

    def _run(self) -> None:
        done: AttemptTarget | None = None
        while not self._stopping:
            target = self._target
            if target is None or target == done:
                self._sleep()
                continue
            try:
                death = self._wait_for(target)
            except Exception as fault:
                self._trouble.say(
                    "exit",
                    f"{target.directory}: the end of attempt {target.number} cannot be watched "
                    f"({fault!r}); it is tried again",
                )
                time.sleep(LOOK_S)
                continue
            if death is not None:
                done = target
                self._report(death)

    def _sleep(self) -> None:
        with_nothing = DeathWatch({})
        with_nothing.wait(None, self._bell.fileno())
        self._bell.quieten()

    def _wait_for(self, target: AttemptTarget) -> Death | None:
        """Block until the attempt is over; None when another one is to be followed or the sensor ends."""
        watch = DeathWatch({"trainer": target.trainer, "runner": target.runner})
        dead_since: float | None = None
        runner_dead_since: float | None = None
        try:
            while not self._stopping and self._target == target:
                now = time.monotonic()
                death = self._recorded(target)
                if death is not None:
                    return death
                if not watch.alive("runner") and runner_dead_since is None:
                    runner_dead_since = now
                if not watch.alive("trainer"):
                    dead_since = dead_since or now
                    given_up = (
                        now - dead_since > self._runner_patience_s
                        if runner_dead_since is None
                        else now - max(dead_since, runner_dead_since) > self._grace_s
                    )
                    if given_up or (target.runner is None and is_zombie(target.trainer)):
                        return self._unrecorded(target)
                watch.wait(None if dead_since is None else LOOK_S, self._bell.fileno())
                self._bell.quieten()
        finally:
            watch.close()
        return None

    def _recorded(self, target: AttemptTarget) -> Death | None:
        path = Path(target.directory, EXIT_FILE)
        try:
            record = msgspec.json.decode(path.read_bytes(), type=ExitRecord)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as fault:
            self._trouble.say("exit.json", f"{path} cannot be read ({fault}); how the trainer ended may stay unknown")
            return None
        return Death(record.code, record.signal, record.wall)

    def _unrecorded(self, target: AttemptTarget) -> Death:
        """What the kernel still knows: the wait status of a zombie, where we may see it."""
        stat = read_stat(target.trainer.pid) if is_zombie(target.trainer) else None
        if stat is None or not _may_see_status(target.trainer.pid):
            return Death(None, None, None)
        if os.WIFSIGNALED(stat.exit_status):
            return Death(None, os.WTERMSIG(stat.exit_status), None)
        return Death(os.WEXITSTATUS(stat.exit_status), None, None)

    def _report(self, death: Death) -> None:
        noticed_t = self._clock.now()
        try:
            self._before_exit()
        except Exception as fault:
            self._trouble.say("log", f"the last lines of the log could not be read first ({fault!r})")
        t = self._clock.now()
        ago_s = 0.0 if death.wall is None else max(0.0, self._clock.wall() - death.wall)
        died_t = noticed_t if death.wall is None else max(0.0, t - ago_s)
        self._inbox.put(Exit(t=t, code=death.code, signal=death.signal, died_t=died_t))
