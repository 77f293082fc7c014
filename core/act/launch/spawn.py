"""Fork and exec of the trainer, as the runner does it. Standard library only."""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shlex
import signal
import struct
import sys
import termios
from collections.abc import Sequence
from typing import Any, NoReturn

from ...private_folder import make_private
from ...processes import ATTEMPT_VARIABLE

# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH110, PTH112, PTH118, PTH120, PTH123


PR_SET_PTRACER = 0x59616D61
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
NOT_EXECUTABLE = 126
NOT_FOUND = 127

_libc = ctypes.CDLL(None, use_errno=True)


class CannotStart(Exception):  # noqa: N818 - the name states the failure
    """The command could not be started; ``code``: exit code that a shell would return; ``errno``: of the system."""

    def __init__(self, message: str, code: int, errno: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.errno = errno


def become_subreaper(*, on: bool = True) -> bool:
    """Make orphans of the trainer children of this process, so that all are waited for. Returns whether it was so."""
    was = ctypes.c_int(0)
    _libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
    return bool(was.value)


def open_log(path: str) -> int:
    """Open the trainer's log for appending; a new one gets mode 0600. Raises CannotStart."""
    try:
        make_private(os.path.dirname(path))
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as fault:
        raise CannotStart(f"cannot open the log {path}: {fault.strerror}", NOT_EXECUTABLE, fault.errno) from fault


def child_environment(order: dict[str, Any], directory: str) -> dict[str, str]:
    """The order's environment with ATTEMPT_VARIABLE, and unbuffered output (a crash loses buffered lines)."""
    env: dict[str, str] = dict(order["env"])
    env.setdefault("PYTHONUNBUFFERED", "1")
    env[ATTEMPT_VARIABLE] = directory
    if order["terminal"] == "pty":
        env.setdefault("TERM", "xterm-256color")
    return env


def spawn(order: dict[str, Any], directory: str, log: int) -> tuple[int, int | None]:
    """Start the order's command in its own session. Returns after the exec; raises CannotStart.

    Returns its pid, and the runner's end of its terminal, None in file mode.
    """
    argv: list[str] = list(order["argv"])
    env = child_environment(order, directory)
    _check(argv, env)
    master = slave = None
    if order["terminal"] == "pty":
        master, slave = os.openpty()
        set_size(master, order["rows"], order["columns"])
    fault_read, fault_write = os.pipe()  # closed by a successful exec; else it carries the failed stage and errno
    sys.stdout.flush()
    sys.stderr.flush()
    runner = os.getpid()
    pid = os.fork()
    if pid == 0:
        output = log if slave is None else slave
        _exec_child(argv, env, order["cwd"], output, fault_write, runner, is_terminal=slave is not None)
    os.close(fault_write)
    if slave is not None:
        os.close(slave)
    with os.fdopen(fault_read, "rb") as pipe:
        fault = pipe.read()
    if fault:
        os.waitpid(pid, 0)
        if master is not None:
            os.close(master)
        where, number = fault.decode().split(":")
        found = _explain(where, int(number), argv, order["cwd"], env)
        raise CannotStart(str(found), found.code, int(number))
    return pid, master


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the window size of a terminal; the kernel sends SIGWINCH to its foreground processes."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _check(argv: list[str], env: dict[str, str]) -> None:
    if not argv or not argv[0]:
        raise CannotStart("the command is empty; name a program to run", NOT_FOUND)
    if any("\0" in argument for argument in argv):
        raise CannotStart("an argument of the command holds a NUL character; remove it", NOT_EXECUTABLE)
    for key, value in env.items():
        if not key or "=" in key or "\0" in key + value:
            raise CannotStart(f"not an environment variable: {key!r} (run.env); rename or remove it", NOT_EXECUTABLE)


def _exec_child(  # noqa: PLR0917 - one call, right after the fork
    argv: list[str], env: dict[str, str], cwd: str, output: int, fault: int, runner: int, *, is_terminal: bool
) -> NoReturn:
    where = "start"
    try:
        os.setsid()
        if is_terminal:
            fcntl.ioctl(output, termios.TIOCSCTTY, 0)
            stdin = output
        else:
            stdin = os.open(os.devnull, os.O_RDONLY)
        for number, handle in ((0, stdin), (1, output), (2, output)):
            os.dup2(handle, number)
        # Yama (Ubuntu's default) allows only ancestors to trace a process. This allows py-spy, a child of the runner.
        _libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(runner), 0, 0, 0)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) is not None:
                signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        where = "cwd"
        os.chdir(cwd)
        where = "exec"
        os.execvpe(argv[0], argv, env)
    except OSError as problem:
        os.write(fault, f"{where}:{problem.errno}".encode())
    except BaseException:  # the forked copy of the runner must not live on
        os.write(fault, f"{where}:{errno.EINVAL}".encode())
    os._exit(NOT_FOUND)


