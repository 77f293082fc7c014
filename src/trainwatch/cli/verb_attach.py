"""``trainwatch attach [RUN]``: the trainer's terminal (pty mode) or its live log (file mode, and it says so)."""

import argparse
import os
import sys
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import RUN_HELP, find_run


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "attach",
        help="open the trainer's terminal, or its live log",
        description="In pty mode this is the trainer's own terminal. In file mode it is a view of its log: keys "
        "cannot reach the trainer.",
        epilog="example: trainwatch attach",
    )
    parser.add_argument("run", nargs="?", help=RUN_HELP)
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Replace this process by the view; 1 when nothing can be shown."""
    from trainwatch.core.app.wiring import attach_argv

    try:
        argv = attach_argv(find_run(args.run))
    except RuntimeError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    if not sys.stdout.isatty():
        raise CliError(ExitCode.USAGE, f"attach needs a terminal; to read the log: {' '.join(argv)}")
    os.execvp(argv[0], argv)
