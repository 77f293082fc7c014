"""The command that shows a trainer's terminal: through tmux where it has a window, else directly."""

import os
import shlex
from collections.abc import Mapping

from ...model.ports import AttemptTarget
from ...model.run import RunSpec
from . import tmux
from .view_command import view_command


def attach_command(
    run: RunSpec, target: AttemptTarget | None, environ: Mapping[str, str] | None = None, *, plain: bool = False
) -> list[str]:
    """argv to run in the foreground of a terminal.

    Outside tmux: ``tmux attach``; inside the same tmux server: a popup that ends, as everywhere, with prefix and d, or
    before tmux 3.2 ``switch-client`` (it returns at once, and one switches back with prefix and L); inside another
    server, without a session, or with ``plain`` (no terminal): the log view, or the terminal client in pty mode.
    Raises RuntimeError with a sentence when there is nothing to show. Waits at most a few seconds for tmux.
    """
    environ = os.environ if environ is None else environ
    session = None if plain else tmux.find_session(run, environ)
    if session is not None:
        words = tmux.command(run.settings.tmux)
        inside = environ.get("TMUX")
        if not inside:
            return [*words, "attach-session", "-t", f"={session}"]
        if tmux.socket_path(run.settings.tmux, environ) == inside.split(",")[0]:
            return _within(words, f"={session}")
    if target is None:
        raise RuntimeError(f"{run.name} was never launched, so there is nothing to attach to; start it first")
    if target.log is None and run.terminal == "file":
        raise RuntimeError(
            f"{run.name} was adopted without a log, and has no terminal of ours; name its log with --log"
        )
    return view_command(run, target, in_pane=False)


def _within(words: list[str], session: str) -> list[str]:
    """Show a session over the client that already shows another one of the same server."""
    nested = shlex.join(["env", "-u", "TMUX", *words, "attach-session", "-t", session])
    popup = shlex.join([*words, "display-popup", "-E", "-w", "100%", "-h", "100%", nested])
    switch = shlex.join([*words, "switch-client", "-t", session])
    return ["sh", "-c", f"{popup} 2>/dev/null || {switch}"]
