"""For the screen: start a supervisor for a run, and the command that shows the trainer's terminal."""

from collections.abc import Sequence

from ...model.observation import Command
from ...store.run_lookup import find_run
from ..errors import CliError
from ..runs.known_runs import home


class DetachedStarter:
    """Implements the screen's Starter."""

    def start(self, run_id: str, then: Command | None = None) -> None:
        """A supervisor in a session of its own. Raises RuntimeError with a sentence."""
        from ..operate import LAUNCHING
        from ..preflight.other_trainer import require_no_other
        from ..runs.output_owner import trainer_pid
        from ..start.detached import start_detached
        from ..start.named_checkpoint import unfit
        from ..start.way_again import read_way_again

        run = find_run(home(), run_id)
        if then is not None and (why := unfit(run, then)) is not None:
            raise RuntimeError(why)
        try:
            if trainer_pid(run) is None or (then is not None and then.verb in LAUNCHING):
                require_no_other(run)
            read_way_again(run, then)
            start_detached(run, then)
        except CliError as error:
            raise RuntimeError(str(error)) from error


class RunAttacher:
    """Implements ``model.ports.Attacher``."""

    def command(self, run_id: str) -> Sequence[str]:
        """argv for the foreground. Raises RuntimeError with a sentence."""
        from ..wiring.terminal_view import attach_argv  # loads all of core: the first picture does not wait for it

        return attach_argv(find_run(home(), run_id))
