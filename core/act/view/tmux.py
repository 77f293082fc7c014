"""The tmux window that shows a trainer to people. It does not keep the trainer alive: the runner does.

Options are only set on the session and the window that we made, never globally. The session carries the id of its run
(``MARK``), so that a user's session with the same name is not used. Errors become sentences.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ...bound_process import NoAnswerError, answer
from ...model.ports import AttemptTarget
from ...model.run import RunSpec
from ...model.settings import Tmux
from ...model.text import printable
from ...processes import is_alive

DEADLINE_S = 5.0
"""For all commands of a request together; tmux answers one within 4 ms."""
SHOW_DEADLINE_S = 3.0
"""The supervisor waits for it after each launch, and `run` has already waited for FIND_DEADLINE_S: 5 s together."""
FIND_DEADLINE_S = 2.0
CHILD_START_S = 20.0
"""The deadline begins when the child has loaded libtmux, which can take seconds from a slow disk."""
SEPARATOR = "\x1f"
"""Between the fields of a line that tmux is asked for."""
MARK = "@trainwatch"
"""Session option: id of the run that the session shows. A session without it belongs to the user."""
VIEW = "@trainwatch_view"
"""Session option: id of the pane that holds our view."""
FIELDS = ("session_name", MARK, "socket_path", "session_attached", VIEW)
NO_SERVER = re.compile(r"no server running|error connecting|No such file")
"""What tmux says if nobody has a session."""
NO_PANE = re.compile(r"can't find (?:pane|window)")
HISTORY_LINES = 50000
"""A window takes the length of its history from its session's option when it is made. tmux's default of 2000 lines is
an hour of a progress bar."""
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables that the view needs. A running tmux server does not pass a client's environment to a new window."""


class TmuxError(Exception):
    """tmux did not do what was asked. The message is a clause without a full stop.

    ``fault``: "missing", there is no usable tmux; "deadline", no answer in time; "failed", an error of tmux or libtmux.
    """

    def __init__(self, fault: Literal["missing", "deadline", "failed"], message: str) -> None:
        super().__init__(message)
        self.fault = fault


def output(settings: Tmux, environ: Mapping[str, str], words: Sequence[str], *, deadline_s: float = DEADLINE_S) -> str:
    """What a tmux command prints; several have ``;`` between them, and run in one turn. Raises TmuxError.

    A question is put to tmux itself. What changes something libtmux carries out: it has no time limits, so in a child
    process (``libtmux_child``), which is ended with its ``tmux`` when the deadline has passed. That takes about 0.3 s,
    most of it the start of Python and libtmux.
    """
    if shutil.which("tmux", path=environ.get("PATH")) is None:
        raise TmuxError("missing", "tmux is not installed (apt install tmux)")
    asks = words[0].startswith("list-")
    child = (sys.executable, "-P", "-m", f"{__package__}.libtmux_child", str(os.getpid()))
    argv = [*child, settings.socket or "", str(deadline_s), *words]
    if asks:
        argv = ["tmux", *([] if settings.socket is None else [f"-L{settings.socket}"]), *words]
    limit_s = deadline_s if asks else deadline_s + CHILD_START_S
    try:
        return answer(argv, limit_s, env=environ, cwd="/", tree=not asks, by_itself=not asks)
    except NoAnswerError as error:
        if error.kind == "late" or error.code == -signal.SIGKILL:
            raise TmuxError("deadline", f"the tmux server did not answer within {deadline_s:g} s") from error
        last = error.said.strip().splitlines()[-1:] or [f"libtmux could not be started: {error}"]
        raise TmuxError("missing" if error.code == MISSING else "failed", last[0]) from error


MISSING = 127
"""Exit status of the child without a usable tmux."""


class FoundSessions(NamedTuple):
    """``own``: name of the run's session. ``socket_path``: of its server. ``named``: the names in use.

    ``attached``: terminals that show it. ``view``: the pane of our view in it. ``users``: names that no run has.
    """

    own: str | None = None
    socket_path: str = ""
    named: tuple[str, ...] = ()
    attached: bool = False
    view: str = ""
    users: tuple[str, ...] = ()


