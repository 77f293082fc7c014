"""The argument RUN that most verbs take, and the run that it means."""

import argparse
from typing import TYPE_CHECKING

from .output import warn
from .verb import arg

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory

RUN = arg(
    "run",
    nargs="?",
    help="name or id of a run (default: the one of this folder or its trainwatch.toml, else the only one)",
)


def run_of(args: argparse.Namespace) -> "RunDirectory":
    """The run that is meant. Ends the verb with exit code 3 if there is none, 2 if several match.

    If others have its name, which one it is is said.
    """
    from trainwatch.core.app.runs.known_runs import find_run, namesakes

    run = find_run(args.run)
    if args.run is not None and args.run != run.id and (others := namesakes(run)):
        warn(f"this is run {run.id} in {run.load_spec().cwd}; other runs of that name: {', '.join(others)}")
    return run


def run_to_read(args: argparse.Namespace) -> "RunDirectory":
    """The same for verbs that only read: without RUN, of several runs the newest live one, else the newest."""
    from trainwatch.core.app.runs.known_runs import find_run_to_read

    return find_run_to_read(args.run, warn)
