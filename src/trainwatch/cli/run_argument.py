"""The argument RUN that most verbs take, and the run that it means."""

import argparse
from typing import TYPE_CHECKING

from .output import warn

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory

RUN_HELP = "name or id of a run (default: this project's, else the one started in this folder, else the only one)"


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help=RUN_HELP)


def run_of(args: argparse.Namespace) -> "RunDirectory":
    """The run that is meant. Ends the verb with exit code 3 if there is none, 2 if several match."""
    from trainwatch.core.app.runs.known_runs import find_run

    return find_run(args.run)


def run_to_read(args: argparse.Namespace) -> "RunDirectory":
    """The same for verbs that only read: without RUN, of several runs the newest live one, else the newest."""
    from trainwatch.core.app.runs.known_runs import find_run_to_read

    return find_run_to_read(args.run, warn)
