"""``trainwatch forget RUN``: remove what trainwatch has kept about a run."""

import argparse
import sys

from trainwatch.core.app.errors import CliError, ExitCode

from ..operation import confirm
from ..run_argument import run_of

HELP = "remove what is kept about a run that is over; its outputs stay"
DESCRIPTION = (
    "Removes the run's folder in the state folder: journal, logs, charts, evidence. Checkpoints and all other files of "
    "your training stay where they are. Refused while a supervisor or the trainer is alive."
)
EXAMPLE = "luca"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="name or id of the run")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def act(args: argparse.Namespace) -> int:
    """0 if it was removed."""
    from trainwatch.core.app.runs.forgetting import forget, kept_about

    run = run_of(args)
    kept = kept_about(run)
    if not args.yes:
        if not sys.stdin.isatty():
            raise CliError(ExitCode.USAGE, f"this removes {kept}; add --yes if that is meant")
        confirm(f"Remove {kept}? Checkpoints and other outputs stay.")
    forget(run)
    print(f"removed: {kept}")
    return ExitCode.DONE
