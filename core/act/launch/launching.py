"""Launching an attempt: write the order into the spool, start a detached runner, wait for its report."""

import contextlib
import errno
import fcntl
import functools
import getpass
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ... import processes, spool
from ...bound_process import NoAnswerError, answer
from ...model.ports import AttemptTarget
from ...model.preset import ScriptState
from ...model.progress import HoldKind
from ...model.run import LaunchOrder, StartRecord
from ...private_folder import make_private
from ...spool import read_exit, read_order, read_start

START_TIMEOUT_S = 10.0
"""Python needs one or two seconds if it has to be read from a slow disk."""
CLAIMED_TIMEOUT_S = 20.0
"""A runner that has claimed the order but not reported may be in a slow exec from a network disk."""
POLL_S = 0.01
ERRNO = re.compile(r"\[Errno (\d+)\]")


class LaunchError(RuntimeError):
    """The attempt did not start; the message is a sentence. ``code``: what a shell would return (126, 127).

    ``silent``: the runner died or did not report, so another launch may succeed. ``errno``: of the runner's OSError.
    """

    def __init__(
        self, message: str, code: int | None = None, *, silent: bool = False, errno: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.silent = silent
        self.errno = errno


WAITED_FOR: dict[int, HoldKind] = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "no_room"),
    errno.EROFS: "read_only",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM), "no_resources"),
    errno.ETIMEDOUT: "not_started",
}
"""Troubles that pass → keys: full disk or quota, read-only disk; no file, process or memory free; no answer in time."""


def waited_for(error: BaseException | None) -> HoldKind | None:
    """The trouble that a failed launch waits for, by the error or its cause; None: waiting changes nothing."""
    if error is None:
        return None
    number: int | None = getattr(error, "errno", None)
    return waited_for(error.__cause__) if number is None else WAITED_FOR.get(number)


def launch(order: LaunchOrder, directory: Path, *, scope: bool = True) -> AttemptTarget:
    """Start a runner for ``order`` in ``directory`` (made with mode 0700, used once) and wait until the trainer exists.

    ``scope``: use a systemd scope if that works here. Blocks until the exec has succeeded, typically 0.1 s. Raises
    LaunchError if there is no trainer; none will appear later either. A trainer that started and died at once is no
    error: ``exit.json`` has its status.
    """
    directory = Path(os.path.abspath(directory))  # noqa: PTH100 - resolve() would follow links
    _put_order(order, directory)
    deadline = time.monotonic() + START_TIMEOUT_S
    if not _start_runner(directory, order.attempt, deadline, in_scope=scope) and spool.claim(str(directory)):
        raise _silent(directory)
    claimed = False
    while True:
        runner_died = (directory / spool.CLAIM).exists() and not _has_runner(directory)  # before the file is read
        start = read_start(directory)
        if start is not None:
            return target_of(start, directory)
        ended = read_exit(directory)
        if ended is not None and read_start(directory) is None:
            why = ended.error or "the trainer ended before it reported its start"
            raise LaunchError(why, ended.code, errno=ended.errno)
        if runner_died and ended is None:
            return _report_instead(directory)
        if time.monotonic() >= deadline:
            if claimed or spool.claim(str(directory)):
                raise _silent(directory)
            # The runner has claimed the order: the trainer may exist at any moment and must not be started twice.
            claimed, deadline = True, time.monotonic() + CLAIMED_TIMEOUT_S
        time.sleep(POLL_S)


def target_of(start: StartRecord, directory: Path) -> AttemptTarget:
    """What sensors and actions need of a started attempt."""
    return AttemptTarget(
        number=start.attempt, trainer=start.trainer, runner=start.runner, log=start.log, directory=str(directory)
    )


def find_attempt(directory: Path) -> AttemptTarget | None:
    """The attempt that was started in ``directory``, dead or alive, or None."""
    start = read_start(directory)
    return None if start is None else target_of(start, Path(os.path.abspath(directory)))  # noqa: PTH100


def settle_launch(directory: Path) -> AttemptTarget | None:
    """Resolve an order whose launcher died. Returns the attempt, or None, and then none will appear later.

    Waits at most CLAIMED_TIMEOUT_S for a runner that has claimed the order. The caller must hold the run's lock.
    """
    deadline = time.monotonic() + CLAIMED_TIMEOUT_S
    while True:
        owned = _has_runner(directory)  # before the file is read: a runner reports, then ends
        found = find_attempt(directory)
        if found is not None or read_exit(directory) is not None or not (directory / spool.ORDER).exists():
            return found
        if spool.claim(str(directory)):
            return None
        if not owned or time.monotonic() >= deadline:
            return _unreported(directory)
        time.sleep(POLL_S)


def _unreported(directory: Path) -> AttemptTarget | None:
    """A trainer whose runner died between starting it and writing ``start.json``."""
    order = read_order(directory)
    marked = processes.marked_with(os.path.abspath(directory), processes.all_processes().values())  # noqa: PTH100
    if order is None or not marked:
        return None
    first = min(marked, key=lambda process: process.start_ticks)
    return AttemptTarget(
        number=order.attempt,
        trainer=processes.identity_of(first),
        runner=None,
        log=order.log,
        directory=os.path.abspath(directory),  # noqa: PTH100
    )


def _report_instead(directory: Path) -> AttemptTarget:
    """The runner died before its report: report the trainer, if it has started one. Raises LaunchError if not.

    A child that the runner has forked and that is not the trainer yet shares its lock, so it is waited for.
    """
    target, order = _unreported(directory), read_order(directory)
    if target is None or order is None:
        raise LaunchError(f"the runner died before it started the trainer; see {directory}", silent=True)
    record = StartRecord(
        attempt=target.number, trainer=target.trainer, runner=None, wall=time.time(), log=order.log, argv=order.argv
    )
    spool.write(str(directory), spool.START, msgspec.to_builtins(record))
    return target


