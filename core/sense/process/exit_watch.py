"""The sensor of an attempt's end: exit code or signal, and time.

The runner waits for the trainer and writes ``exit.json`` atomically. If there is no runner, or it is dead or stuck,
the kernel still shows when the trainer died, and for a zombie its status (``/proc/PID/stat``, field 52).
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import msgspec

from ...model.json_line import decode_exact
from ...model.observation import Exit
from ...model.ports import AttemptTarget
from ...model.run import ExitRecord, ProcessIdentity
from ...processes import boot_id, is_alive, is_zombie, owner_of, read_process, status_of
from ...spool import EXIT, LEFT, read_job, read_record
from ..sampler import Common, Observer

POLL_S = 0.02
"""Period of polling for the record once the trainer is dead. The runner needs a few milliseconds (fsync)."""
GRACE_S = 0.5
"""Wait for a record after both are dead, or after the trainer's death if there is no runner."""
ALIVE_POLL_S = 0.1
"""Period of looking whether what the trainer left still lives, or the trainer itself, unless the kernel tells it."""
TOLD_POLL_S = 5.0
"""The same where the kernel tells it (pidfd_open, Linux 5.3)."""
RUNNER_REPORT_S = 5.0
"""Wait for a live runner that does not write (full disk, stopped). It is longer than a slow fsync."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """``left.json``: what goes on after the command ended with ``code``. ``working``: those that may be the training.

    ``outputs``: files that they print to.
    """

    code: int
    processes: tuple[ProcessIdentity, ...] = ()
    working: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class _Look:
    """What was seen of an attempt. ``dead_s``, ``runner_dead_s``: since when, monotonic seconds."""

    was_seen = False
    dead_s: float | None = None
    runner_dead_s: float | None = None


class ExitWatch(Observer):
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
        before_exit: Callable[[], None] = lambda: None,
        before_success: Callable[[], None] = lambda: None,
        on_output: Callable[[str], None] = lambda _path: None,
        grace_s: float = GRACE_S,
        runner_report_s: float = RUNNER_REPORT_S,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self._before_exit = before_exit
        self._before_success = before_success
        self._on_output = on_output
        self._grace_s = grace_s
        self._runner_report_s = runner_report_s
        self._look = _Look()
        self._reported: AttemptTarget | None = None

    def follow(self, target: AttemptTarget | None) -> None:
        """Wait for the end of this attempt. Following the same one again changes nothing."""
        if target != self.target:
            self._look = _Look()
        super().follow(target)

    def turn(self, *, drains: bool) -> float | None:
        del drains
        target, look = self.target, self._look
        if target is None or target == self._reported:
            return None
        death, pause_s = self._death_of(target, look)
        if death is not None:
            self._reported = target
            self._report(death, target)
        return pause_s

    def wait(self, pause_s: float | None) -> None:
        """Wait for the next turn; the end of a trainer that lives ends the wait."""
        target = self.target
        if pause_s != ALIVE_POLL_S or target is None or not is_alive(target.trainer):
            return super().wait(pause_s)
        try:
            trainer = os.pidfd_open(target.trainer.pid)
        except OSError:
            return super().wait(pause_s)
        try:
            self._wakeup.wait(TOLD_POLL_S, trainer)
        finally:
            os.close(trainer)

    def _death_of(self, target: AttemptTarget, look: "_Look") -> tuple[ExitRecord | None, float]:
        """How the attempt has ended, None = it goes on; and the seconds until the next look."""
        now = time.monotonic()
        death = self._recorded(target)
        if death is not None:
            return death, 0.0
        runner = target.runner is not None and is_alive(target.runner)
        look.runner_dead_s = None if runner else look.runner_dead_s or now
        if is_alive(target.trainer) or self._goes_on(target, runner=runner):
            look.was_seen, look.dead_s = True, None
            return None, ALIVE_POLL_S
        look.dead_s = look.dead_s or now
        late = (
            now - look.dead_s > self._runner_report_s
            if look.runner_dead_s is None
            else now - max(look.dead_s, look.runner_dead_s) > self._grace_s
        )
        if late or (target.runner is None and is_zombie(target.trainer)):
            # When it printed last is the nearest that is known of an end that nobody saw.
            printed = None if look.was_seen or target.log is None else status_of(target.log)
            return self._unrecorded(target, None if printed is None else printed.st_mtime), 0.0
        return None, POLL_S

    def _goes_on(self, target: AttemptTarget, *, runner: bool) -> bool:
        """Whether the command has ended, and what it left goes on, with or without the runner."""
        left = read_record(target.directory, LEFT, Left)
        if left is None:
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

    def _recorded(self, target: AttemptTarget) -> ExitRecord | None:
        path = Path(target.directory, EXIT)
        try:
            return decode_exact(path.read_bytes(), ExitRecord)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as fault:
            self._problems.report(
                "exit.json", f"{path} cannot be read ({fault}); how the trainer ended may stay unknown"
            )
            return None

    def _unrecorded(self, target: AttemptTarget, wall: float | None) -> ExitRecord:
        """The status that the kernel shows for a zombie, if it is readable. ``wall``: of its end, None = just now."""
        record = ExitRecord(attempt=target.number, wall=self._clock.wall() if wall is None else wall)
        stat = read_process(target.trainer.pid) if is_zombie(target.trainer) else None
        # To users other than root the kernel shows the status 0 for processes of others.
        owner = owner_of(target.trainer.pid)
        if stat is None or owner is None or os.geteuid() not in {0, owner}:
            return record
        if os.WIFSIGNALED(stat.exit_status):
            return msgspec.structs.replace(record, signal=os.WTERMSIG(stat.exit_status))
        return msgspec.structs.replace(record, code=os.WEXITSTATUS(stat.exit_status))

    def _report(self, death: ExitRecord, target: AttemptTarget) -> None:
        try:
            self._before_exit()
            if death.code == 0:
                self._before_success()
        except Exception as fault:
            self._problems.report("log", f"the log or the last save could not be read to its end ({fault!r})")
        t = self._clock.now()
        died_t = max(0.0, t - max(0.0, self._clock.wall() - death.wall))
        record = read_job(target.directory)
        job = None if record is None or record.phase != "ended" else record.cause
        anew = target.trainer.boot_id != boot_id()
        end = Exit(t=t, code=death.code, signal=death.signal, died_t=died_t, left=death.left, job=job, rebooted=anew)
        self._inbox.put(end)
