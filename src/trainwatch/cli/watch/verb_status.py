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
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with the code that `wait` would have now; 7: it goes on"
    )


def act(args: argparse.Namespace) -> int:
    """0 whenever the run is known, but for ``--exit-code``."""
    from trainwatch.core.app.runs.run_status import status_of

    status, still, seen = status_of(args.run, warn)
    if args.json:
        print_json(status)
    else:
        from .status_text import status_lines

        print("\n".join(status_lines(status, still)))
        seen()
    if not args.exit_code:
        return ExitCode.DONE
    from trainwatch.core.app.runs.waiting import CODES, kind_of

    asks, held = status["question"] is not None, status["hold"] is not None
    return CODES[kind_of(status["state"], held=held, asks=asks, watched=status["supervisor"]["alive"])]
