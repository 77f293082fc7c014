"""Adopting a trainer that was started by hand: its identity, its log, its tmux pane."""

import contextlib
import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from .. import processes, spool
from ..atomic_files import write_atomically
from ..model.run import ProcessIdentity, StartRecord
from ..model.settings import Tmux
from ..private_folder import make_private
from ..processes import identify
from .view.tmux import MARK, SEPARATOR, TmuxError, output

# A trainer that was started by hand: its identity, and what is needed to start it again.
#
# All is read from ``/proc``. Nothing here signals or changes the trainer.

SESSION_BOUND = frozenset({
    "TMUX", "TMUX_PANE", "STY", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "COLUMNS", "LINES",
    "SHLVL", "_", "PWD", "OLDPWD", "LS_COLORS", "PS1", "PROMPT_COMMAND", "HISTFILE", "HISTSIZE", "HISTFILESIZE",
    "WINDOWID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "XDG_SESSION_TYPE",
    "XDG_SESSION_CLASS", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "MANAGERPID",
    processes.ATTEMPT_VARIABLE,
})  # fmt: skip
"""Variables of the session that a program was started from. All others are passed to its next start."""


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
        leader = int(processes.status_fields(pid).get("Tgid", pid))
        if leader != pid:
            raise AdoptionError("unclear", f"{pid} is a thread of process {leader}; give --pid {leader}")
        variables, environ = {}, processes.variables_of(pid)  # first: it waits for the end of an exec
        words = processes.words_of(pid)
        if words == [b""] and identify(pid) == identity:
            raise AdoptionError("refused", f"process {pid} is not a training: it has no command line (kernel thread?)")
        for word in environ or ():
            name, equals, value = word.partition(b"=")
            with contextlib.suppress(UnicodeDecodeError):
                if name and equals:
                    variables[name.decode()] = value.decode()
        trainer = Trainer(
            identity=identity,
            argv=_argv(words),
            cwd=str(Path(f"/proc/{pid}/cwd").readlink()),
            env={key: value for key, value in variables.items() if key not in SESSION_BOUND},
            stdout=stream(pid, 1),
            stderr=stream(pid, 2),
            started_wall=time.time() - processes.age_s(identity.start_ticks),
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
        with contextlib.suppress(OSError):
            if Path(path).samefile(place):
                return Stream(kind="file", path=path)
        return Stream(kind="deleted", path=path)
    if stat.S_ISCHR(status.st_mode) and path.startswith(("/dev/pts/", "/dev/tty")):
        return Stream(kind="terminal", path=path)
    return Stream(kind="other", path=path)


def written_files(pid: int) -> list[Path]:
    """Regular files that a process has open for writing and that still have their names."""
    found: dict[Path, None] = {}
    for number, _, _ in sorted(processes.open_files(pid, for_writing=True)):
        with contextlib.suppress(OSError):
            seen = stream(pid, number)
            if seen.kind == "file":
                found[Path(seen.path)] = None
    return list(found)


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


SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "tcsh", "csh", "ash", "busybox", "login"})
NO_TRAINERS = frozenset({
    "tee", "cat", "tail", "head", "less", "more", "grep", "sed", "awk", "gawk", "mawk", "ts", "watch", "top", "htop",
    "btop", "nvtop", "nvitop", "nvidia-smi", "gpustat", "vi", "vim", "nvim", "nano", "emacs", "man", "ssh",
    "mosh-client", "sleep", "tmux", "tmux: client", "tmux: server", "screen", "fzf", "tensorboard", "trainwatch",
})  # fmt: skip
"""Programs that people run beside a training in their panes."""
FIELDS = ("pane_id", "pane_pid", "pane_tty", "pane_pipe", "pane_dead", MARK, "session_name")
FORMAT = SEPARATOR.join(f"#{{{field}}}" for field in FIELDS)


class PaneSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One pane. ``piped``: its output is already piped to a program. ``run``: id of the run that its session shows."""

    id: str
    pid: int
    tty: str
    piped: bool
    run: str | None
    session: str


def panes_of(settings: Tmux, session: str, environ: Mapping[str, str] = os.environ) -> list[PaneSeen]:
    """The panes of a session, or the one of ``SESSION:WINDOW.PANE`` or ``%ID``. Raises AdoptionError."""
    name, _, rest = session.partition(":")
    target = session if session.startswith("%") else f"={name}:{rest}"
    one = ("display-message", "-p", "-t", target, FORMAT)
    words = one if rest or session.startswith("%") else ("list-panes", "-s", "-t", target, "-F", FORMAT)
    return list(_panes(_ask(settings, environ, session, words)))


def pane_on(settings: Tmux, tty: str, environ: Mapping[str, str] = os.environ) -> PaneSeen | None:
    """The pane of this server that has this terminal; None if there is none, or no server."""
    return next((pane for pane in panes_of_server(settings, environ) if pane.tty == tty), None)


def panes_of_server(settings: Tmux, environ: Mapping[str, str] = os.environ) -> list[PaneSeen]:
    """All panes; empty without tmux or a server."""
    try:
        return list(_panes(_ask(settings, environ, "", ("list-panes", "-a", "-F", FORMAT))))
    except AdoptionError:
        return []


def trainer_in(panes: Sequence[PaneSeen], session: str) -> tuple[int, PaneSeen]:
    """The topmost live process that is neither a shell nor in NO_TRAINERS, and its pane. Raises AdoptionError."""
    running = processes.all_processes()
    own = processes.ancestors(os.getpid(), running)
    found = [(process, pane) for pane in panes for process in topmost(pane.pid, running, own)]
    if not found:
        raise AdoptionError("missing", f"no training runs in tmux session {session}, only shells; give --pid PID")
    if len(found) > 1:
        listed = ", ".join(f"{process.pid} ({process.name})" for process, _ in found)
        raise AdoptionError("unclear", f"several processes run in tmux session {session}: {listed}; give --pid")
    return found[0][0].pid, found[0][1]


def tap(
    settings: Tmux, pane: PaneSeen, trainer: ProcessIdentity, log: Path, environ: Mapping[str, str] = os.environ
) -> None:
    """Write the pane's history to ``log`` and let tmux append all later output. Raises AdoptionError.

    Both happen in one turn of the tmux server, so that no line is lost or doubled between them. A pane that is already
    piped elsewhere is refused.
    """
    python_path = [f"PYTHONPATH={path}"] if (path := environ.get("PYTHONPATH")) else []
    words = ["env", *python_path, sys.executable, "-P", "-m", "trainwatch.core.act.view.pty_client", "--copy"]
    copier = shlex.join([*words, str(log), str(trainer.pid), str(trainer.start_ticks)])
    # tmux expands formats and dates in the command of a pipe.
    copier = copier.replace("#", "##").replace("%", "%%")
    target = ("-t", pane.id)
    commands = (
        *("display-message", "-p", *target, "#{pane_pipe}#{cursor_x}", ";"),
        *("capture-pane", "-p", "-J", "-S", "-", *target, ";"),
        # pipe-pane -o would close a pipe that is there.
        *("if-shell", "-F", *target, "#{?pane_pipe,0,1}", shlex.join(["pipe-pane", "-O", *target, copier])),
    )
    text = _ask(settings, environ, pane.session, commands)
    head, _, history = text.partition("\n")
    if head[:1] == "1":
        raise AdoptionError("unclear", piped_already(pane))
    lines = "\n".join(line.rstrip() for line in history.rstrip("\n").split("\n"))
    whole = head[1:] == "0"
    content = lines + "\n" if whole and lines else lines
    write_atomically(log, content.encode())


def piped_already(pane: PaneSeen) -> str:
    """Message: why the pane is refused, and what to do."""
    return (
        f"pane {pane.id} of tmux session {pane.session} is copied into a file already (tmux pipe-pane); "
        "name that file with --log F"
    )


def topmost(root: int, running: Mapping[int, processes.Process], own: set[int]) -> Iterator[processes.Process]:
    """The programs below a shell that may be trainings. ``own``: pids of this command and its ancestors."""
    process = running.get(root)
    if process is None or process.state in processes.DEAD_STATES:
        return
    program = Path(processes.link_of(f"/proc/{root}/exe")).name  # a script's process has the script's name
    if root in own or not SHELLS.isdisjoint((process.name, program)):
        for child in running.values():
            if child.parent == root:
                yield from topmost(child.pid, running, own)
    elif process.name not in NO_TRAINERS and not processes.is_trainwatch(processes.words_of(root)):
        yield process


def _panes(text: str) -> Iterator[PaneSeen]:
    for line in text.splitlines():
        values = line.split(SEPARATOR)
        if len(values) == len(FIELDS) and values[4] != "1":
            pane, pid, tty, piped, _, run, session = values
            yield PaneSeen(id=pane, pid=int(pid), tty=tty, piped=piped == "1", run=run or None, session=session)


def _ask(settings: Tmux, environ: Mapping[str, str], session: str, words: Sequence[str]) -> str:
    """What tmux prints. Raises AdoptionError."""
    server = f" on socket {settings.socket}" if settings.socket else ""
    try:
        return output(settings, environ, words)
    except TmuxError as error:
        kind: Literal["refused", "missing"] = "refused" if error.fault == "deadline" else "missing"
        text = {
            "missing": f"{error}, so tmux sessions cannot be read; give --pid PID",
            "deadline": f"{error}{server}; give --pid PID",
            "failed": f"no tmux session {session}{server} ({error}); `tmux ls` lists those that exist",
        }[error.fault]
        raise AdoptionError(kind, text) from error


LOG_SUFFIXES = frozenset({".log", ".out", ".txt", ".err"})


class LogPlace(msgspec.Struct, frozen=True, kw_only=True):
    """``log``: the file; None: copy the pane on ``tty``. ``more``: other files with a part of the output."""

    log: str | None
    tty: str | None = None
    more: tuple[str, ...] = ()


def log_of(trainer: Trainer, given: Path | None) -> LogPlace:
    """The given log, else the one that the trainer's descriptors show. Raises AdoptionError with what to do."""
    if given is not None:
        if not given.is_file():
            raise AdoptionError("missing", f"{given}: no such log; give the file that the training writes")
        return LogPlace(log=str(given.absolute()))
    pid = trainer.identity.pid
    streams = (trainer.stderr, trainer.stdout)
    places = (s.path if s.kind == "file" else _teed(pid, s.path) if s.kind == "pipe" else None for s in streams)
    files = [place for place in places if place]
    if files:
        return LogPlace(log=files[0], more=tuple(f for f in files[1:] if f != files[0]))
    terminal = next((s for s in (trainer.stdout, trainer.stderr) if s.kind == "terminal"), None)
    logs = [p for p in written_files(pid) if p.suffix.lower() in LOG_SUFFIXES]
    if terminal is not None:
        return LogPlace(log=None, tty=terminal.path, more=tuple(str(p) for p in logs[:1]))
    if logs:
        return LogPlace(log=str(max(logs, key=lambda p: p.stat().st_mtime)))
    out = trainer.stdout
    where = {
        "deleted": f"a file that was deleted ({out.path.removesuffix(' (deleted)')})",
        "pipe": "a pipe that another program reads",
    }.get(out.kind, out.path)
    raise unreadable(trainer, f"{where}, which")


def _teed(pid: int, pipe: str) -> str | None:
    """The file of the only program (``tee``) that reads this pipe and writes a file."""
    found: set[str] = set()
    for process in processes.all_processes().values():
        if process.pid == pid:
            continue
        try:
            reads = stream(process.pid, 0).path == pipe
        except OSError:
            continue
        if reads:
            found.update(str(path) for path in written_files(process.pid))
    return found.pop() if len(found) == 1 else None


def unreadable(trainer: Trainer, where: str) -> AdoptionError:
    """The error for a trainer whose output cannot be read. ``where``: it goes, up to the verb."""
    text = f"process {trainer.identity.pid} writes to {where} cannot be read from outside; name its log with --log F"
    return AdoptionError("unclear", text)
