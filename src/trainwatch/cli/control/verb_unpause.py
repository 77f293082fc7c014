"""``trainwatch unpause [RUN]``: continue a run that is paused, or that a signal stopped."""

import argparse

from ..operation import add_operation, operate

HELP = "continue a run that is paused, or that a signal stopped"
DESCRIPTION = HELP
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args)