def lives_elsewhere(directory: Path) -> bool:
    """Whether the runner of an attempt holds its lock, and is not seen here: in a container, on another host."""
    start = read_start(directory)
    seen = start is None or start.runner is None or processes.is_alive(start.runner)
    return not seen and read_exit(directory) is None and _has_runner(directory)


def _has_runner(directory: Path) -> bool:
    try:
        with (directory / spool.LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _put_order(order: LaunchOrder, directory: Path) -> None:
    content: dict[str, Any] = msgspec.to_builtins(order)
    try:
        make_private(directory)
        if any((directory / name).exists() for name in (spool.CLAIM, spool.START, spool.EXIT)):
            raise LaunchError(f"{directory} belongs to an earlier launch; every attempt needs a directory of its own")
        spool.write(str(directory), spool.ORDER, content)
    except OSError as fault:
        remedy = "free some space" if fault.errno in {errno.ENOSPC, errno.EDQUOT} else "check its owner and rights"
        raise LaunchError(f"cannot write the launch order into {directory}: {fault.strerror}; {remedy}") from fault


def _start_runner(directory: Path, attempt: int, deadline: float, *, in_scope: bool) -> bool:
    """Start the runner. Returns whether it was forked off; it may not have read its order yet."""
    # -P: do not import a trainwatch/ or json.py from the current directory.
    argv = [sys.executable, "-P", "-m", "trainwatch.core.act.launch.runner", str(directory)]
    if in_scope and why_not() is None:
        scoped = [*command(f"{directory.parent.name}-{attempt}"), *argv]
        # If systemd's user manager fails after the probe, launch without a scope.
        if _fork_off(scoped, directory, deadline) or (directory / spool.CLAIM).exists():
            return True
    return _fork_off(argv, directory, deadline)


def _fork_off(argv: list[str], directory: Path, deadline: float) -> bool:
    log = directory / spool.RUNNER_LOG
    try:
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as output:
            starter = subprocess.Popen(  # it forks the runner and ends, so that no child remains to be waited for
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
            )
        return starter.wait(max(0.0, deadline - time.monotonic())) == 0
    except subprocess.TimeoutExpired:
        starter.kill()
        starter.wait()
        return False
    except OSError as fault:
        raise LaunchError(f"cannot start the runner: {fault}") from fault


def _silent(directory: Path) -> LaunchError:
    """The runner died early: Python's last words about it, and their number. Without words nothing is known."""
    path = directory / spool.RUNNER_LOG
    lines = processes.file_text(path).strip().splitlines()
    last = f": {lines[-1]}" if lines else ""
    number = ERRNO.search(last)
    errno_ = int(number[1]) if number is not None else None if lines else errno.ETIMEDOUT
    return LaunchError(f"the runner did not report{last}; see {path}", silent=True, errno=errno_)


NAME = "script.json"
"""File in the attempt's folder: the script of its command as it stood at the launch."""
LONGEST_BYTES = 1 << 22
"""Larger files are not scripts."""


def read_script(path: Path) -> ScriptState | None:
    """The script as it is now; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            seen = os.fstat(file.fileno())
            content = file.read(LONGEST_BYTES + 1)
    except OSError:
        return None
    if len(content) > LONGEST_BYTES:
        return None
    return ScriptState(path=str(path), size=seen.st_size, mtime=seen.st_mtime, sha256=sha256(content).hexdigest())


def keep(folder: Path, script: ScriptState | None) -> None:
    """Write it to the attempt's folder. Without the file nothing is said about changes."""
    if script is not None:
        with contextlib.suppress(OSError):
            spool.write(str(folder), NAME, msgspec.to_builtins(script))


def kept(folder: Path) -> ScriptState | None:
    """What ``keep`` wrote; None if there is nothing or it cannot be read."""
    return spool.read_record(folder, NAME, ScriptState)


# A systemd scope that keeps a process running after logout (``systemd-run --user --scope``).
#
# It is used only with lingering. Without lingering the user's service manager and its scopes end with the last
# session, but a detached process without a scope survives if ``KillUserProcesses=no``, the default of most
# distributions.

PROBE_TIMEOUT_S = 5.0
LINGER = Path("/var/lib/systemd/linger")


def command(unit: str) -> list[str]:
    """Prefix of a command that runs it in a scope of its own, which is named after ``unit``."""
    readable = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in unit)[:80]
    name = f"trainwatch-{readable}-{os.urandom(4).hex()}"
    return ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={name}", "--"]


@functools.cache
def why_not() -> str | None:
    """None if scopes work (probed once per process), else a sentence about what is missing."""
    return probe(os.environ, LINGER)


def probe(environ: Mapping[str, str], linger: Path) -> str | None:
    """Run a command in a scope. ``linger``: folder with a file for each user who lingers. Blocks at most 5 s."""
    if not (environ.get("XDG_RUNTIME_DIR") or environ.get("DBUS_SESSION_BUS_ADDRESS")):
        return "there is no systemd user session (XDG_RUNTIME_DIR is not set); the run is detached without a scope"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    if not (linger / user).exists():
        return f"lingering is off; `loginctl enable-linger {user}` keeps runs alive after logout on every host"
    try:
        answer([*command("probe"), "true"], PROBE_TIMEOUT_S, env=environ)
    except NoAnswerError as fault:
        if fault.kind == "absent":
            return "systemd-run is not installed; the run is detached without a scope"
        return f"systemd-run fails: {(fault.said.strip() or str(fault)).splitlines()[-1]}"
    return None
