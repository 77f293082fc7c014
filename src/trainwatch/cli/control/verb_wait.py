"""``trainwatch wait [RUN]``: give a suspected hang more time."""

import argparse

from ..operation import add_operation, operate

HELP = "give a suspected hang more time"
DESCRIPTION = HELP
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args)
