"""``trainwatch act all|ask|notify [RUN]``: what is done without a person, changed for a running run."""

import argparse

from ..operation import add_operation, operate

HELP = "choose what is done without you: all, ask first, or notify only"
DESCRIPTION = (
    "Changes [restart] act for this run. all: a hung trainer is ended and a failed one restarted. ask: the question is "
    "sent with what it costs, and nothing is ended, started or deleted before you answer. notify: nothing is ended, "
    "started or deleted; the journal and the report have what would have been done."
)
EXAMPLE = "notify luca"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("mode", choices=("all", "ask", "notify"), help="what is done without you")
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args, act=args.mode)
