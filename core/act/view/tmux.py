"""The tmux window that shows a trainer to people. It does not keep the trainer alive: the runner does.

Options are only set on the session and the window that we made, never globally. The session carries the id of its run
(``tmux_calls.MARK``), so that a user's session with the same name is not used. Errors become sentences.
"""

import os
import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ...model.run import RunSpec
from ...model.settings import Tmux
from ...model.supervision_ports import AttemptTarget
from ...model.text import printable
from ..launch.launching import is_alive
from . import tmux_calls
from .tmux_calls import MARK, SEPARATOR, ShowView, TmuxError, popup_command

SHOW_DEADLINE_S = 3.0
"""The supervisor waits for it after each launch, and `run` has already waited for FIND_DEADLINE_S: 5 s together."""
FIND_DEADLINE_S = 2.0
FIELDS = ("session_name", MARK, "socket_path", "session_attached")
NO_SERVER = re.compile(r"no server running|error connecting|No such file")
"""What tmux says if nobody has a session."""
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables that the view needs. A running tmux server does not pass a client's environment to a new window."""


class FoundSessions(NamedTuple):
    """``own``: name of the run's session. ``socket_path``: of its server. ``named``: the names in use.

    ``attached``: terminals that show it.
    """

    own: str | None = None
    socket_path: str | None = None
    named: tuple[str, ...] = ()
    attached: bool = False


class TmuxReport(msgspec.Struct, frozen=True, kw_only=True):
    """``session``: the session that shows the run, None if there is none; ``detail``: a sentence in both cases."""

    ok: bool
    session: str | None
    detail: str


def show(run: RunSpec, target: AttemptTarget, environ: Mapping[str, str] = os.environ) -> TmuxReport:
    """Show this attempt in the run's tmux session, which is made if there is none.

    Blocks for about 0.3 s, at most SHOW_DEADLINE_S if the tmux server hangs.
    """
    if not run.settings.tmux.enabled:
        return TmuxReport(ok=False, session=None, detail="no tmux window: switched off (tmux.enabled)")
    command = view_command(run, target, in_pane=True)
    request = ShowView(
        mark=run.id,
        names=_session_names(run),
        command=tuple(command),
        environment={name: environ[name] for name in PASSED_ON if name in environ},
        status_left=_status_left(run, command),
    )
    try:
        shown = tmux_calls.show(run.settings.tmux, environ, request, deadline_s=SHOW_DEADLINE_S)
    except TmuxError as error:
        return TmuxReport(ok=False, session=None, detail=f"no tmux window: {error}; the training continues without one")
    verb = "shown again in" if shown.again else "shown in"
    return TmuxReport(ok=True, session=shown.session, detail=f"{verb} tmux session {shown.session}")


def find_sessions(run: RunSpec, names: tuple[str, ...] = (), environ: Mapping[str, str] = os.environ) -> FoundSessions:
    """Find the session that shows the run, and which of ``names`` are names of sessions. Raises TmuxError."""
    words = ("list-sessions", "-F", SEPARATOR.join(f"#{{{field}}}" for field in FIELDS))
    try:
        text = tmux_calls.output(run.settings.tmux, environ, words, deadline_s=FIND_DEADLINE_S)
    except TmuxError as error:
        if NO_SERVER.search(str(error)):
            return FoundSessions()
        raise
    rows = [line.split(SEPARATOR) for line in text.splitlines() if line.count(SEPARATOR) == len(FIELDS) - 1]
    named = tuple(name for name in names if name in {row[0] for row in rows})
    own = next((row for row in rows if row[1] == run.id), None)
    return FoundSessions(named=named) if own is None else FoundSessions(own[0], own[2], named, own[3] != "0")


def close(run: RunSpec, environ: Mapping[str, str] = os.environ, *, unless_attached: bool = False) -> bool:
    """End the run's session and all its windows; the trainer does not run in it. False: nothing was ended.

    ``unless_attached``: keep the session while a terminal shows it.
    """
    try:
        found = find_sessions(run, environ=environ)
        if found.own is None or (unless_attached and found.attached):
            return False
        words = ("kill-session", "-t", f"={found.own}")
        tmux_calls.output(run.settings.tmux, environ, words, deadline_s=SHOW_DEADLINE_S)
    except TmuxError:
        return False
    return True


def session_name(run: RunSpec) -> str:
    """The preferred name. tmux forbids ``.`` and ``:`` in names; other special characters would be read as targets."""
    wanted = run.settings.tmux.session or f"trainwatch-{run.name}"
    return "".join(character if character.isalnum() or character in "-_" else "-" for character in wanted)


def _session_names(run: RunSpec) -> tuple[str, ...]:
    wanted = session_name(run)
    return (wanted, *(f"{wanted}-{number}" for number in range(2, 100)))


def _status_left(run: RunSpec, command: list[str]) -> str:
    name = printable(run.name).replace("#", "##")
    leave = f"log of {name} · q or Ctrl-C: leave" if is_log_view(command) else "#{prefix} d: leave"
    return f" {leave} · "


def attach_command(
    run: RunSpec, target: AttemptTarget | None, environ: Mapping[str, str] = os.environ, *, plain: bool = False
) -> list[str]:
    """argv to run in the foreground of a terminal.

    Outside tmux: ``tmux attach``. Inside the same tmux server: a popup, which is left with prefix and d as everywhere.
    Inside another server, without a session, or with ``plain`` (no terminal): the log view, or the terminal client in
    pty mode. Raises RuntimeError with a sentence if there is nothing to show. Waits at most FIND_DEADLINE_S for tmux.
    """
    found = FoundSessions() if plain else _find(run, environ)
    if found.own is not None:
        inside = environ.get("TMUX")
        if not inside:
            return [*_tmux(run.settings.tmux), "attach-session", "-t", f"={found.own}"]
        if found.socket_path == inside.split(",")[0]:
            return popup_command(found.own)
    if target is None:
        raise RuntimeError(f"{run.name} was never launched, so there is nothing to attach to; start it first")
    if target.log is None and run.terminal == "file":
        raise RuntimeError(
            f"{run.name} was adopted without a log, and trainwatch does not own its terminal; name its log with --log"
        )
    return view_command(run, target, in_pane=False)


def _find(run: RunSpec, environ: Mapping[str, str]) -> FoundSessions:
    try:
        return find_sessions(run, environ=environ)
    except TmuxError:
        return FoundSessions()


def _tmux(settings: Tmux) -> list[str]:
    return ["tmux"] if settings.socket is None else ["tmux", "-L", settings.socket]


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
