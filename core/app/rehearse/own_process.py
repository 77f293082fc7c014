"""Runs the process that rehearses (inside.py), passes signals on to it, and ends what it may have left."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ...act import processes
from ...store.home import make_private
from ..errors import CliError, ExitCode
from .order import ORDER, RehearsalOrder, Seen, read_seen, write

LAST_LINES = 12


def run_apart(order: RehearsalOrder, scratch: Path, say: Callable[[str], None]) -> Seen:
    """Run the process that rehearses to its end, and end everything that it may have left."""
    write(scratch / ORDER, order)
    make_private(scratch / "home")
    log = scratch / "rehearsal.log"
    env = {**os.environ, "TRAINWATCH_HOME": str(scratch / "home")}
    argv = [sys.executable, "-P", "-m", "trainwatch.core.app.rehearse.inside", str(scratch)]
    with log.open("wb") as errors:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True
        )
    try:
        with _passed_on(child) as interrupted:
            for line in child.stdout or ():
                say(line.decode("utf-8", "replace").rstrip("\n"))
            child.wait()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        _end_all(scratch)
    if interrupted.is_set():
        return Seen(interrupted=True)
    seen = read_seen(scratch)
    if seen is None:
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        said = "\n".join(lines) or f"status {child.returncode}"
        raise CliError(ExitCode.FAILED, f"the rehearsal's own process failed: {said}")
    return seen


@contextmanager
def _passed_on(child: "subprocess.Popen[bytes]") -> Iterator[threading.Event]:
    """While it runs, signals that end this process end the rehearsal first. The event is set after one."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def leave(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        child.send_signal(signal.SIGINT)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_all(scratch: Path) -> None:
    """Kill what is left of a rehearsal: every process whose environment names its scratch folder."""
    mark = os.fsencode(str(scratch))
    while left := [p for p in processes.all_processes().values() if p.pid != os.getpid() and mark in _environ(p.pid)]:
        for process in left:
            processes.send_signal(process.key, signal.SIGKILL)
        time.sleep(0.02)
        if all(processes.is_alive(p.key) for p in left) and all(p.state == "D" for p in left):
            return  # the kernel holds them; nothing else can be done


def _environ(pid: int) -> bytes:
    process = processes.read_process(pid)
    if process is None or process.state in processes.DEAD_STATES:
        return b""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
