"""Trainers in tmux panes: finding the training among a pane's processes, and copying its output into a log."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, assert_never

import msgspec

from ...model.run import ProcessIdentity
from ...model.settings import Tmux
from .. import processes
from ..view import tmux_calls
from ..view.tmux_calls import MARK, CopyPane, ListPanes, TmuxError
from .adoption import AdoptionError

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "tcsh", "csh", "ash", "busybox", "login"})
NO_TRAINERS = frozenset({
    "tee", "cat", "tail", "head", "less", "more", "grep", "sed", "awk", "gawk", "mawk", "ts", "watch", "top", "htop",
    "btop", "nvtop", "nvitop", "nvidia-smi", "gpustat", "vi", "vim", "nvim", "nano", "emacs", "man", "ssh",
    "mosh-client", "sleep", "tmux", "tmux: client", "tmux: server", "screen", "fzf", "tensorboard", "trainwatch",
})  # fmt: skip
"""Programs that people run beside a training in their panes."""
SEPARATOR = "\x1f"
FIELDS = ("pane_id", "pane_pid", "pane_tty", "pane_pipe", "pane_dead", MARK, "session_name")


class PaneSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One pane. ``piped``: its output is already piped to a program. ``run``: id of the run that its session shows."""

    id: str
    pid: int
    tty: str
    piped: bool
    run: str | None
    session: str


def panes_of(settings: Tmux, session: str, environ: Mapping[str, str] | None = None) -> list[PaneSeen]:
    """The panes of a session, or the one of ``SESSION:WINDOW.PANE`` or ``%ID``. Raises AdoptionError."""
    name, _, rest = session.partition(":")
    if session.startswith("%"):
        return _list(settings, environ, session, "pane", session)
    return _list(settings, environ, session, "pane" if rest else "session", f"={name}:{rest}")


def pane_on(settings: Tmux, tty: str, environ: Mapping[str, str] | None = None) -> PaneSeen | None:
    """The pane of this server that has this terminal; None if there is none, or no server."""
    return next((pane for pane in panes_of_server(settings, environ) if pane.tty == tty), None)


def panes_of_server(settings: Tmux, environ: Mapping[str, str] | None = None) -> list[PaneSeen]:
    """All panes; empty without tmux or a server."""
    try:
        return _list(settings, environ, "", "server")
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
    settings: Tmux,
    pane: PaneSeen,
    trainer: ProcessIdentity,
    log: Path,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Write the pane's history to ``log`` and let tmux append all later output. Raises AdoptionError.

    Both happen in one turn of the tmux server, so that no line is lost or doubled between them. A pane that is already
    piped elsewhere is refused.
    """
    words = ["env", *_python_path(environ), sys.executable, "-P", "-m", "trainwatch.core.act.adopt.pane_copy"]
    copier = shlex.join([*words, str(log), str(trainer.pid), str(trainer.start_ticks)])
    # tmux expands formats and dates in the command of a pipe.
    copier = copier.replace("#", "##").replace("%", "%%")
    text = _ask(settings, environ, pane.session, CopyPane(pane=pane.id, command=copier))
    head, _, history = text.partition("\n")
    if head[:1] == "1":
        raise AdoptionError("unclear", piped_already(pane))
    lines = "\n".join(line.rstrip() for line in history.rstrip("\n").split("\n"))
    whole = head[1:] == "0"
    content = lines + "\n" if whole and lines else lines
    fresh = log.with_name(f".{log.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
    fresh.rename(log)


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
    if _is_shell(process) or root in own:
        for child in running.values():
            if child.parent == root:
                yield from topmost(child.pid, running, own)
    elif process.name not in NO_TRAINERS and not is_trainwatch(root):
        yield process


def _is_shell(process: processes.Process) -> bool:
    """Judged by its program: a script's process has the script's name."""
    try:
        program = Path(f"/proc/{process.pid}/exe").readlink().name
    except OSError:
        program = process.name
    return program in SHELLS or process.name in SHELLS


def is_trainwatch(pid: int) -> bool:
    """Whether a process is one of ours."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:5]
    except OSError:
        return False
    return any(word.rpartition(b"/")[2].split(b".")[0] == b"trainwatch" for word in words[1:])


def _python_path(environ: Mapping[str, str] | None) -> list[str]:
    path = (os.environ if environ is None else environ).get("PYTHONPATH")
    return [f"PYTHONPATH={path}"] if path else []


def _format() -> str:
    return SEPARATOR.join(f"#{{{field}}}" for field in FIELDS)


def _panes(text: str) -> Iterator[PaneSeen]:
    for line in text.splitlines():
        values = dict(zip(FIELDS, line.split(SEPARATOR), strict=False))
        if len(values) == len(FIELDS) and values["pane_dead"] != "1":
            yield PaneSeen(
                id=values["pane_id"],
                pid=int(values["pane_pid"]),
                tty=values["pane_tty"],
                piped=values["pane_pipe"] == "1",
                run=values[MARK] or None,
                session=values["session_name"],
            )


def _list(
    settings: Tmux,
    environ: Mapping[str, str] | None,
    session: str,
    scope: Literal["server", "session", "pane"],
    target: str = "",
) -> list[PaneSeen]:
    return list(_panes(_ask(settings, environ, session, ListPanes(scope=scope, target=target, format=_format()))))


def _ask(settings: Tmux, environ: Mapping[str, str] | None, session: str, request: ListPanes | CopyPane) -> str:
    """Carry out one request. Raises AdoptionError."""
    server = f" on socket {settings.socket}" if settings.socket else ""
    try:
        return tmux_calls.ask(settings, os.environ if environ is None else environ, request, str)
    except TmuxError as error:
        match error.fault:
            case "missing":
                raise AdoptionError("missing", f"{error}, so tmux sessions cannot be read; give --pid PID") from error
            case "deadline":
                raise AdoptionError("refused", f"{error}{server}; give --pid PID") from error
            case "failed":
                raise AdoptionError(
                    "missing", f"no tmux session {session}{server} ({error}); `tmux ls` lists those that exist"
                ) from error
            case _:
                assert_never(error.fault)
