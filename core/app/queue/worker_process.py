"""Starts the process that starts queued runs, and the starts that it makes, each apart from it."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...act.processes import boot_id
from ...bound_process import bound
from ...model.launch.queue import QueueEntry
from ...store.home import make_private
from ...store.lists.queue_file import QueueFile, QueueUnreadable
from ...store.lock import SupervisorLock, SupervisorRunning, holder_pid, is_held
from ..errors import CliError, ExitCode
from .starting import Started
from .worker import QueueWorker

log = logging.getLogger(__name__)

POLL_S = 1.0
"""Period of looking at the queue and at the locks of its runs."""
START_S = 120.0
"""Longest time of one start: its checks may ask the trainer's own PyTorch."""
WAIT_S = 20.0
"""How long the start of the worker may take: imports take a second or two on a busy machine."""
LOOK_S = 0.05


def start_apart(home: Path) -> Callable[[QueueEntry], Started]:
    """Starts an entry by ``trainwatch queue start``, in its folder and with its environment."""

    def start(entry: QueueEntry) -> Started:
        kept = QueueFile(home).environment(entry.key)
        env = {**(dict(os.environ) if kept is None else kept), "TRAINWATCH_HOME": str(home)}
        argv = [sys.executable, "-P", "-m", "trainwatch", "queue", "start", str(entry.id)]
        try:
            done = subprocess.run(
                bound(argv),
                cwd=entry.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=START_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Started(how="started")  # it may have begun: the next turn looks
        except OSError as error:
            return Started(how="failed", why=f"{error.filename or entry.cwd}: {error.strerror or error}")
        try:
            return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=Started)
        except (msgspec.MsgspecError, IndexError):
            said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            log.warning("entry %s: its start ended with %s: %s", entry.id, done.returncode, said)
            return Started(how="started")  # cut off: the next turn looks for its run

    return start


def work(home: Path) -> int:
    """Start queued runs until nothing is left. Raises CliError (exit code 4) if another process does it already."""
    file = QueueFile(home)
    make_private(file.folder)
    lock = SupervisorLock(file.worker_lock)
    try:
        lock.acquire()
    except SupervisorRunning as running:
        who = f" (pid {running.pid})" if running.pid else ""
        raise CliError(ExitCode.OWNED, f"another process{who} starts the queued runs already") from None
    with lock:
        worker = QueueWorker(home, start=start_apart(home), boot=boot_id())
        while worker.turn():
            time.sleep(POLL_S)
    return ExitCode.DONE


def ensure_worker(home: Path) -> int | None:
    """Start the worker apart from any terminal if none is there. Returns its pid, None if it is not known.

    Raises CliError.
    """
    file = QueueFile(home)
    if is_held(file.worker_lock):
        return holder_pid(file.worker_lock)
    make_private(file.folder)
    output = os.open(file.worker_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainwatch", "queue", "work", "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={**os.environ, "TRAINWATCH_HOME": str(home)},
            start_new_session=True,
        )
    finally:
        os.close(output)
    code = started.wait()
    deadline = time.monotonic() + WAIT_S
    while code == 0 and time.monotonic() < deadline:
        if is_held(file.worker_lock):
            return holder_pid(file.worker_lock)
        if not _anything_left(file):  # it is done already
            return None
        time.sleep(LOOK_S)
    raise CliError(ExitCode.FAILED, f"the process that starts queued runs did not start: see {file.worker_log}")


def revive_worker(home: Path) -> None:
    """At the end of a queued run: if entries are left and nobody starts them, start the worker again. Never raises."""
    file = QueueFile(home)
    try:
        if _anything_left(file) and not is_held(file.worker_lock):
            ensure_worker(home)
    except (CliError, OSError) as error:
        log.warning("the queue: %s", error)


def _anything_left(file: QueueFile) -> bool:
    try:
        return any(entry.state != "over" for entry in file.read().entries)
    except QueueUnreadable:
        return False


def detach() -> bool:
    """Go on in a process without a parent that waits for it. Returns whether this is that process."""
    if os.fork():
        return False
    os.setsid()
    return True