class TmuxReport(msgspec.Struct, frozen=True, kw_only=True):
    """``session``: the session that shows the run, None if there is none; ``detail``: a sentence in both cases."""

    ok: bool
    session: str | None
    detail: str


def show(run: RunSpec, target: AttemptTarget, environ: Mapping[str, str] = os.environ) -> TmuxReport:
    """Show this attempt in the run's tmux session, which is made if there is none.

    Blocks for about 0.6 s, at most SHOW_DEADLINE_S for each of two requests if the tmux server hangs.
    """
    settings = run.settings.tmux
    if not settings.enabled:
        return TmuxReport(ok=False, session=None, detail="no tmux window: switched off (tmux.enabled)")
    command = view_command(run, target, in_pane=True)
    wanted = session_name(run)
    names = (wanted, *(f"{wanted}-{number}" for number in range(2, 100)))
    passed_on = [word for name in PASSED_ON if name in environ for word in ("-e", f"{name}={environ[name]}")]
    shown = printable(run.name).replace("#", "##")
    leave_by = f"log of {shown} · q or Ctrl-C: leave" if is_log_view(command) else "#{prefix} d: leave"
    try:
        found = find_sessions(run, names, environ, deadline_s=SHOW_DEADLINE_S)
        name = found.own or next((each for each in names if each not in found.named), wanted)
        options = {"status": "on", "status-left-length": "80", "status-left": f" {leave_by} · "}
        leave = [w for key, value in options.items() for w in (";", "set-option", "-t", f"={name}:", key, value)]
        program = [*passed_on, f"exec {shlex.join(command)}"]
        if not (found.view and _renewed(settings, environ, ("-t", found.view, *program, *leave))):
            made = _new_view(run, name, program, is_new=found.own is None)
            output(settings, environ, (*made, *leave), deadline_s=SHOW_DEADLINE_S)
    except TmuxError as error:
        return TmuxReport(ok=False, session=None, detail=f"no tmux window: {error}; the training continues without one")
    verb = "shown in" if found.own is None else "shown again in"
    return TmuxReport(ok=True, session=name, detail=f"{verb} tmux session {name}")


def _renewed(settings: Tmux, environ: Mapping[str, str], words: Sequence[str]) -> bool:
    """Start the view anew in its pane. False: a person closed that."""
    try:
        output(settings, environ, ("respawn-pane", "-k", *words), deadline_s=SHOW_DEADLINE_S)
    except TmuxError as error:
        if NO_PANE.search(str(error)):
            return False
        raise
    return True


def _new_view(run: RunSpec, name: str, program: Sequence[str], *, is_new: bool) -> list[str]:
    """The commands that make the view's window, and the session if it ``is_new``.

    Its first window is ended when ours is there: that one's history has the default length.
    """
    session, window = f"={name}:", f"={name}:trainer"
    words: list[str] = []
    if is_new:
        words += ["new-session", "-d", "-s", name, "-x", "200", "-y", "50", "exec tail -f /dev/null", ";"]
        words += ["set-option", "-t", session, MARK, run.id, ";"]
        words += ["set-option", "-t", session, "history-limit", str(HISTORY_LINES), ";"]
    words += ["new-window", "-t", session, "-n", "trainer", *program, ";"]
    for option, value in (("remain-on-exit", "on"), ("automatic-rename", "off"), ("allow-rename", "off")):
        words += ["set-option", "-w", "-t", window, option, value, ";"]
    words += ["set-option", "-F", "-t", window, VIEW, "#{pane_id}"]
    return [*words, ";", "kill-window", "-t", f"{session}^"] if is_new else words


