"""``trainwatch supervise RUN``: the detached supervisor, as verbs and the screen start it."""

import argparse
import sys

from trainwatch.core.app.errors import ExitCode

from ..run_argument import run_of

HELP = None
DESCRIPTION = "Supervises a known run in the foreground, or detached from the terminal."
EXAMPLE = "luca-1a2b3c4d --detach"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="name or id of the run")
    parser.add_argument("--detach", action="store_true", help="continue in the background; prints the pid")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of text")
    parser.add_argument("--try", dest="only_try", action="store_true", help="load what it needs, and end")
    parser.add_argument("--then", metavar="JSON", help="an operator command to begin with")


def act(args: argparse.Namespace) -> int:
    """Supervise; the exit code is that of ``--headless``, with ``--detach`` 4 if the run has a supervisor."""
    from trainwatch.core.model.observation import Command
    from trainwatch.core.model.text.json_line import decode_exact

    run = run_of(args)
    if args.only_try:
        from trainwatch.core.app.foreground import can_supervise

        can_supervise(run)
        return ExitCode.DONE
    first = decode_exact(args.then.encode(), Command) if args.then else None
    if args.detach:
        from trainwatch.core.app.start.detached import become_detached, require_free

        require_free(run)
        pid = become_detached(run)
        if pid:
            print(pid)
            return ExitCode.DONE if pid > 0 else ExitCode.FAILED
    from ..event_printer import supervise_and_print

    code = supervise_and_print(run, first=first, as_json=args.json)
    sys.stdout.flush()
    return code
