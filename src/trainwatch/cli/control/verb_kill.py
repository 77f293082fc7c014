"""``trainwatch kill [RUN]``: end the process tree at once and hold restarts."""

import argparse

from ..operation import add_operation, operate

HELP = "end the whole process tree at once (SIGKILL); holds restarts"
DESCRIPTION = HELP
EXAMPLE = ""
ASKS = "Kill {run} now? What was not saved since the last checkpoint is lost."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=True)


def act(args: argparse.Namespace) -> int:
    return operate(args, ask=ASKS)
