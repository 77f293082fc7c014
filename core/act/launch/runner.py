"""The runner: a small process that owns one trainer. It survives the supervisor, the terminal and the login.

``python -P -m trainwatch.core.act.launch.runner ATTEMPT_DIR`` reads ``order.json`` there, detaches itself (own session,
child of init), starts the trainer with stdout and stderr opened *directly on the log*, and writes ``start.json`` and,
when the trainer has ended, ``exit.json``. As subreaper it becomes the parent of every orphan of the trainer, and it
runs as long as one of them does, so that a stop request still reaches them. If the command ends and one of them goes
on training (``setsid``, ``nohup … &``), ``exit.json`` is written at its end, with its status. Until then it holds the
locks of the output folder: the supervisor may die, and no other run may begin beside the trainer. SIGUSR1: read
``stop.json`` and begin the stop sequence. SIGUSR2: read ``stacks.json`` and run py-spy. It ignores SIGHUP, SIGINT and
SIGTERM, so that what ends a terminal, a login or a supervisor does not end the training. If the runner is killed in
file mode, the trainer continues writing to its log.

Standard library only, without pathlib, subprocess, dataclasses: about 10 MB.
"""
# No pathlib here: the runner stays small.
# ruff: noqa: PTH100, PTH118

import contextlib
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import spool
from ...bound_process import bound
from ...private_folder import make_private
from ...processes import Process, boot_id, descendants, own_process, read_process
from ..stop_sequence import POLL_S, SaveWatch, StopSequence, stop_steps
from . import spawn
from .helpers import LOOK_S, LeftProcesses, Lineage, describe
from .keep_alive import SupervisorWatch
from .locks import Taken
from .output_locks import locks_of_order

if TYPE_CHECKING:
    from .trainer_pty import TrainerPty

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
NOTED = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2)
RETRY_S = 0.5
"""Pause before a record that could not be written to a full disk is written again."""
FAULT_PAUSE_S = 0.2
"""Pause after an unexpected exception, so that a repeated one does not use a processor."""


