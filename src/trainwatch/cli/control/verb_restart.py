"""``trainwatch restart [RUN]``: end this attempt and start the next from the newest verified checkpoint."""

import argparse

from ..operation import add_force, add_operation, add_remedies, operate

HELP = "end this attempt, start the next from the newest checkpoint"
DESCRIPTION = (
    "Ends this attempt of the training and starts the next one from the newest verified checkpoint: one that was read "
    "and found complete."
)
EXAMPLE = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="from the beginning, whatever checkpoints there are")
    parser.add_argument(
        "--incident", type=int, metavar="N", help="only if incident N still waits for an answer ([restart] act)"
    )
    add_remedies(parser)
    add_force(parser)
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(
        args,
        starts_supervisor=True,
        forced=args.force,
        fresh=args.fresh,
        incident=args.incident,
        remedies=tuple(args.remedies),
        without_remedies=args.without_remedies,
    )
