"""``trainwatch logs [RUN]``: print what the trainer printed."""

import argparse
import sys

from trainwatch.core.app.errors import CliError, ExitCode

from ..run_argument import add_run, run_to_read
from ..streams import end_when_unread

HELP = "what the trainer printed: the log of its newest attempt"
DESCRIPTION = (
    "Prints the end of the log of the newest attempt, or all of it, with its colours and without what else acts on a "
    "terminal (`--path` names the file as it is). `trainwatch attach` shows it live in a "
    "terminal of its own, `trainwatch` on the screen."
)
EXAMPLE = "-n 200"
LINES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--lines", "-n", type=int, default=LINES, help=f"last lines to print (default {LINES})")
    parser.add_argument("--all", action="store_true", help="print all of it")
    parser.add_argument("--follow", "-f", action="store_true", help="keep printing what is added (Ctrl-C ends)")
    parser.add_argument("--attempt", type=int, help="another attempt than the newest")
    parser.add_argument("--path", action="store_true", help="print the path of the log instead")


def act(args: argparse.Namespace) -> int:
    """3 if there is no log."""
    from trainwatch.core.app.runs.trainer_log import log_of, log_pieces

    if args.lines < 1:
        raise CliError(ExitCode.USAGE, "--lines takes a number of at least 1")
    run = run_to_read(args)
    path = log_of(run, args.attempt)
    if args.path:
        print(path)
        return ExitCode.DONE
    if args.follow:
        end_when_unread()
    for piece in log_pieces(run, path, None if args.all else args.lines, follow=args.follow):
        sys.stdout.write(piece)
        if args.follow:  # else whole lines go on: a secret is not cut in two
            sys.stdout.flush()
    return ExitCode.DONE
