"""Runs py-spy on one process, and lets go of the process whatever py-spy does.

Standard library only: the stack probe imports this.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ...bound_process import bound
from .. import processes
from ..stop_sequence import STOPPED_STATES


def find_py_spy() -> str | None:
    """Path of py-spy beside this Python, else on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def dump(
    spy: str,
    process: processes.Process,
    timeout_s: float,
    notes: list[str],
    *,
    native: bool = False,
    options: Sequence[str] = (),
) -> str | None:
    """py-spy's dump of one process without stopping it; None and a note if that fails.

    ``native``: with native frames, for which every thread is stopped for some milliseconds. ``options``: more of
    ``py-spy dump``.
    """
    before = processes.read_process(process.pid)
    if before is None or before.start_ticks != process.start_ticks:
        return None
    try:
        # --nonblocking: stopping every thread has hung trainers and left them in state T (py-spy issues 390, 872).
        done = subprocess.run(
            bound([spy, "dump", "--native" if native else "--nonblocking", *options, "--pid", str(process.pid)]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        notes.append(f"py-spy took more than {timeout_s:g} s on process {process.pid} ({process.name})")
        return None
    except OSError as fault:
        notes.append(f"py-spy could not be started: {fault}")
        return None
    finally:
        _let_go(before, notes)
    if done.returncode != 0 or not done.stdout.strip():
        notes.append(_refusal(process, done.stderr.decode("utf-8", "replace")))
        return None
    return done.stdout.decode("utf-8", "replace")


def _let_go(before: processes.Process, notes: list[str]) -> None:
    after = processes.read_process(before.pid)
    if after is not None and after.state in STOPPED_STATES and before.state not in STOPPED_STATES:
        with contextlib.suppress(PermissionError):
            processes.send_signal(before.key, signal.SIGCONT)
            notes.append(f"py-spy left process {before.pid} stopped; it was continued")


def _refusal(process: processes.Process, words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    reason = lines[0].removeprefix("Error: ") if lines else "no output"
    if "ermission" in words:
        return (
            f"py-spy may not trace process {process.pid} ({process.name}): {reason.partition(':')[0]} "
            "(kernel.yama.ptrace_scope; in a container it needs the capability SYS_PTRACE); "
            "its /proc files were kept instead"
        )
    return f"py-spy got no stack of process {process.pid} ({process.name}): {reason}"
