"""``trainwatch pause [RUN]``: freeze the process tree."""

import argparse

from ..operation import add_operation, operate

HELP = "freeze the process tree (SIGSTOP); GPU memory stays held"
DESCRIPTION = HELP
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args)
