"""The tmux window of a run, and the command that shows its terminal."""

from ...act.view import tmux
from ...act.view.attach import attach_command
from ...store.run_directory import RunDirectory
from ..runs.launched_attempts import newest_attempt


def close_view(run: RunDirectory) -> None:
    """Close the tmux window of a run that has ended, unless a terminal is attached to it or it never had one."""
    spec = run.load_spec()
    if spec.settings.tmux.enabled:
        tmux.close(spec, unless_attached=True)


def attach_argv(run: RunDirectory) -> list[str]:
    """The command that shows the trainer's terminal or log. Raises RuntimeError with a sentence."""
    return attach_command(run.load_spec(), newest_attempt(run))
