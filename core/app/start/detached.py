"""Start a supervisor apart from any terminal: its own session, no parent, output into the run's supervisor.log."""

import os
import subprocess
import sys
import time

from ...model.observation import Command
from ...model.text.json_line import encode_exact
from ...store.lock import holder_pid
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.output_owner import rival_at_start

START_PATIENCE_S = 20.0
"""Imports take a second or two on a busy machine; after ten times that it has failed."""
POLL_S = 0.05


def start_detached(run: RunDirectory, command: Command | None = None) -> int:
    """Start one and return its pid once it holds the run's lock.

    Raises CliError if it did not start (its output is in supervisor.log). A short run may be over before its lock is
    seen; then the pid of the process is returned.
    """
    require_free(run)
    argv = [sys.executable, "-m", "trainwatch", "supervise", run.id, "--detach"]
    if command is not None:
        argv += ["--then", encode_exact(command).decode()]
    size = run.journal.stat().st_size if run.journal.exists() else 0
    launcher = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=os.environ, cwd="/"
    )
    if launcher.returncode == ExitCode.OWNED:  # another one was quicker
        require_free(run)
    if launcher.returncode != 0:
        raise CliError(
            ExitCode.FAILED, f"the supervisor could not be started: {launcher.stderr.strip() or 'no reason given'}"
        )
    child = int(launcher.stdout.strip())
    deadline = time.monotonic() + START_PATIENCE_S
    while time.monotonic() < deadline:
        if (pid := holder_pid(run.lock)) is not None:
            return pid
        if not _exists(child):
            if run.journal.exists() and run.journal.stat().st_size > size:
                return child
            break
        time.sleep(POLL_S)
    if (rival := rival_at_start(run)) is not None:  # it was quicker
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")
    raise CliError(ExitCode.FAILED, f"the supervisor did not start: see {run.supervisor_log}")


def require_free(run: RunDirectory) -> None:
    """Raise CliError if the run has a supervisor, or its output folder another run.

    Reported here, where a person reads it; the supervisor checks it again.
    """
    if (pid := holder_pid(run.lock)) is not None:
        raise CliError(ExitCode.OWNED, f"{run.id} already has a supervisor (pid {pid})")
    if (rival := rival_at_start(run)) is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")


def become_detached(run: RunDirectory) -> int:
    """Fork twice into a session of our own. Returns 0 in the daemon, its pid in the caller (which then ends)."""
    reader, writer = os.pipe()
    first = os.fork()
    if first:
        os.close(writer)
        os.waitpid(first, 0)
        with os.fdopen(reader) as answer:
            return int(answer.read() or "-1")
    os.close(reader)
    os.setsid()
    second = os.fork()
    if second:
        os.write(writer, str(second).encode())
        os._exit(0)
    os.close(writer)
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(run.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    return 0


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
