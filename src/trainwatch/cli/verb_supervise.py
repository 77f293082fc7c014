"""``trainwatch supervise RUN``: the detached supervisor that verbs and the screen start. Not for typing."""

import argparse
import sys
from typing import Any

import msgspec

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.app.runs.known_runs import find_run
from trainwatch.core.model.observation import Command


def add(subparsers: Any) -> None:
    """Register the verb; it has no line in the overview."""
    parser = subparsers.add_parser(
        "supervise",
        description="Looks after a known run in the foreground, or detached from the terminal.",
        epilog="example: trainwatch supervise luca-1a2b3c4d --detach",
    )
    parser.add_argument("run", help="name or id of the run")
    parser.add_argument("--detach", action="store_true", help="go on in the background; prints the pid")
    parser.add_argument("--then", metavar="JSON", help="an operator command to begin with")
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Supervise; the exit code is that of ``--headless``."""
    run = find_run(args.run)
    first = msgspec.json.decode(args.then, type=Command) if args.then else None
    if args.detach:
        from trainwatch.core.app.start.detached import become_detached

        pid = become_detached(run)
        if pid:
            print(pid)
            return ExitCode.DONE if pid > 0 else ExitCode.FAILED
    from .event_printer import supervise_and_print

    code = supervise_and_print(run, first=first)
    sys.stdout.flush()
    return code
