"""``trainwatch snooze [RUN]``: give a suspected hang more time."""

import argparse

from ..operation import add_operation, operate

HELP = "give a suspected hang ten minutes more"
DESCRIPTION = "Declares no hang of this run for ten minutes. `trainwatch wait` waits for the end of a run."
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args)
