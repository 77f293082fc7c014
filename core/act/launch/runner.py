"""The runner: a small process that owns one trainer, and outlives everybody who asked for it.

``python -P -m trainwatch.core.act.launch.runner ATTEMPT_DIR`` reads ``order.json`` there, detaches itself (own session,
child of init), starts the trainer with stdout and stderr opened *directly on the log*, writes ``start.json`` and, the
moment the trainer was waited for, ``exit.json``. As sub-reaper it inherits every orphan of the trainer and stays for
as long as one of them lives, so that a stop request still reaches them. SIGUSR1 = read ``stop.json`` (the ladder),
SIGUSR2 = read ``stacks.json`` (py-spy). It ignores SIGHUP, SIGINT and SIGTERM: nothing that ends a terminal, a login or
a supervisor ends the training. Killing the runner in file mode leaves the trainer alive, writing to its log.

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
from typing import TYPE_CHECKING, Any

from ..processes import Process, boot_id, descendants, look, own_process
from ..stop.save_in_progress import SaveWatch
from ..stop.stop_sequence import POLL_S, Climb, Ladder, rungs
from . import spawn, spool

if TYPE_CHECKING:
    from .trainer_pty import Pane

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
NOTED = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2)
RETRY_S = 1.0
"""Between attempts to write a record to a full disk."""
FAULT_PAUSE_S = 0.2
"""After a fault of our own: go on, but do not spin."""


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
    # Opened without O_CLOEXEC it would be inherited by the trainer and stay locked after our death.
    lock = os.open(os.path.join(directory, spool.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 3  # another runner owns this attempt
    _redirect(directory)
    os.chdir("/")  # keep no file system busy
    wakeup = _set_signals()
    spawn.become_subreaper()
    if not spool.claim(directory):
        return 3  # the launcher gave up on us
    runner = Runner(directory, order, wakeup)
    try:
        runner.start()
    except spawn.CannotStart as fault:
        runner.say(spool.EXIT, {"code": fault.code, "error": str(fault)})
    except OSError as fault:  # no process, no terminal, no file descriptor left
        runner.say(spool.EXIT, {"code": spawn.NOT_EXECUTABLE, "error": f"cannot start the command: {fault}"})
    runner.watch()
    return 0


def _redirect(directory: str) -> None:
    """Our own words go to ``runner.log``; we keep nobody's terminal or pipe open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    words = os.open(os.path.join(directory, spool.RUNNER_LOG), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number, handle in ((0, nothing), (1, words), (2, words)):
        os.dup2(handle, number)
    os.close(nothing)
    os.close(words)