def why_not(argv: list[str], env: dict[str, str], cwd: str) -> str | None:
    """Why this command cannot be started now, as a sentence; None if it can be started."""
    import shutil

    try:
        _check(argv, env)
    except CannotStart as fault:
        return str(fault)
    if not os.path.isdir(cwd):
        return str(_explain("cwd", errno.ENOENT if not os.path.exists(cwd) else errno.ENOTDIR, argv, cwd, env))
    named = os.path.join(cwd, argv[0]) if "/" in argv[0] else argv[0]
    path = env.get("PATH", os.defpath)
    if shutil.which(named, path=path) is not None:
        return None
    is_there = "/" in argv[0] and os.path.exists(named)
    number = errno.EACCES if is_there or shutil.which(named, mode=os.F_OK, path=path) else errno.ENOENT
    return str(_explain("exec", number, argv, cwd, env))


def _explain(where: str, number: int, argv: list[str], cwd: str, env: dict[str, str]) -> CannotStart:
    command, why = argv[0], os.strerror(number)
    if where == "cwd":
        remedy = "create it or correct the path"
        return CannotStart(f"cannot enter the working directory {cwd}: {why}; {remedy}", NOT_EXECUTABLE)
    if where == "start":
        return CannotStart(f"cannot prepare the process for {command!r}: {why}", NOT_EXECUTABLE)
    import shutil  # only here: it loads the compression modules, which the runner has no use for

    in_cwd = os.path.join(cwd, command) if "/" in command else command
    found = shutil.which(in_cwd, mode=os.F_OK, path=env.get("PATH", os.defpath))
    is_missing = number in {errno.ENOENT, errno.ENOTDIR}
    through = f"start it through an interpreter, as in: bash {shlex.quote(command)}"
    if is_missing and found is None:
        line = for_a_shell(argv)
        remedy = f"type it as: {line}" if line else "check the spelling or give the full path"
        text = f"command not found: {command!r}; {remedy}"
    elif is_missing:
        mend = ends_as_on_windows(found or "")
        text = f"cannot start {found}: the interpreter that its first line names is missing; {mend}correct that line"
    elif number == errno.EACCES and os.path.isdir(in_cwd):
        text = f"not a program: {command} is a folder; name a file in it"
    elif number == errno.EACCES:
        text = f"not executable: {found or command}; chmod +x it, or {through}"
    elif number == errno.ENOEXEC:
        text = f"not a program: {found or command} has no #! line; {through}"
    elif number == errno.E2BIG:
        text = "the command line and environment are too long for the system; shorten them"
    else:
        text = f"cannot start {command!r}: {why}"
    return CannotStart(text, NOT_FOUND if is_missing else NOT_EXECUTABLE)


# Room for a log on a disk that fills up: blocks behind its end, which no other file can take.

ROOM_BYTES = 4 << 20
"""A day of progress bars."""
LOW_BYTES = 1 << 20
"""With less than this left, more is reserved."""
SHARE = 8
"""At most this part of the free space is taken."""
KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE of fallocate(2): the file does not look longer."""


def reserve(descriptor: int) -> bool:
    """Keep room behind the end of an open file. Returns whether it is there."""
    try:
        status, disk = os.fstat(descriptor), os.fstatvfs(descriptor)
    except OSError:
        return False
    if status.st_blocks * 512 - status.st_size >= LOW_BYTES:
        return True
    size = min(ROOM_BYTES, disk.f_bavail * disk.f_frsize // SHARE)
    if size <= 0:
        return False
    place, length = ctypes.c_longlong(status.st_size), ctypes.c_longlong(size)
    return bool(_libc.fallocate(descriptor, KEEP_SIZE, place, length) == 0)


def reserve_by_name(path: str) -> bool:
    """The same for a file that exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return reserve(descriptor)
    finally:
        os.close(descriptor)


def give_back(path: str) -> None:
    """Free what is left of it: nobody writes the log any more."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)


# What to type instead of a command that cannot be started as it stands.

OPERATORS = re.compile(r"&&|\|\||[;|&<>$]")
FUNCTIONS = frozenset({"module", "ml", "conda", "mamba", "micromamba", "pyenv", "nvm"})
"""Words that a login shell defines (``bash -lic``)."""
SHELL_WORDS = FUNCTIONS | {".", "source", "cd", "export", "ulimit", "umask", "set", "unset", "pushd", "alias", "eval"}
"""Words that only a shell knows, or a function that its start-up file defines."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_HEAD_BYTES = 256


def for_a_shell(argv: Sequence[str]) -> str | None:
    """What to type for words that are no program but a line of a shell; None for others."""
    if _ASSIGNMENT.match(argv[0]) and len(argv) > 1:
        return shlex.join(("env", *argv))
    words = argv[0].split()
    if not words or (len(words) == 1 and words[0] not in SHELL_WORDS):
        return None
    line = argv[0] if len(argv) == 1 else " ".join(w if OPERATORS.match(w) else shlex.quote(w) for w in argv)
    return f"bash {'-lic' if words[0] in FUNCTIONS else '-c'} {shlex.quote(line)}"


def first_line(path: str) -> bytes:
    """Of a script; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.readline(_HEAD_BYTES)
    except OSError:
        return b""


def ends_as_on_windows(path: str) -> str:
    """What to type for a script whose first line ends with a carriage return, which belongs to the name then; or ""."""
    is_so = b"\r" in first_line(path)
    return f"its lines end as on Windows: sed -i 's/\\r$//' {shlex.quote(path)}; or " if is_so else ""
