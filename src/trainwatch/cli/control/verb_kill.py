"""``trainwatch kill [RUN]``: end the process tree at once and hold restarts."""

import argparse

from ..operation import add_operation, operate

HELP = "end the training at once (SIGKILL); not restarted until `resume`"
DESCRIPTION = (
    "Ends the trainer and all its processes at once (SIGKILL), without time to save. It is not started again until "
    "`resume` or `restart`."
)
EXAMPLE = ""
ASKS = "Kill {run} now? What was not saved since the last checkpoint is lost."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=True)


def act(args: argparse.Namespace) -> int:
    return operate(args, ask=ASKS)
