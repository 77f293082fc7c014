"""Launching an attempt: the order goes on the desk, a detached runner starts, and its report is awaited."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...model.attempt import ExitRecord, LaunchOrder, StartRecord
from ...model.ports import AttemptTarget
from ...model.run import ProcessIdentity
from .. import processes
from . import scope, spool

START_TIMEOUT_S = 10.0
"""A cold Python on a slow disk needs a second or two."""
CLAIMED_TIMEOUT_S = 20.0
"""More for a runner that took the order but has not reported: it may be in a slow exec from a network disk."""
POLL_S = 0.01

Record = TypeVar("Record", StartRecord, ExitRecord, LaunchOrder)


class LaunchError(RuntimeError):
    """The attempt did not start; the message is a sentence. ``code``: what a shell would return (126, 127)."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def launch(order: LaunchOrder, directory: Path, *, scope: bool = True) -> AttemptTarget:
    """Start a runner for ``order`` in ``directory`` (made with mode 0700, used once) and wait until the trainer exists.

    ``scope``: put it into a systemd scope where that works. Blocks for as long as the exec takes, typically 0.1 s.
    Raises LaunchError when there is no trainer; then none will appear later either. A trainer that started and died at
    once is no error: its ``exit.json`` tells.
    """
    directory = Path(os.path.abspath(directory))  # noqa: PTH100 - resolve() would follow links
    _put_order(order, directory)
    deadline = time.monotonic() + START_TIMEOUT_S
    if not _start_runner(directory, order.attempt, deadline, in_scope=scope) and spool.claim(str(directory)):
        raise LaunchError(_why_silent(directory))
    called_off = False
    while True:
        start = read_start(directory)
        if start is not None:
            return target_of(start, directory)
        ended = read_exit(directory)
        if ended is not None and read_start(directory) is None:
            raise LaunchError(ended.error or "the trainer ended before it was seen", ended.code)
        if time.monotonic() >= deadline:
            if called_off or spool.claim(str(directory)):
                raise LaunchError(_why_silent(directory))
            # The runner has taken the order: the trainer may exist any moment, and must not be started twice.
            called_off, deadline = True, time.monotonic() + CLAIMED_TIMEOUT_S
        time.sleep(POLL_S)


def read_start(directory: Path) -> StartRecord | None:
    """``start.json`` of an attempt; None when there is none (yet) or it is of another version."""
    return _read(directory, spool.START, StartRecord)


def read_exit(directory: Path) -> ExitRecord | None:
    """``exit.json`` of an attempt; None while the trainer runs, or when its runner died first."""
    return _read(directory, spool.EXIT, ExitRecord)


def read_order(directory: Path) -> LaunchOrder | None:
    """``order.json`` of an attempt; None when there is none."""
    return _read(directory, spool.ORDER, LaunchOrder)


def target_of(start: StartRecord, directory: Path) -> AttemptTarget:
    """What sensors and actions need of a started attempt."""
    return AttemptTarget(
        number=start.attempt,
        trainer=start.trainer,
        runner=start.runner,
        log=start.log,
        directory=str(directory),
    )


def find_attempt(directory: Path) -> AttemptTarget | None:
    """The attempt that was started in ``directory``, dead or alive; None when none was."""
    start = read_start(directory)
    return None if start is None else target_of(start, Path(os.path.abspath(directory)))  # noqa: PTH100


def settle_launch(directory: Path) -> AttemptTarget | None:
    """What became of an order whose launcher died: the attempt, or None, and then none will appear any more.

    Waits for a runner that has taken the order (at most ``CLAIMED_TIMEOUT_S``). Only for who may launch for this run.
    """
    deadline = time.monotonic() + CLAIMED_TIMEOUT_S
    while True:
        owned = _has_runner(directory)  # asked before the file: a runner reports, then ends
        found = find_attempt(directory)
        if found is not None or read_exit(directory) is not None or not (directory / spool.ORDER).exists():
            return found
        if spool.claim(str(directory)):
            return None
        if not owned or time.monotonic() >= deadline:
            return _unreported(directory)
        time.sleep(POLL_S)


def _unreported(directory: Path) -> AttemptTarget | None:
    """A trainer whose runner died in the moment between starting it and saying so."""
    order = read_order(directory)
    marked = processes.marked_with(os.path.abspath(directory), processes.everyone().values())  # noqa: PTH100
    if order is None or not marked:
        return None
    first = min(marked, key=lambda process: process.start_ticks)
    return AttemptTarget(
        number=order.attempt,
        trainer=ProcessIdentity(boot_id=processes.boot_id(), pid=first.pid, start_ticks=first.start_ticks),
        runner=None,
        log=order.log,
        directory=os.path.abspath(directory),  # noqa: PTH100
    )


def _has_runner(directory: Path) -> bool:
    try:
        with (directory / spool.LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def is_alive(identity: ProcessIdentity | None) -> bool:
    """Whether this very process runs now: same boot, same pid, same start, no zombie."""
    if identity is None or identity.boot_id != processes.boot_id():
        return False
    return processes.is_alive((identity.pid, identity.start_ticks))


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a running process (to adopt it); None when there is none or it is a zombie."""
    process = processes.look(pid)
    if process is None or process.state in processes.GONE_STATES:
        return None
    return ProcessIdentity(boot_id=processes.boot_id(), pid=pid, start_ticks=process.start_ticks)


def _read(directory: Path, name: str, kind: type[Record]) -> Record | None:
    content = spool.read(str(directory), name)
    if content is None:
        return None
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError:
        return None


def _put_order(order: LaunchOrder, directory: Path) -> None:
    content: dict[str, Any] = msgspec.to_builtins(order)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any((directory / name).exists() for name in (spool.CLAIM, spool.START, spool.EXIT)):
            raise LaunchError(f"{directory} belongs to an earlier launch; every attempt needs a directory of its own")
        spool.write(str(directory), spool.ORDER, content)
    except OSError as fault:
        remedy = "free some space" if fault.errno in {errno.ENOSPC, errno.EDQUOT} else "check its owner and rights"
        raise LaunchError(f"cannot write the launch order into {directory}: {fault.strerror}; {remedy}") from fault


def _start_runner(directory: Path, attempt: int, deadline: float, *, in_scope: bool) -> bool:
    """Whether a runner was forked off. It may not have read its order yet."""
    # -P: a trainwatch/ or json.py in the current directory must not be taken for ours.
    argv = [sys.executable, "-P", "-m", "trainwatch.core.act.launch.runner", str(directory)]
    if in_scope and scope.why_not() is None:
        scoped = [*scope.command(f"{directory.parent.name}-{attempt}"), *argv]
        # A user manager that fails between the probe and now must not cost the launch.
        if _fork_off(scoped, directory, deadline) or (directory / spool.CLAIM).exists():
            return True
    return _fork_off(argv, directory, deadline)


def _fork_off(argv: list[str], directory: Path, deadline: float) -> bool:
    words = directory / spool.RUNNER_LOG
    try:
        with os.fdopen(os.open(words, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as output:
            starter = subprocess.Popen(  # it forks the runner off and ends, so that we have no child to wait for later
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
            )
        return starter.wait(max(0.0, deadline - time.monotonic())) == 0
    except subprocess.TimeoutExpired:
        starter.kill()
        starter.wait()
        return False
    except OSError as fault:
        raise LaunchError(f"cannot start the runner: {fault}") from fault


def _why_silent(directory: Path) -> str:
    path = directory / spool.RUNNER_LOG
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    last = f": {lines[-1]}" if lines else ""
    return f"the runner did not report{last}; see {path}"
