"""``trainwatch events [RUN] [--follow]``: print a run's journal, as text or as JSON lines."""

import argparse
import time

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.app.runs.known_runs import RUN_HELP, find_run
from trainwatch.core.model.record import Record

from .event_text import event_line
from .output import print_json

POLL_S = 0.25
"""How often ``--follow`` looks for new records."""


SECTION = "watch"
HELP = "the events of a run, from its journal"
DESCRIPTION = "Prints observations, findings, decisions and their outcomes, oldest first."
EXAMPLE = "--follow"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help=RUN_HELP)
    parser.add_argument("--follow", "-f", action="store_true", help="go on printing new events (Ctrl-C ends)")
    parser.add_argument("--json", action="store_true", help="JSON lines, one record each")


def act(args: argparse.Namespace) -> int:
    """Print the journal; a missing one is an empty story."""
    from trainwatch.core.store.journal import JournalFollower

    follower = JournalFollower(find_run(args.run, newest=True).journal)
    while True:
        for record in follower.poll():
            show(record, as_json=args.json)
        if not args.follow:
            return ExitCode.DONE
        time.sleep(POLL_S)


def show(record: Record, *, as_json: bool) -> None:
    """One record: all of it as JSON, or a line for people (records without news have none)."""
    if as_json:
        print_json(record)
    elif line := event_line(record):
        print(line, flush=True)
