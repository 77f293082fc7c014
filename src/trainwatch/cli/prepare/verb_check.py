"""``trainwatch check``: check for problems that could end a run, before it starts or after it has ended."""

import argparse

from ..output import warn
from .check_text import show_checks

HELP = "pre-flight: find what could end the run before it does"
DESCRIPTION = (
    "Checks config, disk, GPU, the trainer's interpreter, the resume point, tmux, and settings of the host that "
    "end processes (logout, sleep). Changes nothing. Without a project it checks the machine, as `trainwatch doctor`."
)
EXAMPLE = "--json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_name", metavar="NAME", help="which run, if there are several")
    parser.add_argument(
        "--after",
        action="store_true",
        help="check a run that is over instead: log, loss, every checkpoint, what to keep and to back up",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """1 if a check failed."""
    if args.after:
        from trainwatch.core.app.preflight.after_run import checks_after

        checks = checks_after(args.run_name, warn)
    else:
        from trainwatch.core.app.preflight.checklist import preflight_here

        checks = preflight_here(args.run_name)
    return show_checks(checks, as_json=args.json)
