"""The program that shows a trainer: its terminal in pty mode, its log in file mode."""

import sys

from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ..launch.launching import is_alive


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
