"""The command that shows a trainer's terminal: through tmux if it has a window there, else directly."""

import os
from collections.abc import Mapping

from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ...model.settings import Tmux
from . import tmux
from .tmux_calls import FoundSessions, TmuxError, popup_command
from .view_command import view_command


def attach_command(
    run: RunSpec, target: AttemptTarget | None, environ: Mapping[str, str] | None = None, *, plain: bool = False
) -> list[str]:
    """argv to run in the foreground of a terminal.

    Outside tmux: ``tmux attach``. Inside the same tmux server: a popup, which is left with prefix and d as everywhere.
    Inside another server, without a session, or with ``plain`` (no terminal): the log view, or the terminal client in
    pty mode. Raises RuntimeError with a sentence if there is nothing to show. Waits at most FIND_DEADLINE_S for tmux.
    """
    environ = os.environ if environ is None else environ
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
        return tmux.find_sessions(run, environ=environ)
    except TmuxError:
        return FoundSessions()


def _tmux(settings: Tmux) -> list[str]:
    return ["tmux"] if settings.socket is None else ["tmux", "-L", settings.socket]
