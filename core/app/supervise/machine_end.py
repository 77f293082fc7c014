"""Whether the end of this process is the end of all others: PID 1 of a container, or a scheduler's job.

There a SIGTERM does not mean "leave the trainer running": it would be killed in some seconds. It saves and ends.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import IO

from ...bound_process import bound
from ...model.ports import AttemptTarget
from ...model.run import KeepAliveOrder, RunSpec
from ...model.settings import Settings
from ...model.story import RunStory
from ...processes import comm_of, read_process, variables_of
from ...store.run_directory import RunDirectory
from ..errors import ExitCode

SMALL_INITS = frozenset({"tini", "docker-init", "dumb-init", "catatonit", "podman-init", "pause"})
"""Programs that are PID 1 of a container and end with their child (``docker run --init``)."""
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "KUBERNETES_SERVICE_HOST")
"""Variables of schedulers that end a job with SIGTERM and then SIGKILL. LSB: LSF."""
CONTAINER_S, JOB_S = 10.0, 30.0
"""``docker stop`` waits 10 s before SIGKILL; Kubernetes and Slurm (KillWait) wait 30 s."""


def ends_with_us(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return "container" or "job" if SIGTERM to this process announces the end of all others; None if not."""
    if any(name in environ for name in JOBS):
        return "job"
    if AS_INIT in environ or os.getpid() == 1 or (os.getppid() == 1 and comm_of(1) in SMALL_INITS):
        return "container"
    return None


def others_end_with(pid: int) -> bool:
    """Whether the end of this other process is the end of a container or a job, or that cannot be told."""
    words, found = variables_of(pid) or (), read_process(pid)
    if found is None or pid == 1 or not any(words):
        return True
    names = {word.partition(b"=")[0].decode("utf-8", "replace") for word in words}
    return bool(names & {*JOBS, AS_INIT}) or (found.parent == 1 and comm_of(1) in SMALL_INITS)


def grace_s(kind: str, settings: Settings) -> float:
    """Seconds between SIGTERM and SIGKILL."""
    told = settings.end.grace_s
    return told if told is not None else CONTAINER_S if kind == "container" else JOB_S


def passed_on(story: RunStory, code: int) -> int:
    """The exit status for the container or the job: that of the trainer, or ``code`` if it is not known."""
    last = story.attempt
    if story.state == "finished" or last is None or last.how is None:
        return code
    if isinstance(last.signal, str) and last.signal in signal.Signals.__members__:
        return 128 + signal.Signals[last.signal]
    if isinstance(last.signal, int):
        return 128 + last.signal
    if last.code:
        return last.code
    return code if story.state in {"given_up", "ended_early"} or last.code is None else ExitCode.DONE


# Keeps the machine from going to sleep while a trainer runs, through systemd-inhibit where it is there.
#
# The lock is held by a program that ends with this supervisor; ``systemd-inhibit --list`` shows it. Where it cannot be
# taken, the journal says why, once, and ``trainwatch check`` says what else helps.

MAY_SLEEP = "this machine may go to sleep while the trainer runs: systemd-inhibit: "
SETTLE_S = 3.0
"""A lock that is refused ends the program at once."""


class SleepInhibitor:
    """Follows the attempt, as sensors do. ``tell``: a sentence for the journal. ``booted``: exists if systemd runs."""

    def __init__(
        self,
        run: str,
        tell: Callable[[str], None],
        env: Mapping[str, str],
        *,
        booted: Path = Path("/run/systemd/system"),
        settle_s: float = SETTLE_S,
    ) -> None:
        self._run = run
        self._tell = tell
        self._env = dict(env)
        self._booted = booted
        self._settle_s = settle_s
        self._process: subprocess.Popen[bytes] | None = None
        self._told = False

    def start(self) -> None:
        """Nothing to do before there is a trainer."""

    def follow(self, target: AttemptTarget | None) -> None:
        """Take the lock when a trainer runs, and give it back when none does."""
        if target is None:
            self.stop()
        elif self._process is None or self._process.poll() is not None:
            self._take()

    def stop(self) -> None:
        """Give the lock back."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGTERM)  # with the program that it runs
                process.wait(timeout=2.0)

    def _take(self) -> None:
        program = shutil.which("systemd-inhibit", path=self._env.get("PATH"))
        if program is None or not self._booted.exists():
            return
        command = [
            program, "--what=sleep:idle", "--who=trainwatch", f"--why=training {self._run}", "--mode=block",
            "sleep", "infinity",
        ]  # fmt: skip
        import tempfile  # 0.3 MB, with random

        said = tempfile.TemporaryFile()  # noqa: SIM115  the thread closes it
        try:
            self._process = subprocess.Popen(
                bound(command, at_end=signal.SIGTERM, path=self._env.get("PATH")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=self._env,
                start_new_session=True,  # without a terminal nobody is asked for a password
            )
        except OSError as error:
            said.close()
            self._say(MAY_SLEEP + str(error))
            return
        threading.Thread(target=self._look, args=(self._process, said), name="sleep lock", daemon=True).start()

    def _look(self, process: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
        with said:
            try:
                process.wait(timeout=self._settle_s)
            except subprocess.TimeoutExpired:
                self._say("this machine does not go to sleep while the trainer runs (systemd-inhibit)")
                return
            said.seek(0)
            lines = said.read(4000).decode("utf-8", "replace").strip().splitlines()
        if process is self._process:
            self._say(MAY_SLEEP + (lines[-1] if lines else "it ended"))

    def _say(self, text: str) -> None:
        """The first sentence only."""
        if not self._told:
            self._told = True
            self._tell(text)


# trainwatch as PID 1 of a container: a small init before everything else.
#
# PID 1 gets no default signal handling, and every process whose parent has ended becomes its child. So the program
# goes on in a child, and PID 1 passes signals to it, waits for all processes that end, and ends with the child's exit
# status. It stays while a run is still looked after (``run --detach``, a screen that was left): the end of PID 1 ends
# them all.
#
# Standard library only: it is asked before anything else is imported.

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
    status = 1
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, 0))[0] != child:
            pass
        code = os.waitstatus_to_exitcode(ended[1])
        status = code if code >= 0 else 128 - code
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


REPLACES = "TRAINWATCH_REPLACES"
"""Variable of a supervisor that the runner started in the place of another."""


def keep_alive_order(run: RunDirectory, spec: RunSpec) -> KeepAliveOrder | None:
    """None if the run does not want it (``[supervisor] keep_alive``)."""
    if not spec.settings.supervisor.keep_alive:
        return None
    return KeepAliveOrder(
        argv=(sys.executable, "-P", "-m", "trainwatch", "supervise", run.id),
        env={"TRAINWATCH_HOME": str(run.path.parents[1]), REPLACES: "1"},
        lock=str(run.lock),
        life_sign=str(run.life_sign),
        log=str(run.supervisor_log),
        frozen_s=spec.settings.supervisor.frozen_s,
    )
