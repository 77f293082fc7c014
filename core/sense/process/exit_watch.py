"""The sensor of an attempt's end: exit code or signal, and time.

The runner waits for the trainer and writes ``exit.json`` atomically. If there is no runner, or it is dead or stuck,
the kernel still shows when the trainer died, and for a zombie its status (``/proc/PID/stat``, field 52).
"""

import os
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...model.attempt import ExitRecord
from ...model.json_line import decode_exact
from ...model.observation import Exit
from ...model.run import ProcessIdentity
from ...model.supervision_ports import AttemptTarget, Clock, Inbox
from ..sampler import OnProblem, Wakeup, Worker, ignore_problem
from .node_samples import read_job
from .proc_stat import is_alive, is_zombie, read_stat

EXIT_FILE = "exit.json"
LEFT_FILE = "left.json"
"""The runner writes it if processes of the command go on after the command itself has ended."""
POLL_S = 0.02
"""Period of polling for the record once the trainer is dead. The runner needs a few milliseconds (fsync)."""
GRACE_S = 0.5
"""Wait for a record after both are dead, or after the trainer's death if there is no runner."""
LEFT_POLL_S = 0.1
"""Period of looking whether what goes on has ended."""
RUNNER_REPORT_S = 5.0
"""Wait for a live runner that does not write (full disk, stopped). It is longer than a slow fsync."""


class Death(NamedTuple):
    """How the trainer ended. ``wall``: when, None = just now; in wall seconds."""

    code: int | None
    signal: int | None
    wall: float | None
    left: tuple[str, ...] = ()


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """``left.json``: what goes on after the command ended with ``code``. ``working``: those that may be the training.

    ``outputs``: files that they print to.
    """

    code: int
    processes: tuple[ProcessIdentity, ...] = ()
    working: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def nothing() -> None:
    """For callers that have nothing to do before an exit is reported."""


def last_written(log: str | None) -> float | None:
    """When the trainer printed last: the nearest that is known of an end that nobody saw. None = unknown."""
    try:
        return None if log is None else Path(log).stat().st_mtime
    except OSError:
        return None


def _may_see_status(pid: int) -> bool:
    """Whether the kernel shows the status. To users other than root it shows 0 for processes of others."""
    try:
        return os.geteuid() in {0, Path(f"/proc/{pid}").stat().st_uid}
    except OSError:
        return False


