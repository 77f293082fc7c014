"""``trainwatch stop [RUN]``: end the training gently and hold restarts."""

import argparse

from ..operation import add_operation, operate

HELP = "end the training gently; it is not restarted until `resume`"
DESCRIPTION = (
    "Ends the training gently: signals with time to save, then SIGKILL. It is not started again until `resume` or "
    "`restart`."
)
EXAMPLE = ""
ASKS = "End the training of {run} (it may save first) and hold restarts?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=True)


def act(args: argparse.Namespace) -> int:
    return operate(args, ask=ASKS)
