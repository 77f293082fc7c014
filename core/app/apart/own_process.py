"""Runs a process that sees the user's folders through overlays, passes signals on to it, and ends what it left."""

import ctypes
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
from typing import NamedTuple

from ...act import processes
from ...store.home import make_private

PR_SET_PDEATHSIG = 1
LAST_LINES = 12


class ChildEnd(NamedTuple):
    """``interrupted``: a signal asked for the end. ``said``: the last lines of its stderr, else its status."""

    interrupted: bool
    said: str


def run_apart(module: str, scratch: Path, say: Callable[[str], None]) -> ChildEnd:
    """Run ``python -m module scratch`` to its end, and end everything that it may have left.

    The process has its state folder in the scratch folder. ``say`` gets its lines.
    """
    make_private(scratch / "home")
    log = scratch / "own-process.log"
    env = {**os.environ, "TRAINWATCH_HOME": str(scratch / "home")}
    argv = [sys.executable, "-P", "-m", module, str(scratch)]
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
    lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return ChildEnd(interrupted.is_set(), "\n".join(lines) or f"status {child.returncode}")


def ends_with(parent: int) -> bool:
    """Ask the kernel to end this process with its parent. Returns whether the parent is there."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent


@contextmanager
def _passed_on(child: "subprocess.Popen[bytes]") -> Iterator[threading.Event]:
    """While it runs, signals that end this process end the other first. The event is set after one."""
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
    """Kill what is left: every process whose environment names its scratch folder."""
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
