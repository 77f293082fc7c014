"""``trainwatch attach [RUN]``: open the trainer's terminal (pty mode), or a view of its log (file mode)."""

import argparse
import os
import sys

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.model.text.suggestion import typed

from ..run_argument import add_run, run_of

HELP = "open the trainer's terminal, or its live log"
DESCRIPTION = (
    "In pty mode this opens the trainer's own terminal. In file mode it shows the trainer's log: keys cannot "
    "reach the trainer."
)
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)


def act(args: argparse.Namespace) -> int:
    """Replaces this process by the view; 1 if there is nothing to show."""
    from trainwatch.core.app.wiring.terminal_view import attach_argv

    run = run_of(args)
    try:
        argv = attach_argv(run)
    except RuntimeError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    if not sys.stdout.isatty():
        raise CliError(ExitCode.USAGE, f"attach needs a terminal; the log: `{typed('logs', run.id)}` (-f follows it)")
    os.execvp(argv[0], argv)
