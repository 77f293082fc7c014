"""``trainwatch ack [RUN]``: acknowledge an incident, so that it is not repeated."""

import argparse

from ..operation import add_operation, operate

HELP = "acknowledge the newest open incident (or --incident N)"
DESCRIPTION = HELP
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--incident", type=int, metavar="N", help="which incident")
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args, incident=args.incident)
