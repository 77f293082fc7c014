"""``trainwatch save [RUN]``: ask the trainer for a checkpoint now."""

import argparse

from ..operation import add_operation, operate

HELP = "ask the trainer for a checkpoint now"
DESCRIPTION = (
    "Asks the trainer for a checkpoint: by trainwatch.heartbeat in its script, or by [run] save_signal or save_file. "
    "`stop` asks for one, too, before it ends the training."
)
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args)