def find_sessions(
    run: RunSpec,
    names: tuple[str, ...] = (),
    environ: Mapping[str, str] = os.environ,
    *,
    deadline_s: float = FIND_DEADLINE_S,
) -> FoundSessions:
    """Find the session that shows the run, and which of ``names`` are names of sessions. Raises TmuxError."""
    words = ("list-sessions", "-F", SEPARATOR.join(f"#{{{field}}}" for field in FIELDS))
    try:
        text = output(run.settings.tmux, environ, words, deadline_s=deadline_s)
    except TmuxError as error:
        if NO_SERVER.search(str(error)):
            return FoundSessions()
        raise
    rows = [line.split(SEPARATOR) for line in text.splitlines() if line.count(SEPARATOR) == len(FIELDS) - 1]
    named = tuple(name for name in names if name in {row[0] for row in rows})
    own = next((row for row in rows if row[1] == run.id), None)
    if own is None:
        return FoundSessions(named=named, users=tuple(row[0] for row in rows if row[0] in named and not row[1]))
    return FoundSessions(own[0], own[2], named, own[3] != "0", own[4])


def close(run: RunSpec, environ: Mapping[str, str] = os.environ, *, unless_attached: bool = False) -> bool:
    """End the run's session and all its windows; the trainer does not run in it. False: nothing was ended.

    ``unless_attached``: keep the session while a terminal shows it.
    """
    try:
        found = find_sessions(run, environ=environ)
        if found.own is None or (unless_attached and found.attached):
            return False
        words = ("kill-session", "-t", f"={found.own}")
        output(run.settings.tmux, environ, words, deadline_s=SHOW_DEADLINE_S)
    except TmuxError:
        return False
    return True


def session_name(run: RunSpec) -> str:
    """The preferred name. tmux forbids ``.`` and ``:`` in names; other special characters would be read as targets."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in f"trainwatch-{run.name}")


def attach_command(
    run: RunSpec, target: AttemptTarget | None, environ: Mapping[str, str] = os.environ, *, plain: bool = False
) -> list[str]:
    """argv to run in the foreground of a terminal.

    Outside tmux: ``tmux attach``. Inside the same tmux server: a popup, which is left with prefix and d as everywhere.
    Inside another server, without a session, or with ``plain`` (no terminal): the log view, or the terminal client in
    pty mode. Raises RuntimeError with a sentence if there is nothing to show. Waits at most FIND_DEADLINE_S for tmux.
    """
    found = FoundSessions()
    with contextlib.suppress(TmuxError):
        found = found if plain else find_sessions(run, environ=environ)
    if found.own is not None:
        inside = environ.get("TMUX")
        if not inside:
            socket = [] if run.settings.tmux.socket is None else ["-L", run.settings.tmux.socket]
            return ["tmux", *socket, "attach-session", "-t", f"={found.own}"]
        if found.socket_path == inside.split(",")[0]:
            return popup_command(found.socket_path, found.own)
    if target is None:
        raise RuntimeError(f"{run.name} was never launched, so there is nothing to attach to; start it first")
    if target.log is None and run.terminal == "file":
        raise RuntimeError(
            f"{run.name} was adopted without a log, and trainwatch does not own its terminal; name its log with --log"
        )
    return view_command(run, target, in_pane=False)


def popup_command(socket_path: str, session: str) -> list[str]:
    """argv that shows a session in a popup over this terminal, or switches the client if there can be no popup."""
    server = ["tmux", "-S", socket_path]
    nested = shlex.join(["env", "-u", "TMUX", *server, "attach-session", "-t", f"={session}"])
    popup = shlex.join([*server, "display-popup", "-E", "-w", "100%", "-h", "100%", nested])
    return ["sh", "-c", f"{popup} || exec {shlex.join([*server, 'switch-client', '-t', f'={session}'])}"]


def view_command(run: RunSpec, target: AttemptTarget, *, in_pane: bool) -> list[str]:
    """argv of the view. In pty mode without a live runner there is no terminal, and the log is shown."""
    python = [sys.executable, "-P", "-m"]
    where = ["--pane"] if in_pane else []
    if run.terminal == "pty" and is_alive(target.runner):
        return [*python, "trainwatch.core.act.view.pty_client", target.directory, *where]
    title = f"{run.name}, attempt {target.number}"
    return [*python, "trainwatch.core.act.view.log_follower", target.log or "", title, *where]


def is_log_view(argv: list[str]) -> bool:
    """Whether a command from :func:`view_command` shows a log and not a terminal."""
    return "trainwatch.core.act.view.log_follower" in argv and sys.executable in argv
