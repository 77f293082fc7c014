"""``trainwatch status [RUN]``: show the state of a run."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, warn
from ..run_argument import add_run

HELP = "the state of a run"
DESCRIPTION = "Shows the status of a run: state, progress, machine, checkpoints, incidents."
EXAMPLE = "--json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """0 whenever the run is known."""
    from trainwatch.core.app.runs.run_status import status_of

    status, still, seen = status_of(args.run, warn)
    if args.json:
        print_json(status)
        return ExitCode.DONE
    from .status_text import status_lines

    print("\n".join(status_lines(status, still)))
    seen()
    return ExitCode.DONE
