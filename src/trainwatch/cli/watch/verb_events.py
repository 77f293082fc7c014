"""``trainwatch events [RUN] [--follow]``: print a run's journal, as text or as JSON lines."""

import argparse
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import ExitCode

from ..output import print_json
from ..run_argument import add_run, run_to_read
from ..streams import end_when_unread

if TYPE_CHECKING:
    from trainwatch.core.model.record import Record

HELP = "the events of a run, from its journal"
DESCRIPTION = "Prints observations, findings, decisions and their outcomes, oldest first."
EXAMPLE = "--follow"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--follow", "-f", action="store_true", help="keep printing new events (Ctrl-C ends)")
    parser.add_argument("--json", action="store_true", help="JSON lines, one record each")


def act(args: argparse.Namespace) -> int:
    """A run without a journal has no events."""
    from trainwatch.core.app.runs.run_events import records_of

    run = run_to_read(args)
    if args.follow:
        end_when_unread()
    for record in records_of(run, follow=args.follow):
        show(record, run.id, as_json=args.json)
    return ExitCode.DONE


def show(record: "Record", run: str, *, as_json: bool) -> None:
    """Print one record, as JSON or as a line of text. Some records have no line."""
    if as_json:
        print_json(record)
        return
    from ..event_text import event_line

    if line := event_line(record, run):
        print(line, flush=True)