def _set_signals() -> int:
    """Returns the file descriptor that becomes readable with each noted signal (its bytes are the numbers)."""
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
    """One trainer and what is asked about it."""

    def __init__(self, directory: str, order: dict[str, Any], wakeup: int) -> None:
        self._directory = directory
        self._order = order
        self._wakeup = wakeup
        self._trainer = 0
        self._trainer_lives = False
        self._pane: Pane | None = None
        self._ladder: Ladder | None = None
        self._mode = "gentle"
        self._probe: int | None = None
        self._unsaid: dict[str, dict[str, Any]] = {}

    def start(self) -> None:
        """Start the trainer and say so. Raises CannotStart."""
        log = spawn.open_log(self._order["log"])
        spawned = spawn.spawn(self._order, self._directory, log)
        self._trainer = spawned.pid
        self._trainer_lives = True
        trainer = look(spawned.pid)
        own = own_process()
        boot = boot_id()
        if spawned.master is not None:
            from .trainer_pty import Pane

            self._pane = Pane(spawned.master, log, self._directory)
        else:
            os.close(log)
        self.say(
            spool.START,
            {
                # Not waited for yet, so it is there, if only as a zombie.
                "trainer": _identity(boot, spawned.pid, trainer),
                "runner": _identity(boot, own.pid, own),
                "log": self._order["log"],
                "argv": self._order["argv"],
            },
        )

    def say(self, name: str, content: dict[str, Any]) -> None:
        """Put a record on the desk; on a full disk, again and again until it can be written."""
        self._unsaid[name] = {"version": 1, "attempt": self._order["attempt"], "wall": time.time()} | content
        self._speak()

    def _speak(self) -> None:
        for name, content in list(self._unsaid.items()):
            try:
                spool.write(self._directory, name, content)
            except FileNotFoundError:
                pass  # the state directory was deleted: nobody is left to read it
            except OSError as fault:
                sys.stderr.write(f"{name}: {fault}; trying again\n")
                return
            del self._unsaid[name]

    def watch(self) -> None:
        """Until the trainer and all its descendants are gone."""
        while True:
            try:
                if not self._turn():
                    break
            except Exception:  # a fault of ours must not cost the training
                import traceback

                traceback.print_exc()
                sys.stderr.flush()
                time.sleep(FAULT_PAUSE_S)
        if self._pane is not None:
            self._pane.drain()
            self._pane.close(self._directory)

    def _turn(self) -> bool:
        """Wait for something and handle it. False when nothing is left to look after."""
        left = self._reap()
        if self._ladder is not None:
            self._climb(self._ladder)
        if self._unsaid:
            self._speak()
        if not left and self._ladder is None and not self._unsaid:
            return False
        poller = select.poll()
        poller.register(self._wakeup, select.POLLIN)
        if self._pane is not None:
            self._pane.register(poller)
        pause_s = POLL_S if self._ladder is not None else RETRY_S if self._unsaid else None
        ready = dict(poller.poll(None if pause_s is None else pause_s * 1000))
        if self._pane is not None:
            self._pane.serve(ready)
        for number in self._signals() if ready.get(self._wakeup) else ():
            if number == signal.SIGUSR1:
                self._begin_stop()
            elif number == signal.SIGUSR2:
                self._begin_stacks()
        return True

    def _signals(self) -> set[int]:
        with contextlib.suppress(BlockingIOError):
            return set(os.read(self._wakeup, 4096))
        return set()

    def _reap(self) -> bool:
        """Wait for all who ended. False when no child is left (every orphan of the tree becomes our child)."""
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
                self._report_exit(os.waitstatus_to_exitcode(status))

    def _report_exit(self, code: int) -> None:
        died = time.time()
        if self._pane is not None:
            self._pane.drain()  # who reads exit.json finds the log complete
        stopping = self._ladder is not None and self._ladder.last_signal is not None
        self.say(
            spool.EXIT,
            {
                "wall": died,
                "code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "stopped_by": ("kill" if self._mode == "kill" else "stop") if stopping else None,
                "stop_signal": self._ladder.last_signal if self._ladder is not None and stopping else None,
            },
        )

    def _tree(self) -> list[Process]:
        """All our descendants but the stack probe and what it started."""
        found = descendants(os.getpid())
        if self._probe is None:
            return found
        spared = {self._probe} | {process.pid for process in descendants(self._probe)}
        return [process for process in found if process.pid not in spared]

    def _begin_stop(self) -> None:
        stop = spool.read(self._directory, spool.STOP)
        if stop is None or (self._ladder is not None and (stop["mode"] != "kill" or self._mode == "kill")):
            return  # a second gentle request changes nothing; a kill overtakes a gentle one
        self._mode = stop["mode"]
        steps = rungs(
            self._mode, stop["interrupt_grace_s"], stop["terminate_grace_s"], wsl=bool(stop.get("wsl", False))
        )
        self._ladder = Ladder(steps, self._tree, saving=SaveWatch(stop.get("saves_to")).writing)

    def _climb(self, ladder: Ladder) -> None:
        result = ladder.advance()
        if result is None:
            return
        self._reap()
        self._ladder = None
        self.say(spool.STOPPED, _report(result))

    def _begin_stacks(self) -> None:
        """Start ``core.act.stack_probe`` as our child: the kernel lets our descendants look into the trainer."""
        if self._probe is not None or spool.read(self._directory, spool.STACKS) is None:
            return
        request = os.path.join(self._directory, spool.STACKS)
        defaults = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD}
        self._probe = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-m", "trainwatch.core.act.evidence.stack_probe", request],
            os.environ,
            setsigdef=defaults,
            setsid=True,
        )


def _identity(boot: str, pid: int, process: Process | None) -> dict[str, Any]:
    return {"boot_id": boot, "pid": pid, "start_ticks": 0 if process is None else process.start_ticks}


def _report(result: Climb) -> dict[str, Any]:
    return {
        "gone": result.gone,
        "signal": result.signal,
        "processes": result.processes,
        "seconds": result.seconds,
        "survivors": [survivor._asdict() for survivor in result.survivors],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
