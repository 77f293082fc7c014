"""A trainer that was started by hand: its identity, and what is needed to start it again.

All is read from ``/proc``. Nothing here signals or changes the trainer.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ...model.attempt import StartRecord
from ...model.launch.command_words import lone_config
from ...model.run import ProcessIdentity
from ...private_folder import make_private
from .. import processes
from ..launch import spool
from ..launch.launching import identify

SESSION_BOUND = frozenset({
    "TMUX", "TMUX_PANE", "STY", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "COLUMNS", "LINES",
    "SHLVL", "_", "PWD", "OLDPWD", "LS_COLORS", "PS1", "PROMPT_COMMAND", "HISTFILE", "HISTSIZE", "HISTFILESIZE",
    "WINDOWID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "XDG_SESSION_TYPE",
    "XDG_SESSION_CLASS", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "MANAGERPID",
    processes.ATTEMPT_VARIABLE,
})  # fmt: skip
"""Variables of the session that a program was started from. All others are passed to its next start."""
CONFIG_OPTIONS = frozenset({"config", "config_file", "config_path", "cfg"})
CONFIG_SUFFIXES = frozenset({".toml", ".yaml", ".yml"})


class AdoptionError(Exception):
    """The process cannot be adopted; the message is a sentence.

    ``kind``: "missing" (no such process, session or file), "unclear" (more options are needed), "refused".
    """

    def __init__(self, kind: Literal["missing", "unclear", "refused"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """What a file descriptor of the trainer refers to. ``path``: of a file that was not deleted, or of a terminal."""

    kind: Literal["file", "deleted", "terminal", "pipe", "other"]
    path: str


class Trainer(msgspec.Struct, frozen=True, kw_only=True):
    """A running process that may be adopted. ``argv`` is empty if the process has overwritten it.

    ``started_wall``: seconds since the epoch. ``env``: without the variables of its session. ``attempt``: from its
    environment, the attempt folder that it already belongs to.
    """

    identity: ProcessIdentity
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdout: Stream
    stderr: Stream
    started_wall: float
    attempt: str | None = None


def look_at(pid: int) -> Trainer:
    """Read a process that is to be adopted. Raises AdoptionError."""
    identity = identify(pid)
    if identity is None:
        raise AdoptionError("missing", f"no process {pid} is running; `ps -ef` lists those that are")
    if pid in processes.ancestors(os.getpid(), processes.all_processes()) or pid == 1:
        raise AdoptionError("refused", f"process {pid} is not a training: this command was started from it")
    try:
        leader = _thread_leader(pid)
        if leader != pid:
            raise AdoptionError("unclear", f"{pid} is a thread of process {leader}; give --pid {leader}")
        words = _zero_separated(f"/proc/{pid}/cmdline")
        if not words:
            raise AdoptionError("refused", f"process {pid} is not a training: it has no command line (kernel thread?)")
        variables = dict(_pairs(_zero_separated(f"/proc/{pid}/environ")))
        trainer = Trainer(
            identity=identity,
            argv=_argv(words),
            cwd=str(Path(f"/proc/{pid}/cwd").readlink()),
            env={key: value for key, value in variables.items() if key not in SESSION_BOUND},
            stdout=stream(pid, 1),
            stderr=stream(pid, 2),
            started_wall=started_wall(identity),
            attempt=variables.get(processes.ATTEMPT_VARIABLE),
        )
    except PermissionError as fault:
        raise AdoptionError(
            "refused", f"process {pid} belongs to another user; run trainwatch as the user who started it"
        ) from fault
    except OSError:
        trainer = None
    if trainer is None or identify(pid) != identity:
        raise AdoptionError("missing", f"process {pid} ended while it was read")
    return trainer


def stream(pid: int, descriptor: int) -> Stream:
    """What a descriptor of a process refers to. Raises OSError if the process has ended or is another user's."""
    place = Path(f"/proc/{pid}/fd/{descriptor}")
    try:
        path = str(place.readlink())
    except FileNotFoundError:
        Path(f"/proc/{pid}").stat()
        return Stream(kind="other", path="nowhere (closed)")
    if path.startswith("pipe:"):
        return Stream(kind="pipe", path=path)
    try:
        status = place.stat()
    except OSError:
        return Stream(kind="other", path=path)
    if stat.S_ISREG(status.st_mode):
        return Stream(kind="file" if _is_same_file(path, status) else "deleted", path=path)
    if stat.S_ISCHR(status.st_mode) and path.startswith(("/dev/pts/", "/dev/tty")):
        return Stream(kind="terminal", path=path)
    return Stream(kind="other", path=path)


def written_files(pid: int) -> list[Path]:
    """Regular files that a process has open for writing and that still have their names."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        for entry in sorted(Path(f"/proc/{pid}/fd").iterdir(), key=lambda e: int(e.name)):
            with contextlib.suppress(OSError):
                seen = stream(pid, int(entry.name))
                if seen.kind == "file" and _is_for_writing(pid, entry.name) and Path(seen.path) not in found:
                    found.append(Path(seen.path))
    return found


def started_wall(identity: ProcessIdentity) -> float:
    """Start time of a process, seconds since the epoch. Ticks count from boot and include suspends."""
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - identity.start_ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - max(0.0, age_s)


def config_of(argv: Sequence[str], cwd: str) -> str | None:
    """The config file that a trainer's command names (``--config_file F``, ``--config=F``, ``train.py F``), or None."""
    for number, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if not name.startswith("-") or name.lstrip("-").replace("-", "_") not in CONFIG_OPTIONS:
            continue
        given = value if equals else next(iter(argv[number + 1 : number + 2]), "")
        path = Path(cwd, given)
        if given and path.suffix.lower() in CONFIG_SUFFIXES and path.is_file():
            return str(path)
    lone = lone_config(argv)
    return str(Path(cwd, lone)) if lone is not None and Path(cwd, lone).is_file() else None


def record_start(directory: Path, trainer: Trainer, log: str) -> StartRecord:
    """Write the ``start.json`` of attempt 1, from which supervisors adopt the trainer. Raises OSError."""
    start = StartRecord(
        attempt=1, trainer=trainer.identity, runner=None, wall=trainer.started_wall, log=log, argv=trainer.argv
    )
    make_private(directory)
    spool.write(str(directory), spool.START, msgspec.to_builtins(start))
    return start


def _argv(words: Sequence[bytes]) -> tuple[str, ...]:
    """The command line, or empty if it cannot be started again."""
    try:
        argv = tuple(word.decode() for word in words)
    except UnicodeDecodeError:
        return ()
    while argv and not argv[-1]:
        argv = argv[:-1]
    # A program that renames itself (setproctitle) leaves one argument with spaces in it.
    return () if len(argv) == 1 and " " in argv[0] and not Path(argv[0]).exists() else argv


def _pairs(words: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, equals, value = word.partition(b"=")
        with contextlib.suppress(UnicodeDecodeError):
            if name and equals:
                yield name.decode(), value.decode()


def _zero_separated(path: str) -> list[bytes]:
    content = Path(path).read_bytes()
    return content.removesuffix(b"\0").split(b"\0") if content else []


def _thread_leader(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    return pid


def _is_same_file(path: str, status: os.stat_result) -> bool:
    try:
        there = Path(path).stat()
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino)


def _is_for_writing(pid: int, descriptor: str) -> bool:
    for line in Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