def main(arguments: list[str]) -> int:
    """Run one attempt. Returns the exit status of the runner itself (0 unless it could not begin)."""
    directory = os.path.abspath(arguments[0])
    order = spool.read(directory, spool.ORDER)
    if order is None:
        sys.stderr.write(f"{directory}/{spool.ORDER}: missing or not readable; nothing was started\n")
        return 2
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    # Without O_CLOEXEC the trainer would inherit the lock and hold it after the runner's death.
    lock = os.open(os.path.join(directory, spool.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 3  # another runner owns this attempt
    spool.print_into(os.path.join(directory, spool.RUNNER_LOG))
    os.chdir("/")  # keep no file system busy
    wakeup = _set_signals()
    spawn.become_subreaper()
    if not spool.claim(directory):
        return 3  # the launcher no longer waits for this runner
    locks = locks_of_order(order)
    keep_alive = SupervisorWatch(order.get("keep_alive"), directory)
    runner = Runner(directory, order, wakeup, over=locks.close)
    try:
        locks.take()
        runner.start()
        locks.name_trainer(runner.trainer_key, directory)
        runner.beside += (locks.start, keep_alive.start)
    except Taken as taken:
        runner.write_record(spool.EXIT, {"code": spawn.NOT_EXECUTABLE, "error": f"nothing was started: {taken}"})
    except spawn.CannotStart as fault:
        runner.write_record(spool.EXIT, {"code": fault.code, "error": str(fault), "errno": fault.errno})
    except OSError as fault:  # no process, no terminal, no file descriptor left
        why = f"cannot start the command: {fault}"
        runner.write_record(spool.EXIT, {"code": spawn.NOT_EXECUTABLE, "error": why, "errno": fault.errno})
    runner.watch()
    locks.close()
    keep_alive.hand_over()
    return 0


def _set_signals() -> int:
    """Return a file descriptor from which the numbers of NOTED signals can be read, one byte each."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for number in NOTED:
        signal.signal(number, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return read_end


class Runner:
    """One trainer, its records in the spool, and the requests about it. ``over``: called if only helpers are left."""

    def __init__(
        self, directory: str, order: dict[str, Any], wakeup: int, *, over: Callable[[], None] = lambda: None
    ) -> None:
        self._directory = directory
        self._order = order
        self._wakeup = wakeup
        self._trainer = 0
        self.trainer_key = (0, 0)
        self._trainer_lives = False
        self._pty: TrainerPty | None = None
        self._stop: StopSequence | None = None
        self._mode = "gentle"
        self._probe: int | None = None
        self._stacks_asked = False
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._over = over
        self.beside: list[Callable[[], None]] = []
        """What begins threads beside the trainer. If none is left, the next turn tries again."""
        self._start: dict[str, Any] = {}
        self._left: LeftProcesses | None = None
        self._lineage = Lineage(time.monotonic())
        self._spared: frozenset[tuple[int, int]] = frozenset()
        self._looked = 0.0
        self._died = 0.0
        self._ended_with = 0
        self._code = 0
        self._told = 0

    def start(self) -> None:
        """Start the trainer and write ``start.json``. Raises CannotStart."""
        log = spawn.open_log(self._order["log"])
        spawn.reserve(log)
        pid, master = spawn.spawn(self._order, self._directory, log)
        self._trainer, self._trainer_lives = pid, True
        trainer, own, boot = read_process(pid), own_process(), boot_id()
        self.trainer_key = (pid, 0 if trainer is None else trainer.start_ticks)
        if master is not None:
            from .trainer_pty import TrainerPty

            self._pty = TrainerPty(master, log, self._directory)
        else:
            os.close(log)
        self._start = {
            # Not waited for yet, so it exists, at least as a zombie.
            "trainer": _identity(boot, pid, trainer),
            "runner": _identity(boot, own.pid, own),
            "log": self._order["log"],
            "argv": self._order["argv"],
        }
        self.write_record(spool.START, self._start)

    def write_record(self, name: str, content: dict[str, Any]) -> None:
        """Write a record into the spool. While the disk is full it is retried every RETRY_S."""
        self._unwritten[name] = {"version": 1, "attempt": self._order["attempt"], "wall": time.time()} | content
        self._write_records()

    def _write_records(self) -> None:
        for name, content in list(self._unwritten.items()):
            try:
                spool.write(self._directory, name, content)
            except FileNotFoundError:  # the state folder was deleted: the supervisor makes it again
                with contextlib.suppress(OSError):
                    make_private(self._directory)
                    spool.write(self._directory, name, content)
            except OSError as fault:
                if not self._trainer_lives:  # a full disk: its log needs no room any more
                    spawn.give_back(self._order["log"])
                spool.say(f"{name}: {fault}; retrying")
                return
            del self._unwritten[name]

    def watch(self) -> None:
        """Serve requests until the trainer and all its descendants have ended."""
        while True:
            try:
                if not self._turn():
                    break
            except Exception:  # a bug in the runner must not end the training
                import traceback

                spool.say(traceback.format_exc())
                time.sleep(FAULT_PAUSE_S)
        if self._pty is not None:
            self._pty.drain()
            self._pty.close(self._directory)
        spawn.give_back(self._order["log"])

    def _turn(self) -> bool:
        """Wait for one event and handle it. False: no child, stop request or record is left."""
        left = self._reap()
        if self._stacks_asked and self._probe is None:
            self._begin_stacks()
        with contextlib.suppress(RuntimeError):
            while self.beside:
                self.beside[0]()
                del self.beside[0]
        if self._left is not None:
            self._look_at(self._left)
        if self._stop is not None:
            self._advance_stop(self._stop)
        if self._unwritten:
            self._write_records()
        if self._trainer_lives and self._lineage.wait_s(time.monotonic()) <= 0.0:
            self._lineage.look(self._tree(), time.monotonic())
        if not left and self._stop is None and not self._unwritten:
            return False
        poller = select.poll()
        poller.register(self._wakeup, select.POLLIN)
        if self._pty is not None:
            self._pty.register(poller)
        pause_s = POLL_S if self._stop is not None else RETRY_S if self._unwritten or self.beside else None
        pause_s = LOOK_S / 2 if pause_s is None and self._left is not None else pause_s
        if pause_s is None and self._trainer_lives:
            pause_s = self._lineage.wait_s(time.monotonic())
        ready = dict(poller.poll(None if pause_s is None else pause_s * 1000))
        if self._pty is not None:
            self._pty.serve(ready)
        for number in self._signals() if ready.get(self._wakeup) else ():
            if number == signal.SIGUSR1:
                self._begin_stop()
            elif number == signal.SIGUSR2:
                self._stacks_asked = True  # while the last probe lives, it is begun at its end
        return True

    def _signals(self) -> set[int]:
        with contextlib.suppress(BlockingIOError):
            return set(os.read(self._wakeup, 4096))
        return set()

    def _reap(self) -> bool:
        """Wait for all children that have ended. False: no child is left. Orphans of the tree become children, too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._probe:
                self._probe = None
            elif pid == self._trainer and self._trainer_lives:
                self._trainer_lives = False
                self._on_end(os.waitstatus_to_exitcode(status))
            elif self._left is not None and pid in self._left.followed:
                self._code = self._code or os.waitstatus_to_exitcode(status)

    def _on_end(self, code: int) -> None:
        """The command has ended: report it, unless processes of it are left that may be the training."""
        self._code = self._ended_with = code
        self._died = time.time()
        tree = self._tree() if self._stop is None else []
        if not tree:
            self._report_exit(code, self._died, [])
            return
        self._left = LeftProcesses(time.monotonic(), log=self._order["log"], failed=code != 0)
        self._looked = time.monotonic()
        self._left.go_on(tree, self._looked)
        self._tell_left(self._left, tree)

    def _look_at(self, left: LeftProcesses) -> None:
        """Report the end of the command once nothing that it left behind works."""
        now, tree = time.monotonic(), self._tree()
        if tree and (self._stop is not None or now - self._looked < LOOK_S):
            return
        self._looked = now
        before = bool(left.followed)
        if tree and left.go_on(tree, now):
            if left.followed and not before:
                self._code = 0  # from now on the status of what goes on counts
            self._tell_left(left, tree)
            return
        self._left = None
        if self._ended_with != 0 and not left.followed:
            self._spared = frozenset(process.key for process in self._lineage.helpers(tree, left.busy))
        self._report_exit(self._code, time.time() if left.followed else self._died, tree)
        if tree and self._code == 0:
            self._over()

    def _tell_left(self, left: LeftProcesses, tree: list[Process]) -> None:
        """Write what is left, and who is the trainer now."""
        found = len(left.followed) + len(left.outputs)
        if self._told and found == self._told - 1:
            return
        self._told = found + 1
        boot = boot_id()
        alive = {process.pid for process in tree}
        followed = [process for pid, process in left.followed.items() if pid in alive]
        content = {
            "code": self._ended_with,
            "processes": [_identity(boot, process.pid, process) for process in tree],
            "working": [f"{process.name} (pid {process.pid})" for process in followed],
            "outputs": left.outputs,
        }
        if followed:
            self._start["trainer"] = _identity(boot, followed[0].pid, followed[0])
            self.write_record(spool.START, self._start)
        self.write_record(spool.LEFT, content)

    def _report_exit(self, code: int, died: float, left: list[Process]) -> None:
        """``left``: processes that go on and are not the training."""
        if self._pty is not None:
            self._pty.drain()  # the log is complete before exit.json exists
        stopping = self._stop is not None and self._stop.last_signal is not None
        self.write_record(
            spool.EXIT,
            {
                "wall": died,
                "code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "stopped_by": ("kill" if self._mode == "kill" else "stop") if stopping else None,
                "stop_signal": self._stop.last_signal if self._stop is not None and stopping else None,
                "left": [f"{describe(process.pid) or process.name} (pid {process.pid})" for process in left],
                "spared": [list(key) for key in self._spared],
            },
        )

    def _tree(self) -> list[Process]:
        """All own descendants except the stack probe and its children."""
        found = descendants(os.getpid())
        if self._probe is None:
            return found
        spared = {self._probe} | {process.pid for process in descendants(self._probe)}
        return [process for process in found if process.pid not in spared]

    def _begin_stop(self) -> None:
        stop = spool.read(self._directory, spool.STOP)
        if stop is None or (self._stop is not None and (stop["mode"] != "kill" or self._mode == "kill")):
            return  # a second gentle request changes nothing; a kill replaces a gentle one
        self._mode = stop["mode"]
        steps = stop_steps(
            self._mode, stop["interrupt_grace_s"], stop["terminate_grace_s"], wsl=bool(stop.get("wsl", False))
        )
        spared = self._spared if stop.get("leftovers") else frozenset()
        self._stop = StopSequence(
            steps,
            lambda: [p for p in self._tree() if p.key not in spared],
            saving=SaveWatch(stop.get("saves_to")).writing,
        )

    def _advance_stop(self, stop: StopSequence) -> None:
        result = stop.advance()
        if result is None:
            return
        self._reap()
        self._stop = None
        self.write_record(spool.STOPPED, result.as_json())
        if self._spared and all(process.key in self._spared for process in self._tree()):
            self._over()

    def _begin_stacks(self) -> None:
        """Start the stack probe as a child: the trainer allows descendants of the runner to trace it."""
        self._stacks_asked = False
        if spool.read(self._directory, spool.STACKS) is None:
            return
        request = os.path.join(self._directory, spool.STACKS)
        defaults = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD}
        argv = bound([sys.executable, "-P", "-m", "trainwatch.core.act.evidence.stack_probe", request])
        self._probe = os.posix_spawn(argv[0], argv, os.environ, setsigdef=defaults, setsid=True)


def _identity(boot: str, pid: int, process: Process | None) -> dict[str, Any]:
    return {"boot_id": boot, "pid": pid, "start_ticks": 0 if process is None else process.start_ticks}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