class ExitWatch(Worker):
    """Puts one ``Exit`` per followed attempt, within about 0.2 s of the trainer's death.

    ``before_exit`` is called before it, at most once per attempt (wiring passes ``LogTail.drain``), so that the last
    log lines are in the inbox first. ``before_success``: the same before an exit with status 0, and it
    may take minutes. ``code`` and ``signal`` are both None if the status is unknown. ``on_output`` gets the path of
    each file to which a training prints that goes on after its command has ended.
    """

    name = "exit"

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        before_exit: Callable[[], None] = nothing,
        before_success: Callable[[], None] = nothing,
        on_output: Callable[[str], None] = lambda _path: None,
        grace_s: float = GRACE_S,
        runner_report_s: float = RUNNER_REPORT_S,
        on_problem: OnProblem = ignore_problem,
    ) -> None:
        super().__init__(on_problem)
        self._inbox = inbox
        self._clock = clock
        self._before_exit = before_exit
        self._before_success = before_success
        self._on_output = on_output
        self._grace_s = grace_s
        self._runner_report_s = runner_report_s
        self._reported: AttemptTarget | None = None

    def turn(self, *, drains: bool) -> float | None:
        del drains
        target = self.target
        if target is None or target == self._reported:
            return None
        death = self._wait_for(target)
        if death is not None:
            self._reported = target
            self._report(death, target)
        return 0.0

    def _wait_for(self, target: AttemptTarget) -> Death | None:
        """Block until the attempt has ended. None: another one is followed, or the sensor ends."""
        watch = PidfdWatch({"trainer": target.trainer, "runner": target.runner})
        dead_since: float | None = None
        runner_dead_since: float | None = None
        was_seen = False
        try:
            while not self._stopping and self.target == target:
                now = time.monotonic()
                death = self._recorded(target)
                if death is not None:
                    return death
                if not watch.alive("runner") and runner_dead_since is None:
                    runner_dead_since = now
                pause_s = None
                if watch.alive("trainer"):
                    was_seen = True
                elif self._goes_on(target, runner=watch.alive("runner")):
                    was_seen, pause_s = True, LEFT_POLL_S
                else:
                    pause_s = POLL_S
                    dead_since = dead_since or now
                    given_up = (
                        now - dead_since > self._runner_report_s
                        if runner_dead_since is None
                        else now - max(dead_since, runner_dead_since) > self._grace_s
                    )
                    if given_up or (target.runner is None and is_zombie(target.trainer)):
                        return self._unrecorded(target, None if was_seen else last_written(target.log))
                watch.wait(pause_s, self._wakeup)
                self._wakeup.clear()
        finally:
            watch.close()
        return None

    def _goes_on(self, target: AttemptTarget, *, runner: bool) -> bool:
        """Whether the command has ended, and what it left goes on, with or without the runner."""
        try:
            left = decode_exact(Path(target.directory, LEFT_FILE).read_bytes(), Left)
        except (OSError, msgspec.MsgspecError):
            return False
        for path in left.outputs:
            self._on_output(path)
        if left.working:
            self._problems.report(
                f"left by attempt {target.number}",
                f"the command ended with exit code {left.code}, and {', '.join(left.working)} of it goes on: "
                "that is watched as the attempt",
            )
        return runner or any(is_alive(process) for process in left.processes)

    def _recorded(self, target: AttemptTarget) -> Death | None:
        path = Path(target.directory, EXIT_FILE)
        try:
            record = decode_exact(path.read_bytes(), ExitRecord)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as fault:
            self._problems.report(
                "exit.json", f"{path} cannot be read ({fault}); how the trainer ended may stay unknown"
            )
            return None
        return Death(record.code, record.signal, record.wall, record.left)

    def _unrecorded(self, target: AttemptTarget, wall: float | None) -> Death:
        """The status that the kernel shows for a zombie, if it is readable."""
        stat = read_stat(target.trainer.pid) if is_zombie(target.trainer) else None
        if stat is None or not _may_see_status(target.trainer.pid):
            return Death(None, None, wall)
        if os.WIFSIGNALED(stat.exit_status):
            return Death(None, os.WTERMSIG(stat.exit_status), wall)
        return Death(os.WEXITSTATUS(stat.exit_status), None, wall)

    def _report(self, death: Death, target: AttemptTarget) -> None:
        noticed_t = self._clock.now()
        try:
            self._before_exit()
        except Exception as fault:
            self._problems.report("log", f"the last lines of the log could not be read first ({fault!r})")
        if death.code == 0:
            self._before_success()
        t = self._clock.now()
        ago_s = 0.0 if death.wall is None else max(0.0, self._clock.wall() - death.wall)
        died_t = noticed_t if death.wall is None else max(0.0, t - ago_s)
        record = read_job(target)
        job = None if record is None or record.phase != "ended" else record.cause
        self._inbox.put(Exit(t=t, code=death.code, signal=death.signal, died_t=died_t, left=death.left, job=job))


# Detects the end of processes at once: a pidfd becomes readable, also for a zombie.

PIDFD_WATCH_POLL_S = 0.1
"""Period of polling if the kernel has no pidfd (before 5.3, some sandboxes) or no descriptor is left."""


class PidfdWatch:
    """Watches processes by name; ``wait`` returns when one of them has ended."""

    def __init__(self, watched: Mapping[str, ProcessIdentity | None]) -> None:
        self._alive = {name: identity for name, identity in watched.items() if identity is not None}
        self._fds: dict[str, int] = {}
        self._poll = select.poll()
        for name, identity in list(self._alive.items()):
            fd = _open(identity)
            # The pid may have been reused before the descriptor was opened, so it is checked again afterwards.
            if not is_alive(identity):
                del self._alive[name]
                if fd is not None:
                    os.close(fd)
            elif fd is not None:
                self._fds[name] = fd
                self._poll.register(fd, select.POLLIN)

    def alive(self, name: str) -> bool:
        """Whether the process was alive at the last ``wait``. False for one that never existed."""
        return name in self._alive

    def wait(self, timeout_s: float | None, wakeup: Wakeup) -> None:
        """Block until a process ends, somebody wakes it, or the timeout is reached (None: no limit)."""
        blind = [name for name in self._alive if name not in self._fds]
        if blind:
            timeout_s = PIDFD_WATCH_POLL_S if timeout_s is None else min(timeout_s, PIDFD_WATCH_POLL_S)
        self._poll.register(wakeup, select.POLLIN)
        ended = {fd for fd, _ in self._poll.poll(None if timeout_s is None else timeout_s * 1000)}
        self._poll.unregister(wakeup)
        for name in list(self._alive):
            fd = self._fds.get(name)
            if fd in ended or (fd is None and not is_alive(self._alive[name])):
                del self._alive[name]
                self._close(name)

    def close(self) -> None:
        for name in list(self._fds):
            self._close(name)

    def _close(self, name: str) -> None:
        fd = self._fds.pop(name, None)
        if fd is not None:
            self._poll.unregister(fd)
            os.close(fd)


def _open(identity: ProcessIdentity) -> int | None:
    try:
        return os.pidfd_open(identity.pid)
    except OSError:
        return None
